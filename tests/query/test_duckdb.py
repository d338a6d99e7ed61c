"""The views for DuckDB, over the metadata file of a table, show the rows that Spark's show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import duckdb_ext
import pytest

from polynya.lake.read.inspect import metadata_file
from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project
from polynya.query.views import duckdb_views
from tests.lab.lab import Feed, Lab, drop, put
from tests.query.test_trino import comparable

pytestmark = pytest.mark.spark
EXTENSIONS = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")


def shown_by_duckdb(users: Feed, view: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows of a view as DuckDB has it."""
    dataset, shape = users.dataset, users.table().shape()
    table = python_catalog(load_project(users.lab.project).target).load_table(
        (dataset.relations.internal_schema, dataset.relations.internal_table)
    )
    [found] = [
        one for one in duckdb_views(dataset, shape, metadata_file(table)) if one.name == view
    ]
    with duckdb.connect(config={"extension_directory": EXTENSIONS}) as connection:
        for name in ("avro", "iceberg"):
            connection.execute(f"LOAD {name}")
        # What the clock of the reader says does not count.
        connection.execute("SET TimeZone = 'America/Lima'")
        return list(found.columns), connection.execute(found.sql).fetchall()


def test_pending_late_and_deleted_records(lab: Lab) -> None:
    users = lab.feed(
        task={"views": {"headers": True}},
        columns={"id": "bigint", "seq": "int", "happened": "timestamp", "blob": "binary"},
    )
    users.apply(
        *(put(key, key, name=f"n{key}", happened="2026-01-01T00:00:01.5Z") for key in (1, 2, 3))
    )
    users.apply(put(1, 10, name="it's", blob="AAEC/w=="), drop(2, 11), put(3, 2, name="late"))
    users.copy(put(1, 20, name=None), drop(3, 21), put(9, 22, name="new"), put(2, 3, name="before"))

    for view in ("users", "users__whdr", "users__history", "users__changes"):
        names, rows = shown_by_duckdb(users, view)
        columns = ", ".join(f"`{name}`" for name in names)
        wanted = users.lab.rows(f"SELECT {columns} FROM {users.dataset.relations.schema}.{view}")
        found = sorted((tuple(map(comparable, row)) for row in rows), key=repr)
        assert found == sorted((tuple(map(comparable, row)) for row in wanted), key=repr)
        assert found
