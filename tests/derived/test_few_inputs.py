"""Rows of inputs that the analysis tells to be enough are enough, over random histories.

As a step of the engine does it in memory: affected keys are the values of changed rows, inputs are
restricted by them and by each other, and columns that the statement does not name are NULL.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest

from polynya.derived import restriction
from polynya.derived.affected import analyse, restricted_sql, statement_sql
from polynya.derived.blocks import relations_of
from polynya.derived.plans import IncrementalPlan
from polynya.derived.restriction import (
    MatchedInput,
    covered_inputs,
    makes_all_rows,
    matched_inputs,
    named_columns,
    restrictable_inputs,
    told_inputs,
)
from polynya.derived.statement import parse
from tests.derived.queries import Statements
from tests.derived.shop import INPUTS, State, Tables, WrongResultError, histories, touched_keys

STATEMENTS = [
    "SELECT o.id, o.amt, c.region FROM orders o JOIN customers c ON c.id = o.cust",
    "SELECT o.id, o.amt, c.region FROM orders o LEFT JOIN customers c ON c.id = o.cust",
    (
        "SELECT o.cust, c.region, count(*) AS n, sum(o.amt) AS total "
        "FROM orders o JOIN customers c ON c.id = o.cust GROUP BY o.cust, c.region"
    ),
    (
        "SELECT o.id, c.region, i.prod FROM customers c JOIN orders o ON c.id = o.cust "
        "LEFT JOIN items i ON i.oid = o.id AND i.qty = c.seg"
    ),
    "SELECT c.id, o.amt FROM customers c LEFT JOIN orders o ON o.cust = c.id",
    "SELECT o.id, c.seg FROM orders o, customers c WHERE o.cust = c.id AND c.seg > 1",
    "SELECT id, amt + 1 AS more FROM orders WHERE cust IS NOT NULL",
    "SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON c.id = o.cust",
    "SELECT o.id, o.amt FROM orders o LEFT ANTI JOIN customers c ON c.id = o.cust",
    (
        "SELECT i.oid, i.line, o.amt, c.region FROM items i JOIN orders o ON o.id = i.oid "
        "LEFT JOIN customers c ON c.id = o.cust"
    ),
    (
        "SELECT o.id, sum(o.amt) OVER (PARTITION BY o.id) AS total FROM orders o "
        "JOIN customers c ON c.id = o.cust"
    ),
]
TABLES = Tables()


def _relation(state: str, name: str) -> str:
    return f"{state}_{name.rpartition('.')[2]}"


def _affected(plan: IncrementalPlan, before: State, after: State) -> str | None:
    """The query of the values of changed rows; None where they do not tell the affected keys."""
    covered, told, parts = covered_inputs(plan), told_inputs(plan), []
    changed = touched_keys(before, after)
    for name in plan.statement.inputs:
        if changed[name] and name not in covered and name not in told:
            return None
        if not changed[name]:
            continue
        states = [_relation(f"touched_{state}", name) for state in ("old", "new")]
        if name in covered:
            parts += [f"SELECT {_keys(plan, covered[name])} FROM {state}" for state in states]
        else:
            parts.append(_joined(plan, states, told[name], covered))
    return " UNION ".join(parts) or None


def _keys(plan: IncrementalPlan, covered: Mapping[str, str]) -> str:
    return ", ".join(
        f'"{column}" AS "{key}"'
        for key in plan.columns
        for column, of_key in covered.items()
        if of_key == key
    )


def _joined(
    plan: IncrementalPlan,
    states: Sequence[str],
    joins: Sequence[MatchedInput],
    covered: Mapping[str, Mapping[str, str]],
) -> str:
    """The keys in rows of the last input that joins lead to."""
    values = " UNION ".join(f'SELECT "{joins[0].column}" AS v FROM {state}' for state in states)
    for join, following in itertools.zip_longest(joins, joins[1:]):
        wants = f'"{following.column}" AS v' if following else _keys(plan, covered[join.other])
        values = (
            f"SELECT {wants} FROM {_relation('new', join.other)} "
            f'WHERE "{join.other_column}" IN (SELECT v FROM ({values}))'
        )
    return values


def _narrow(
    tables: Tables, plan: IncrementalPlan, name: str, by: str, on: Mapping[str, str]
) -> str:
    """A view of the rows of an input that match another relation; other columns are NULL."""
    named, view = named_columns(plan), _relation("few", name)
    columns = ", ".join(
        column if column.lower() in named else f"NULL::{_types(tables, name)[column]} AS {column}"
        for column in INPUTS[name].columns
    )
    same = " AND ".join(f'v."{own}" IS NOT DISTINCT FROM k."{key}"' for own, key in on.items())
    tables.connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {columns} FROM "
        f"(SELECT v.* FROM {_relation('new', name)} v SEMI JOIN {by} k ON {same})"
    )
    return view


def _types(tables: Tables, name: str) -> dict[str, str]:
    rows = tables.connection.execute(f"DESCRIBE {_relation('new', name)}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}


def follow_few(sql: str, states: Sequence[State], tables: Tables) -> int:
    """Keep a statement up to date by few rows of its inputs; how many steps could be taken so.

    Raises WrongResultError.
    """
    plan = analyse(parse(sql, INPUTS, "random.sql"))
    if not isinstance(plan, IncrementalPlan):
        return 0
    statement, taken = plan.statement, 0
    places = [statement.columns.index(column) for column in plan.columns]
    for before, after in itertools.pairwise(states):
        tables.load_step(before, after)
        keys = _affected(plan, before, after)
        if keys is None:
            continue
        tables.connection.execute(f"CREATE OR REPLACE TEMP TABLE affected AS {keys}")
        relations = {name: _relation("new", name) for name in statement.inputs}
        small: dict[str, str] = {}
        for name, columns in restrictable_inputs(plan).items():
            small[name] = _narrow(tables, plan, name, "affected", columns)
        for one in matched_inputs(plan):
            if one.name not in small and one.other in small:
                on = {one.column: one.other_column}
                small[one.name] = _narrow(tables, plan, one.name, small[one.other], on)
        covered = covered_inputs(plan)
        again_sql = restricted_sql(plan, relations | small, "affected", dialect="duckdb")
        if any(name in covered and makes_all_rows(plan, name) for name in small):
            again_sql = statement_sql(statement, relations | small, dialect="duckdb")
        again, _ = tables.bag(again_sql)
        old = {name: _relation("old", name) for name in statement.inputs}
        stored, _ = tables.bag(statement_sql(statement, old, dialect="duckdb"))
        wanted, _ = tables.bag(statement_sql(statement, relations, dialect="duckdb"))
        affected = set(tables.connection.execute("SELECT * FROM affected").fetchall())
        kept = Counter({
            row: number
            for row, number in stored.items()
            if tuple(row[place] for place in places) not in affected
        })  # fmt: skip
        taken += 1
        if kept + again != wanted:
            raise WrongResultError(f"{sql}\n{kept + again}\ninstead of {wanted}\n{before}\n{after}")
    return taken


@pytest.mark.parametrize("sql", STATEMENTS)
def test_few_rows_of_the_inputs_are_enough(sql: str) -> None:
    taken = sum(follow_few(sql, histories(Random(seed), 6), TABLES) for seed in range(3))

    assert taken


def test_few_rows_are_enough_for_random_statements() -> None:
    assert _random_steps(range(40)) > 8


@pytest.mark.slow
def test_few_rows_are_enough_for_many_random_statements() -> None:
    assert _random_steps(range(1000, 2500)) > 300


def _random_steps(seeds: range) -> int:
    taken = 0
    for seed in seeds:
        random = Random(seed)
        sql = Statements(random).statement()
        taken += follow_few(sql, histories(random, 4), TABLES)
    return taken


def _tables_are_read_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        restriction,
        "_read_once",
        lambda plan: {one.table for one in relations_of(plan.block) if one.table is not None},
    )


def _no_column_is_named(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(globals(), "named_columns", lambda _plan: frozenset({"id", "cust"}))


def _any_join_leads_back(patch: pytest.MonkeyPatch) -> None:
    def both_ways(plan: IncrementalPlan) -> list[MatchedInput]:
        found = matched_inputs(plan)
        back = [MatchedInput(o.other, o.other_column, o.name, o.column) for o in found]
        return found + back

    patch.setattr(restriction, "matched_inputs", both_ways)


@pytest.mark.parametrize(
    ("plant", "changed", "sql"),
    [
        (
            _tables_are_read_once,
            "shop.orders",
            (
                "SELECT o.id, c.region, d.region AS other FROM orders o "
                "JOIN customers c ON c.id = o.cust JOIN customers d ON d.id = o.id"
            ),
        ),
        (_no_column_is_named, "shop.orders", STATEMENTS[0]),
        (
            _any_join_leads_back,
            "shop.customers",
            (
                "SELECT o.id, c.region, i.prod FROM orders o CROSS JOIN customers c "
                "LEFT JOIN items i ON i.oid = o.id AND i.line = c.id"
            ),
        ),
    ],
    ids=[
        "an input that is read twice is restricted",
        "values are left out",
        "an optional row tells where others are",
    ],
)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None],
    changed: str,
    sql: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)

    with pytest.raises(WrongResultError):
        for seed in range(6):
            states = histories(Random(seed), 8)
            first = states[0].data
            of_one = [State({**first, changed: one.data[changed]}) for one in states]
            follow_few(sql, of_one, TABLES)
