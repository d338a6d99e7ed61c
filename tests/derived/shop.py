"""Three tables of several types, their random histories, and a statement kept up to date over them.

The oracle is the statement itself over the present rows, in DuckDB.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import duckdb
import sqlglot

from polynya.derived.affected import (
    FullPlan,
    affected_keys_sql,
    analyse,
    restrictable_inputs,
    restricted_sql,
    statement_sql,
)
from polynya.derived.plans import TotalsPlan
from polynya.derived.schema import DerivedInput
from polynya.derived.statement import parse
from polynya.derived.tables import NarrowedText, parsed_query
from polynya.derived.totals import UnknownTotalError, merged

INPUTS = {
    one.name: one
    for one in (
        DerivedInput(
            "shop.customers",
            {"id": "int", "region": "string", "seg": "int", "vip": "boolean", "born": "date"},
            ("id",),
        ),
        DerivedInput(
            "shop.orders",
            {
                "id": "int", "cust": "int", "amt": "decimal(9,2)", "st": "string",
                "rate": "double", "placed": "date",
            },
            ("id",),
        ),
        DerivedInput(
            "shop.items",
            {"oid": "int", "line": "int", "prod": "string", "qty": "int", "ok": "boolean"},
            ("oid", "line"),
        ),
    )
}  # fmt: skip
_DUCKDB = {"string": "varchar", "int": "integer"}
Row: TypeAlias = tuple[Any, ...]
#: The rows of each table by their keys.
Data: TypeAlias = Mapping[str, Mapping[Row, Row]]
Edit: TypeAlias = Callable[[str], str]


class WrongResultError(AssertionError):
    """The result that was kept up to date is not that of the statement."""


def value(kind: str, random: Random) -> Any:
    """A value of a type out of few, or NULL."""
    if random.randrange(9) == 8:
        return None
    number = random.randrange(5)
    match kind:
        case "string":
            return "abcde"[number]
        case "boolean":
            return number % 2 == 0
        case "date":
            return date(2026, 1, 1) + timedelta(days=number)
        case "double":
            # Their sums are exact, whatever the order.
            return number / 2
        case "int":
            return number
        case _:
            return Decimal(number) + Decimal("0.25")


def row(one: DerivedInput, random: Random) -> Row:
    """A row; its key has small numbers."""
    return tuple(
        random.randrange(6) if name in one.keys else value(kind, random)
        for name, kind in one.columns.items()
    )


def key_of(one: DerivedInput, values: Row) -> Row:
    """The key of a row."""
    return tuple(values[list(one.columns).index(key)] for key in one.keys)


def first_data(random: Random) -> Data:
    """Some rows of each table."""
    return {
        name: {
            key_of(one, values): values
            for values in (row(one, random) for _ in range(random.randrange(3, 9)))
        }
        for name, one in INPUTS.items()
    }


@dataclass(frozen=True, slots=True)
class State:
    """The rows after a batch of changes, and what a step learns of it besides.

    Attributes:
        data: the rows of each table.
        written: keys that count as changed though their rows did not change, or are in no state:
            those of files that a reload or another engine wrote again.
        expired: whether the state before is gone, so that the next step computes all.
    """

    data: Data
    written: Mapping[str, frozenset[Row]] = field(default_factory=dict)
    expired: bool = False


def changed(data: Data, random: Random) -> State:
    """The state after a batch.

    Rows are inserted, updated, deleted, and get other keys; seldom a table is emptied or reloaded.
    """
    after = {name: dict(rows) for name, rows in data.items()}
    written: dict[str, frozenset[Row]] = {}
    for name, one in INPUTS.items():
        if random.randrange(6) == 5:
            keys = (key_of(one, row(one, random)) for _ in range(random.randrange(1, 4)))
            written[name] = frozenset(keys)
        if random.randrange(5) < 2:
            continue
        what = random.randrange(30)
        if what == 29:
            after[name] = {}
        elif what == 28:
            loaded = [row(one, random) for _ in range(random.randrange(8))]
            kept = [values for values in data[name].values() if random.randrange(2)]
            after[name] = {key_of(one, values): values for values in [*loaded, *kept]}
            written[name] = frozenset((*data[name], *after[name]))
        else:
            for _ in range(random.randrange(1, 4)):
                _change_row(one, after[name], random)
    return State(after, written, expired=random.randrange(15) == 14)


def _change_row(one: DerivedInput, rows: dict[Row, Row], random: Random) -> None:
    """Delete a row, give one another key, or insert or update one."""
    keys, what, values = list(rows), random.randrange(6), row(one, random)
    if keys and what >= 4:
        gone = rows.pop(random.choice(keys))
        if what == 4:
            return
        key = iter(key_of(one, values))
        values = tuple(
            next(key) if name in one.keys else value
            for name, value in zip(one.columns, gone, strict=True)
        )
    rows[key_of(one, values)] = values


def _relations(prefix: str) -> dict[str, str]:
    return {name: f"{prefix}_{name.partition('.')[2]}" for name in INPUTS}


def _changed_keys() -> dict[str, str]:
    """The keys of each table that count as changed."""
    return {name: f"changed_{name.partition('.')[2]}" for name in INPUTS}


def _literal(one: Any) -> str:
    """A value of `value` as SQL."""
    if one is None:
        return "NULL"
    return f"'{one}'" if isinstance(one, str | date) else str(one)


class Tables:
    """The tables of a database in the states that a step reads."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        for prefix in ("old", "new", "touched_old", "touched_new"):
            for name, relation in _relations(prefix).items():
                columns = ", ".join(
                    f"{column} {_DUCKDB.get(kind, kind)}"
                    for column, kind in INPUTS[name].columns.items()
                )
                self.connection.execute(f"CREATE TABLE {relation} ({columns})")

        for name, relation in _changed_keys().items():
            keys = ", ".join(INPUTS[name].keys)
            rows = f"SELECT {keys} FROM {_relations('new')[name]}"
            self.connection.execute(f"CREATE TABLE {relation} AS {rows}")

    def load(self, prefix: str, data: Data) -> None:
        """Give the tables of a state their rows."""
        relations = _relations(prefix)
        self._fill({relations[name]: rows.values() for name, rows in data.items()})

    def load_step(self, before: State, after: State) -> None:
        """Give the tables the rows before and after a batch, and what the step knows of it."""
        self.load("old", before.data)
        self.load("new", after.data)
        keys = touched_keys(before, after)
        for state, data in (("old", before.data), ("new", after.data)):
            touched = {
                name: {key: rows[key] for key in keys[name] if key in rows}
                for name, rows in data.items()
            }
            self.load(f"touched_{state}", touched)
        self._fill({relation: keys[name] for name, relation in _changed_keys().items()})

    def _fill(self, tables: Mapping[str, Iterable[Row]]) -> None:
        # Literals: DuckDB looks for packages that are not there at each parameter.
        script = []
        for relation, rows in tables.items():
            script.append(f"DELETE FROM {relation};")
            if shown := [f"({', '.join(map(_literal, row))})" for row in rows]:
                script.append(f"INSERT INTO {relation} VALUES {', '.join(shown)};")
        self.connection.execute("".join(script))

    def narrow(self, name: str, columns: Mapping[str, str]) -> None:
        """Make the view of an input's rows with affected values, as a step of the engine does."""
        same = " AND ".join(
            f'v."{column}" IS NOT DISTINCT FROM k."{key}"' for column, key in columns.items()
        )
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW narrow_{name.rpartition('.')[2]} AS "
            f"SELECT v.* FROM {_relations('new')[name]} v SEMI JOIN affected k ON {same}"
        )

    def bag(self, sql: str) -> tuple[Counter[Row], list[str]]:
        """The rows of a query with their numbers, and the types of its columns."""
        answer = self.connection.execute(sql)
        types = [str(column[1]) for column in answer.description or []]
        return Counter(answer.fetchall()), types


def touched_keys(before: State, after: State) -> dict[str, set[Row]]:
    """The keys of each table that count as changed: more than those whose rows differ."""
    return {
        name: set(after.written.get(name, ()))
        | {
            key
            for key in (*before.data[name], *rows)
            if before.data[name].get(key) != rows.get(key)
        }
        for name, rows in after.data.items()
    }


@dataclass(slots=True)
class Counts:
    """What some runs did."""

    steps: int = 0
    incremental: int = 0
    full: int = 0
    totals: int = 0
    unknown: int = 0
    expired: int = 0
    rows: int = 0
    recomputed: int = 0


def follow(
    sql: str,
    states: Sequence[State],
    tables: Tables,
    counts: Counts,
    *,
    edit_keys: Edit = str,
    edit_restricted: Edit = str,
) -> str | None:
    """Keep a statement up to date from state to state; the reason if it is computed as a whole.

    Raises WrongResultError where a result differs from the statement's, as bags, with their types.
    """
    statement = parse(sql, INPUTS, "random.sql")
    plan = analyse(statement)
    if isinstance(plan, FullPlan):
        counts.full += 1
        return plan.reason
    counts.incremental += 1
    if isinstance(plan, TotalsPlan):
        _follow_totals(plan, states, tables, counts)
        return None
    whole = statement_sql(statement, _relations("new"), dialect="duckdb")
    relations = [_relations(state) for state in ("old", "new", "touched_old", "touched_new")]
    narrow = restrictable_inputs(plan)
    again_sql = edit_restricted(
        restricted_sql(
            plan,
            _relations("new") | {name: f"narrow_{name.split('.')[-1]}" for name in narrow},
            "affected",
            dialect="duckdb",
        )
    )
    places = [statement.columns.index(column) for column in plan.columns]
    tables.load("new", states[0].data)
    stored, types = tables.bag(whole)
    for before, after in itertools.pairwise(states):
        tables.load_step(before, after)
        if after.expired:
            counts.expired += 1
            stored, _ = tables.bag(whole)
            continue
        keys_sql = affected_keys_sql(
            plan,
            *relations,
            changed=_changed_keys(),
            unchanged=[name for name, keys in touched_keys(before, after).items() if not keys],
            dialect="duckdb",
        )
        tables.connection.execute(f"CREATE OR REPLACE TEMP TABLE affected AS {edit_keys(keys_sql)}")
        affected = set(tables.connection.execute("SELECT * FROM affected").fetchall())
        for name, columns in narrow.items():
            tables.narrow(name, columns)
        again, again_types = tables.bag(again_sql)
        kept = {
            values: number
            for values, number in stored.items()
            if tuple(values[place] for place in places) not in affected
        }
        stored = Counter(kept) + again
        wanted, _ = tables.bag(whole)
        counts.steps += 1
        counts.rows += sum(wanted.values())
        counts.recomputed += sum(again.values())
        if stored != wanted or types != again_types:
            raise WrongResultError(
                f"{sql}\nrestricted by {plan.columns}\n"
                f"too many {stored - wanted}\nlacking {wanted - stored}\n{before}\n{after}"
            )
    return None


def _follow_totals(
    plan: TotalsPlan, states: Sequence[State], tables: Tables, counts: Counts
) -> None:
    """The same for totals, by the user's text, as a step has it."""
    sql = plan.statement.text
    whole = statement_sql(plan.statement, _relations("new"), dialect="duckdb")
    relations = [_relations(state) for state in ("old", "new", "touched_old", "touched_new")]
    keys = [
        affected_keys_sql(part, *relations, changed=_changed_keys(), dialect="duckdb")
        for part in plan.parts
    ]
    narrowed = [
        NarrowedText(
            one.start,
            one.end,
            one.alias,
            f"affected_{number}",
            " AND ".join(f"v.{name} <=> k.k{at}" for at, name in enumerate(one.columns)),
        )
        for number, part in enumerate(plan.parts)
        for one in part.relations
    ]
    before_sql, now_sql = (
        _in_duckdb(parsed_query(sql, "q").over(_by_any_name(relations[state]), narrowed))
        for state in (0, 1)
    )
    tables.load("new", states[0].data)
    (stored,) = tables.connection.execute(whole).fetchall()
    for before, after in itertools.pairwise(states):
        tables.load_step(before, after)
        if after.expired:
            counts.expired += 1
            (stored,) = tables.connection.execute(whole).fetchall()
            continue
        for number, text in enumerate(keys):
            tables.connection.execute(f"CREATE OR REPLACE TEMP TABLE affected_{number} AS {text}")
        (old,) = tables.connection.execute(before_sql).fetchall()
        (new,) = tables.connection.execute(now_sql).fetchall()
        (wanted,) = tables.connection.execute(whole).fetchall()
        counts.steps += 1
        counts.totals += 1
        try:
            stored = tuple(merged(plan.merges, stored, old, new))
        except UnknownTotalError:
            counts.unknown += 1
            stored = wanted
        if stored != wanted:
            raise WrongResultError(
                f"{sql}\ntotals by {plan.columns}\n{stored} instead of {wanted}\n{before}\n{after}"
            )


def _by_any_name(relations: Mapping[str, str]) -> dict[str, str]:
    """The relations by the names of inputs, with and without their task."""
    return {**relations, **{name.partition(".")[2]: one for name, one in relations.items()}}


def _in_duckdb(text: str) -> str:
    """A text of Spark, which the random statements keep simple, in DuckDB's dialect."""
    return sqlglot.transpile(text, read="spark", write="duckdb")[0].replace("LEFT SEMI", "SEMI")


def histories(random: Random, batches: int) -> list[State]:
    """The states of the tables over some batches of changes."""
    states = [State(first_data(random))]
    for _ in range(batches):
        states.append(changed(states[-1].data, random))
    return states
