"""The queries of a mart give what plain Python says, over random histories, in DuckDB.

They are Spark's SQL; sqlglot translates them for this test only. `tests/e2e` runs them in Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
import sqlglot

from polynya.model.config.derived import DerivedTask
from tests.derived.mart_shop import TABLES, Shop, changes, check, mart_task

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
_TYPES = {"string": "varchar", "timestamp": "timestamptz"}
_HEADER = (
    "hdr__from_timestamp timestamptz, hdr__to_timestamp timestamptz, hdr__operation varchar, "
    "hdr__deleted boolean"
)


class Mart:
    """A mart in DuckDB, over the tables of a shop."""

    def __init__(self, task: DerivedTask) -> None:
        self.task = task
        self.database = duckdb.connect(":memory:", config={"threads": 1})
        self.database.execute("SET TimeZone = 'UTC'; CREATE SCHEMA shop; CREATE SCHEMA sales")
        # Monday is the first day of Spark's weeks, Sunday of DuckDB's.
        self.database.execute("CREATE MACRO weekday(day) AS isodow(day) - 1")
        for name, columns in TABLES.items():
            listed = ", ".join(f"{c} {_TYPES.get(kind, kind)}" for c, kind in columns.items())
            self.database.execute(f"CREATE TABLE shop.{name} ({listed})")
            self.database.execute(f"CREATE TABLE shop.{name}__history ({listed}, {_HEADER})")
        self.sql = {
            name: sqlglot.transpile(query.text, read="spark", write="duckdb")[0]
            for name, query in task.queries.items()
        }

    def derive(self, shop: Shop) -> None:
        """Derive all tables from those of the shop, dimensions first."""
        for name in TABLES:
            self._fill(f"shop.{name}", [tuple(row.values()) for row in shop.rows(name)])
            self._fill(f"shop.{name}__history", list(shop.versions(name)))
        for name, sql in self.sql.items():
            self.database.execute(f"CREATE OR REPLACE TABLE sales.{name} AS {sql}")

    def _fill(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self.database.execute(f"DELETE FROM {table}")
        if rows:
            # As text: to bind many values takes seconds.
            listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            self.database.execute(f"INSERT INTO {table} VALUES {listed}")

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.database.sql(sql).fetchall()


def _literal(value: Any) -> str:
    """A value in DuckDB's SQL."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


@pytest.fixture(params=["first_version", "unknown"])
def mart(request: Any, tmp_path: Path) -> Iterator[tuple[Mart, str]]:
    """A mart with each of the two ways to treat early facts."""
    yield Mart(mart_task(tmp_path, request.param)), request.param


def test_a_mart_shows_what_the_tables_say_after_random_histories(mart: tuple[Mart, str]) -> None:
    tables, before_first = mart
    for seed in range(SEED, SEED + 3):
        random = Random(seed)
        shop = Shop(before_first)
        for _ in range(3):
            for change in changes(random, 40):
                shop.take(change)
            for log in shop.log.values():
                # Late changes are sorted in, as the fold does; equal times stay in their order.
                log.sort(key=lambda event: event.at)
            tables.derive(shop)
            try:
                check(tables.answer, shop)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {before_first}") from error


def test_a_version_keeps_its_key_whatever_comes_before_and_after(mart: tuple[Mart, str]) -> None:
    tables, before_first = mart
    random, shop = Random(SEED), Shop(before_first)
    known: dict[Any, str] = {}
    for change in changes(random, 150):
        shop.take(change)
    late = shop.log.popitem()[1]
    for _ in range(2):
        tables.derive(shop)
        keys = tables.answer("SELECT customer_id, valid_from, customer_key FROM sales.customer")
        now = {row[:2]: row[2] for row in keys if row[1].year > 1000}
        assert all(known[begin] == key for begin, key in now.items() if begin in known)
        known |= now
        for change in late:
            shop.take(change)


#: A fault in the text of a query, as what stands there and what is written instead.
FAULTS = (
    ("first version of a parent", "customer",
     ") THEN TIMESTAMP '1000",
     ") THEN TIMESTAMP '2027"),
    ("deleted parents", "customer",
     "CASE WHEN NOT hdr__deleted THEN `district` END",
     "`district`"),
    ("intersection", "customer",
     "least(t.`version_ends`, r.hdr__ends)",
     "t.`version_ends`"),
    ("overlap", "customer",
     "r.hdr__begins < t.`version_ends`",
     "r.hdr__begins <= t.`version_begins`"),
    ("deleted members", "customer",
     "WHERE NOT `version_is_gone`",
     ""),
    ("runs", "customer",
     "WHERE NOT coalesce(`version_repeats`, false)",
     ""),
    ("empty versions", "customer",
     "WHERE hdr__from_timestamp < coalesce(",
     "WHERE hdr__from_timestamp <= coalesce("),
    ("as of the time", "payments",
     "`customer`.valid_to > t.",
     "`customer`.valid_to >= t."),
    ("unknown member", "payments",
     "LEFT JOIN `sales`.`customer`",
     "JOIN `sales`.`customer`"),
    ("end of a period", "customers_monthly",
     "`version_ends` >= p.",
     "`version_ends` > p."),
    ("first time", "rentals",
     "min(`paid_at`)",
     "max(`paid_at`)"),
)  # fmt: skip


@pytest.mark.parametrize(("what", "table", "text", "fault"), FAULTS, ids=[one[0] for one in FAULTS])
def test_planted_faults_are_found(
    tmp_path: Path, what: str, table: str, text: str, fault: str
) -> None:
    task = mart_task(tmp_path)
    query = task.queries[table]
    assert text in query.text
    wrong = query.model_copy(update={"text": query.text.replace(text, fault)})
    tables = Mart(task.model_copy(update={"queries": {**task.queries, table: wrong}}))

    with pytest.raises(AssertionError):
        for seed in range(SEED, SEED + 30):
            shop = Shop()
            for change in changes(Random(seed), 100):
                shop.take(change)
            tables.derive(shop)
            check(tables.answer, shop)
        return
