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
from polynya.model.names import Dialect
from polynya.query.dialects import views_in
from tests.lab.lab import Lab, Look, drop, put
from tests.lab.landed import LandedTable
from tests.query.dialects import comparable

pytestmark = pytest.mark.spark
EXTENSIONS = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")


def shown_by_duckdb(users: Look, view: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows of a view as DuckDB has it."""
    dataset, shape = users.dataset, users.table().shape()
    table = python_catalog(load_project(users.lab.project).target).load_table(
        (dataset.relations.internal_schema, dataset.relations.internal_table)
    )
    stored = f"iceberg_scan('{metadata_file(table)}')"
    [found] = [one for one in views_in(Dialect.DUCKDB, dataset, shape, stored) if one.name == view]
    with duckdb.connect(config={"extension_directory": EXTENSIONS}) as connection:
        for name in ("avro", "iceberg"):
            connection.execute(f"LOAD {name}")
        # What the clock of the reader says does not count.
        connection.execute("SET TimeZone = 'America/Lima'")
        return list(found.columns), connection.execute(found.sql).fetchall()


@pytest.mark.slow
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


def test_elements_that_a_pending_record_lacks(lab: Lab) -> None:
    columns = [
        {"name": "id", "expression": "id", "type": "int", "key": 1},
        {"name": "line", "expression": "lines[].name", "type": "string", "key": 2},
        {"name": "amount", "expression": "lines[].amount", "type": "int"},
    ]
    orders = LandedTable(
        lab, {"mode": "merge", "columns": columns, "replace_elements": True, "history": True}
    )
    line = [{"name": name, "amount": number} for number, name in enumerate("abc")]
    orders.take({"id": 1, "lines": line}, {"id": 2, "lines": line[:1]}, {"id": 3, "lines": line})
    orders.land({"id": 1, "lines": line[1:2]}, {"id": 2, "lines": []}, {"id": 1, "lines": line[:2]})
    orders.run("never")

    look = orders.look
    for view in (look.dataset.relations.view, look.dataset.relations.history_view):
        names, rows = shown_by_duckdb(look, view)
        listed = ", ".join(f"`{name}`" for name in names)
        wanted = lab.rows(f"SELECT {listed} FROM {look.dataset.relations.schema}.{view}")
        found = sorted((tuple(map(comparable, row)) for row in rows), key=repr)
        assert found == sorted((tuple(map(comparable, row)) for row in wanted), key=repr)
        assert found
