"""The figures of a table, from its files alone, are those that scans of PyIceberg give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from polynya.lake.read.committed import CommittedTable, ConvertedTables, listed_tables, type_text
from polynya.lake.read.inspect import committed, states
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.table.state import ApplyState, CopyState
from polynya.model import headers as h
from polynya.model.errors import OperationError
from polynya.model.headers import Partition
from polynya.model.loader import load_project
from polynya.store.data_files import LocalFiles
from tests.lab.lab import Feed, Lab, drop, put

WITH_DELETES = {"history": True, "format_version": 2}
WITH_VECTORS = {"history": True, "format_version": 3}
LAID_OUT = {"history": False, "partition_by": ["bucket(2, id)"], "sort_by": ["name"]}


def scanned_states(table: Table) -> tuple[CopyState, ApplyState]:
    copy, apply = CopyState(), ApplyState()
    state = EqualTo(term=h.PARTITION, value=str(Partition.ASSET_STATE))
    for row in table.scan(row_filter=state).to_arrow().to_pylist():
        if row[h.COPY_CHANGE_IDENTIFIER] is not None:
            copy = CopyState.from_json(row[h.STATE])
        else:
            apply = ApplyState.from_json(row[h.STATE])
    return copy, apply


def scanned_files(table: Table) -> Counter[tuple[Any, ...]]:
    files = table.inspect.data_files().to_pylist()
    return Counter(
        (
            file["file_path"],
            file["partition"][h.PARTITION],
            file["record_count"],
            file["file_size_in_bytes"],
            file["spec_id"],
            file["sort_order_id"],
        )
        for file in files
    )


def agrees(table: Table, look: CommittedTable) -> None:
    """Each figure of a look is that of PyIceberg."""
    assert states(look) == scanned_states(table)
    assert scanned_files(table) == Counter(
        (file.path, file.partition, file.rows, file.size_bytes, file.spec, file.sort_order)
        for file in look.data_files()
    )
    for partition in Partition:
        rows = table.scan(row_filter=EqualTo(term=h.PARTITION, value=str(partition))).count()
        assert look.rows(partition) == rows, partition
    assert list(look.columns) == [field.name for field in table.schema().fields]


def both(users: Feed) -> tuple[Table, list[CommittedTable]]:
    """The table by PyIceberg; and by its files, found by themselves and by PyIceberg."""
    target = load_project(users.lab.project).target
    catalog, listed = python_catalog(target), listed_tables(target)
    assert listed is not None
    namespace, _, name = users.internal.partition(".")
    table = catalog.load_table((namespace, name))
    looks = [one.load_table((namespace, name)) for one in (listed, ConvertedTables(catalog))]
    return table, looks


@pytest.mark.parametrize(
    "settings", [WITH_DELETES, WITH_VECTORS, LAID_OUT], ids=["deletes", "vectors", "laid out"]
)
def test_figures_are_those_of_scans_whoever_wrote_last(lab: Lab, settings: dict[str, Any]) -> None:
    users = lab.feed(**settings)
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 9)))
    users.apply(put(1, 10, name="new"), drop(2, 11))
    users.apply(put(3, 12, name="new"), drop(4, 13))
    users.copy(put(1, 20, name="pending"), b"no record")
    table, looks = both(users)
    for look in looks:
        agrees(table, look)
    assert looks[0].rows(Partition.CURRENT) == 6

    # Another engine joins the files of both states, and those of rows.
    lab.spark.sql(
        f"CALL polynya.system.rewrite_data_files(table => '{users.internal}', "
        "options => map('rewrite-all', 'true'))"
    )
    table, looks = both(users)
    for look in looks:
        agrees(table, look)
    assert looks[0].rows(Partition.CURRENT) == 6


def avro(path: Path, schema: dict[str, Any], *records: dict[str, Any]) -> str:
    with path.open("wb") as file:
        fastavro.writer(file, schema, records)
    return str(path)


def record_of(name: str, **fields: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


def test_rows_that_another_engine_deleted_by_their_values_are_not_counted_wrongly(
    tmp_path: Path,
) -> None:
    bounds = record_of("bounds", lower_bound="bytes", upper_bound="bytes")
    of_list = record_of(
        "manifest",
        manifest_path="string",
        content="int",
        partition_spec_id="int",
        partitions={"type": "array", "items": bounds},
    )
    of_file = record_of(
        "file",
        content="int",
        file_path="string",
        partition=record_of("partition", **{h.PARTITION: "string"}),
        record_count="long",
    )
    of_entry = record_of("entry", status="int", data_file=of_file)
    partition = {h.PARTITION: "current"}
    entry = {"content": 2, "file_path": "x", "partition": partition, "record_count": 1}
    manifest = avro(tmp_path / "manifest", of_entry, {"status": 1, "data_file": entry})
    listed = {
        "manifest_path": manifest,
        "content": 1,
        "partition_spec_id": 0,
        "partitions": [{"lower_bound": b"current", "upper_bound": b"current"}],
    }
    snapshot = {"snapshot-id": 1, "manifest-list": avro(tmp_path / "list", of_list, listed)}
    field = {"name": h.PARTITION}
    metadata = {
        "location": "/lake/shop_internal/users_internal",
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
        "partition-specs": [{"spec-id": 0, "fields": [field]}],
    }
    table = CommittedTable("metadata.json", LocalFiles(), metadata)

    with pytest.raises(OperationError, match=r"users_internal has equality deletes"):
        table.rows(Partition.CURRENT)
    assert table.rows(Partition.PRIOR) == 0
    assert committed(table) is table


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("decimal(12, 2)", "decimal(12, 2)"),
        ({"type": "list", "element": "string"}, "list<string>"),
        ({"type": "map", "key": "string", "value": "long"}, "map<string, long>"),
        (
            {
                "type": "struct",
                "fields": [
                    {"name": "a", "type": "int"},
                    {"name": "b", "type": {"type": "list", "element": "date"}},
                ],
            },
            "struct<a: int, b: list<date>>",
        ),
    ],
)
def test_a_type_is_told_in_a_line(kind: Any, text: str) -> None:
    assert type_text(kind) == text
