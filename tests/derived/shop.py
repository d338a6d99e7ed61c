"""Three tables of several types, their random histories, and a statement kept up to date over them.

The oracle is the statement itself over the present rows, in DuckDB.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import duckdb

from polynya.derived.affected import (
    FullPlan,
    affected_keys_sql,
    analyse,
    restrictable_inputs,
    restricted_sql,
    statement_sql,
)
from polynya.derived.schema import DerivedInput
from polynya.derived.statement import parse

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


def changed(data: Data, random: Random) -> Data:
    """The data after a batch: rows inserted, updated, deleted, seldom a table emptied."""
    after = {name: dict(rows) for name, rows in data.items()}
    for name, one in INPUTS.items():
        if random.randrange(5) < 2:
            continue
        if random.randrange(30) == 29:
            after[name] = {}
            continue
        for _ in range(random.randrange(1, 4)):
            keys = list(after[name])
            if keys and random.randrange(3) == 2:
                del after[name][random.choice(keys)]
            else:
                values = row(one, random)
                after[name][key_of(one, values)] = values
    return after


def _relations(prefix: str) -> dict[str, str]:
    return {name: f"{prefix}_{name.partition('.')[2]}" for name in INPUTS}


def _changed_keys() -> dict[str, str]:
    """The keys of the touched rows of each table, as a view."""
    return {name: f"changed_{name.partition('.')[2]}" for name in INPUTS}


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

        for name, view in _changed_keys().items():
            keys = ", ".join(INPUTS[name].keys)
            states = (_relations(f"touched_{state}")[name] for state in ("old", "new"))
            rows = " UNION ".join(f"SELECT {keys} FROM {state}" for state in states)
            self.connection.execute(f"CREATE VIEW {view} AS {rows}")

    def load(self, prefix: str, data: Data) -> None:
        """Give the tables of a state their rows."""
        for name, relation in _relations(prefix).items():
            self.connection.execute(f"DELETE FROM {relation}")
            rows = list(data[name].values())
            if rows:
                marks = ", ".join(f"({', '.join('?' * len(rows[0]))})" for _ in rows)
                self.connection.execute(
                    f"INSERT INTO {relation} VALUES {marks}", [v for r in rows for v in r]
                )

    def narrow(self, name: str, columns: Mapping[str, str]) -> None:
        """Make the view of an input's rows with affected values, as a step of the engine does."""
        same = " AND ".join(
            f'v."{column}" IS NOT DISTINCT FROM k."{key}"' for column, key in columns.items()
        )
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW narrow_{name.rsplit('.', maxsplit=1)[-1]} AS "
            f"SELECT v.* FROM {_relations('new')[name]} v SEMI JOIN affected k ON {same}"
        )

    def bag(self, sql: str) -> tuple[Counter[Row], list[str]]:
        """The rows of a query with their numbers, and the types of its columns."""
        answer = self.connection.execute(sql)
        types = [str(column[1]) for column in answer.description or []]
        return Counter(answer.fetchall()), types


def touched(data: Data, other: Data) -> Data:
    """The rows of `data` that `other` has not."""
    return {
        name: {key: values for key, values in rows.items() if other[name].get(key) != values}
        for name, rows in data.items()
    }


@dataclass(slots=True)
class Counts:
    """What some runs did."""

    steps: int = 0
    incremental: int = 0
    full: int = 0
    rows: int = 0
    recomputed: int = 0


def follow(
    sql: str,
    states: Sequence[Data],
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
    whole = statement_sql(statement, _relations("new"), dialect="duckdb")
    keys_sql = edit_keys(
        affected_keys_sql(
            plan,
            *(_relations(state) for state in ("old", "new", "touched_old", "touched_new")),
            changed=_changed_keys(),
            dialect="duckdb",
        )
    )
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
    tables.load("new", states[0])
    stored, types = tables.bag(whole)
    for before, after in itertools.pairwise(states):
        tables.load("old", before)
        tables.load("new", after)
        tables.load("touched_old", touched(before, after))
        tables.load("touched_new", touched(after, before))
        tables.connection.execute(f"CREATE OR REPLACE TEMP TABLE affected AS {keys_sql}")
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


def histories(random: Random, batches: int) -> list[Data]:
    """The states of the tables over some batches of changes."""
    return list(_states(first_data(random), random, batches))


def _states(data: Data, random: Random, batches: int) -> Iterator[Data]:
    yield data
    for _ in range(batches):
        data = changed(data, random)
        yield data
