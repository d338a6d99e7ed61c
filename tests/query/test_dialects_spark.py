"""The views of each engine show the rows that Spark's show: run by DuckDB over the same tables."""

from __future__ import annotations

import pytest

from polynya.lake.fold.live_views import columns_of
from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project
from polynya.model.names import Dialect
from polynya.query.dialects import views_in
from tests.lab.lab import Feed, Lab, drop, put
from tests.query.dialects import ordered, rows_in

pytestmark = pytest.mark.spark


STORED = ("users__current_stored", "users__history_stored")
#: In a catalog of Spark's the text of Databricks is Spark's own.
DIALECTS = [one for one in Dialect if one not in {Dialect.SPARK, Dialect.DUCKDB}]


def assert_same(users: Feed, *views: str) -> None:
    """Each dialect shows what Spark shows, over the stored rows as PyIceberg reads them."""
    dataset, shape = users.dataset, users.table().shape()
    table = python_catalog(load_project(users.lab.project).target).load_table(
        (dataset.relations.internal_schema, dataset.relations.internal_table)
    )
    stored = table.scan().to_arrow()
    made = {
        dialect: views_in(dialect, dataset, shape, dialect.quote("s", "stored"))
        for dialect in DIALECTS
    }
    for view in views:
        names = list(columns_of(dataset, shape, view) or {})
        wanted = users.lab.rows(f"SELECT * FROM {dataset.relations.schema}.{view}")
        assert wanted
        for dialect, written in made.items():
            [found] = [one for one in written if one.name.lower() == view]
            shown = [at for at, name in enumerate(names) if name not in found.left_out]
            rows = [tuple(row[at] for at in shown) for row in wanted]
            assert rows_in(dialect, found.sql, shape, stored) == ordered(rows), (dialect, view)


@pytest.mark.slow
def test_pending_late_and_deleted_records(lab: Lab) -> None:
    users = lab.feed(coalesce_unchanged=True, task={"views": {"headers": True}})
    users.apply(*(put(key, key, name=f"n{key}", n=key) for key in range(1, 6)))
    users.apply(put(1, 10, name="n1", n=1), drop(2, 11), put(3, 2, name="late", n=0))
    users.copy(put(1, 20, name="pending", n=2), drop(4, 21), put(9, 22, name="new", n=9))
    users.copy(put(5, 3, name="before all", n=None), put(2, 30, name="back", n=None))

    assert_same(users, "users", "users__whdr", "users__history", "users__changes", *STORED)
    users.apply()
    assert_same(users, "users", "users__history", *STORED)


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
