"""The views for Trino show the rows that Spark's show: run by DuckDB over the same tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project
from polynya.model.names import Dialect
from polynya.query.dialects import views_in
from tests.lab.lab import Feed, Lab, drop, put

pytestmark = pytest.mark.spark


def shown_by_trino(users: Feed, view: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows of a view in Trino's SQL; the table is read by PyIceberg."""
    dataset, shape = users.dataset, users.table().shape()
    table = python_catalog(load_project(users.lab.project).target).load_table(
        (dataset.relations.internal_schema, dataset.relations.internal_table)
    )
    relations = dataset.relations
    stored = Dialect.TRINO.quote(relations.internal_schema, relations.internal_table)
    [found] = [one for one in views_in(Dialect.TRINO, dataset, shape, stored) if one.name == view]
    tree = sqlglot.parse_one(found.sql, read="trino")
    text = tree.transform(binary_hash).sql("duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("stored", table.scan().to_arrow())
        connection.execute(f"CREATE SCHEMA {dataset.relations.internal_schema}")
        connection.execute(f"CREATE VIEW {dataset.relations.internal} AS FROM stored")
        return list(found.columns), connection.execute(text).fetchall()


def binary_hash(node: exp.Expression) -> exp.Expression:
    """DuckDB's `sha1` gives the hash as text."""
    return exp.Unhex(this=node.copy()) if isinstance(node, exp.SHA) else node


def comparable(value: Any) -> Any:
    """Trino's views show instants as times of UTC without a zone; maps come in any order."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return sorted((key, comparable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return sorted((key, comparable(inner)) for key, inner in value)
        return [comparable(one) for one in value]
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def assert_same(users: Feed, *views: str) -> None:
    for view in views:
        names, rows = shown_by_trino(users, view)
        columns = ", ".join(f"`{name}`" for name in names)
        wanted = users.lab.rows(f"SELECT {columns} FROM {users.dataset.relations.schema}.{view}")
        found = sorted((tuple(map(comparable, row)) for row in rows), key=repr)
        assert found == sorted((tuple(map(comparable, row)) for row in wanted), key=repr)
        assert found


def test_pending_late_and_deleted_records(lab: Lab) -> None:
    users = lab.feed(coalesce_unchanged=True, task={"views": {"headers": True}})
    users.apply(*(put(key, key, name=f"n{key}", n=key) for key in range(1, 6)))
    users.apply(put(1, 10, name="n1", n=1), drop(2, 11), put(3, 2, name="late", n=0))
    users.copy(put(1, 20, name="pending", n=2), drop(4, 21), put(9, 22, name="new", n=9))
    users.copy(put(5, 3, name="before all", n=None), put(2, 30, name="back", n=None))

    assert_same(users, "users", "users__whdr", "users__history", "users__changes")
    users.apply()
    assert_same(users, "users", "users__history")


TYPES = {
    "id": "bigint", "seq": "int", "day": "date", "amount": "decimal(20,4)", "happened": "timestamp",
    "blob": "binary", "tags": "array<string>", "spot": "struct<x:double,ok:boolean>",
    "flags": "map<string,int>", "name": "string", "v": "boolean",
}  # fmt: skip


@pytest.mark.slow
def test_types_soft_deletes_and_values_that_were_not_sent(lab: Lab) -> None:
    users = lab.feed(columns=TYPES, delete_mode="soft", ignore_null_updates=True, history=None)
    full = {
        "day": "2026-02-03", "amount": "1234567890123456.7891",
        "happened": "2026-01-01T00:00:01.5Z",
        "blob": "AAEC/w==", "tags": ["a", None], "spot": {"x": 1.5, "ok": None},
        "flags": {"k": 1, "l": None}, "v": True, "name": "it's \u00e9 \"q\"",
    }  # fmt: skip
    users.apply(put(1, 1, **full), put(2, 2, **full), put(3, 3, name=None, tags=[]))
    users.copy(put(1, 10, name="only the name"), put(2, 11, amount="0.0001"), drop(2, 12))
    users.copy(put(4, 13, **full), put(1, 5, day="2020-01-01", name="late"))

    assert_same(users, "users", "users__changes")
