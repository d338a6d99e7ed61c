"""The keys that changed between two snapshots of an Iceberg table of others, from its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import LongType, StringType

from polynya.lake.iceberg.reading import FileAccess
from polynya.lake.read.changed_keys import changed_keys_of_others
from polynya.store.data_files import LocalFiles

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A catalog of others."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("others", uri=uri, warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("crm")
    yield catalog
    catalog.close()


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """A table with two files."""
    table = catalog.create_table("crm.rates", SCHEMA)
    table.append(rows(a=1, b=2))
    table.append(rows(c=3))
    return table


def rows(**values: int) -> pa.Table:
    """Rows by their keys."""
    return pa.table({"id": list(values), "n": list(values.values())}, SCHEMA)


class Opened:
    """What is asked of a table, without a JVM."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def reach(self) -> FileAccess:
        """Its files are on the disk."""
        return FileAccess(LocalFiles(), LocalFiles())

    def kept_metadata(self) -> dict[str, Any]:
        """The newest metadata."""
        path = self._table.refresh().metadata_location.removeprefix("file://")
        document: dict[str, Any] = json.loads(Path(path).read_text())
        return document


def number(table: Table) -> int:
    """The newest snapshot."""
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def keys_since(table: Table, before: int, *keys: str, now: int | None = None) -> list[str] | str:
    """The keys that changed since a snapshot, each once, or why they are not known."""
    opened: Any = Opened(table)
    found = changed_keys_of_others(opened, keys or ("id",), before, now or number(table))
    return found if isinstance(found, str) else sorted(found.column("id").to_pylist())


def test_rows_of_added_and_removed_files_count(table: Table) -> None:
    first = number(table)
    table.append(rows(d=4))
    appended = number(table)
    table.delete("id = 'a'")
    deleted = number(table)
    table.delete("id = 'c'")
    table.overwrite(rows(b=5), "id = 'b'")

    assert keys_since(table, first, now=appended) == ["d"]
    # The row beside the deleted one was written again.
    assert keys_since(table, first, now=deleted) == ["a", "b", "d"]
    assert keys_since(table, deleted) == ["b", "c"]
    assert keys_since(table, first) == ["a", "b", "c", "d"]
    assert keys_since(table, number(table)) == []


def test_a_line_that_is_broken_tells_nothing(table: Table) -> None:
    first = number(table)
    table.append(rows(d=4))
    second = number(table)
    assert keys_since(table, second, now=first) == (
        "a snapshot since the one that it has read has expired"
    )
    assert keys_since(table, 7) == "the snapshot that it has read has expired"
    table.maintenance.expire_snapshots().by_id(first).commit()
    assert keys_since(table, first) == "the snapshot that it has read has expired"


def test_a_column_that_comes_back_under_its_name_is_another_one(table: Table) -> None:
    first = number(table)
    with table.update_schema() as update:
        update.delete_column("n")
    with table.update_schema() as update:
        update.add_column("n", LongType())
    table.append(rows(d=4))
    assert keys_since(table, first) == "its columns changed"


def test_keys_that_files_do_not_have_are_not_guessed(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("crm.others", SCHEMA)
    table.append(rows(a=1))
    with table.update_schema() as update:
        update.add_column("region", StringType())
    table.append(pa.table({"id": ["b"], "n": [1], "region": ["x"]}))
    second = number(table)
    assert keys_since(table, second, "x") == "its key `x` has a type that is not read"
    table.delete("id = 'a'")
    assert "lacks a column of the key" in keys_since(table, second, "id", "region")
    pq.write_table(rows(z=1), tmp_path / "plain.parquet")
    third = number(table)
    table.add_files([str(tmp_path / "plain.parquet")])
    assert "has other types than the table" in keys_since(table, third)


def test_a_removed_file_that_is_gone_tells_nothing(table: Table) -> None:
    first = number(table)
    paths = [str(file.file.file_path) for file in table.scan().plan_files()]
    table.delete("id = 'c'")
    for path in paths:
        Path(path.removeprefix("file://")).unlink()
    assert keys_since(table, first).__class__ is str


@pytest.mark.parametrize("damage", [b"", b"Obj\x01", b"no Avro at all"])
def test_metadata_that_is_not_iceberg_tells_nothing(table: Table, damage: bytes) -> None:
    first = number(table)
    table.append(rows(d=4))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    Path(str(snapshot.manifest_list).removeprefix("file://")).write_bytes(damage)
    said = keys_since(table, first)
    assert isinstance(said, str)
    assert said.startswith("a file was not read: ")
