"""The independent readers agree on a table that PyIceberg wrote, without any JVM."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.oracle.packs.read_back import (
    CATALOG,
    READERS,
    internal_table,
    partition_counts,
    partition_rows,
    tables,
)

MOMENT = datetime(2026, 1, 1, 0, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project folder whose warehouse holds one internal table with two commits."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    catalog = SqlCatalog(
        CATALOG, uri=f"sqlite:///{warehouse / 'catalog.db'}", warehouse=f"file://{warehouse}"
    )
    namespace, name = internal_table("shop", "users")
    catalog.create_namespace(namespace)
    rows = pa.table(
        {
            "hdr__partition": ["current", "prior", "current"],
            "id": [1, 1, 2],
            "at": pa.array([MOMENT] * 3, pa.timestamp("us", tz="UTC")),
            "raw": [b"\x00", None, b"\xff"],
        }
    )
    table = catalog.create_table((namespace, name), rows.schema)
    table.append(rows)
    table.delete("id = 2")
    return tmp_path


def test_tables_are_found(project: Path) -> None:
    assert tables(project) == [("shop_internal", "users_internal")]


@pytest.mark.parametrize("reader", READERS)
def test_partitions_are_counted_and_read(project: Path, reader: str) -> None:
    assert partition_counts(project, "shop", "users", reader=reader) == {"current": 1, "prior": 1}
    assert partition_counts(project, "shop", "unknown", reader=reader) == {}

    rows = partition_rows(project, "shop", "users", "current", ("id", "at", "raw"), reader=reader)

    assert [(key, moment.astimezone(UTC), bytes(raw)) for key, moment, raw in rows] == [
        (1, MOMENT, b"\x00")
    ]
