"""Data files and position deletes read without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.lake.iceberg.deletes import FILE_STEP, deleted_places
from polynya.lake.iceberg.files import DeleteFile
from polynya.lake.iceberg.reading import TableFile, is_read_by
from polynya.store.aws.data_objects import S3Files
from polynya.store.data_files import LocalFiles


def written(folder: Path, *columns: tuple[str, int, pa.Array]) -> TableFile:
    """A file whose columns have a name, a field id and values, in row groups of two rows."""
    fields = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(number)})
        for name, number, values in columns
    ]
    rows = pa.table([values for _, _, values in columns], pa.schema(fields))
    path = folder / "rows.parquet"
    pq.write_table(rows, path, row_group_size=2)
    return TableFile(LocalFiles(), str(path))


def column(name: str, number: int, kind: Any) -> dict[str, Any]:
    """A column as the schema of a table in JSON has it."""
    return {"name": name, "id": number, "type": kind, "required": False}


def test_a_column_is_found_by_its_id(tmp_path: Path) -> None:
    file = written(tmp_path, ("old", 1, pa.array([1, 2, 3])), ("id", 2, pa.array(["a", "b", "c"])))

    rows = file.read(1, [column("id", 1, "long"), column("new", 9, "decimal(9, 2)")])

    assert rows.to_pylist() == [{"id": 3, "new": None}]
    assert rows.schema.types == [pa.int64(), pa.decimal128(9, 2)]
    assert file.starts == [0, 2]
    assert [file.bounds(group, column("id", 1, "long")) for group in file.groups] == [
        (1, 2),
        (3, 3),
    ]


@pytest.mark.parametrize(
    ("values", "kind", "there"),
    [
        (pa.array([1], pa.int32()), "int", True),
        (pa.array([1], pa.int32()), "long", True),
        (pa.array([1], pa.int64()), "int", False),
        (pa.array([1.5], pa.float32()), "double", True),
        (pa.array(["x"]), "binary", False),
        (pa.array([1], pa.decimal128(9, 2)), "decimal(18, 2)", True),
        (pa.array([1], pa.decimal128(9, 2)), "decimal(18, 3)", False),
        (pa.array([1], pa.timestamp("us")), "timestamp", True),
        (pa.array([1], pa.timestamp("us")), "timestamptz", False),
    ],
)
def test_a_type_is_read_when_it_was_promoted_and_not_when_it_is_another(
    tmp_path: Path, values: pa.Array, kind: str, there: bool
) -> None:
    assert written(tmp_path, ("x", 1, values)).reads([column("x", 1, kind)]) is there


def test_a_struct_is_read_while_it_is_the_same_inside(tmp_path: Path) -> None:
    inside = pa.field("city", pa.string(), metadata={"PARQUET:field_id": "2"})
    file = written(tmp_path, ("home", 1, pa.array([{"city": "Oslo"}], pa.struct([inside]))))

    def struct(*fields: tuple[str, int]) -> dict[str, Any]:
        named = [column(name, number, "string") for name, number in fields]
        return {"type": "struct", "fields": named}

    home = column("home", 1, struct(("city", 2)))
    assert file.reads([home])
    assert file.read(0, [home]).to_pylist() == [{"home": {"city": "Oslo"}}]
    assert not file.reads([column("home", 1, struct(("town", 2)))])
    assert not file.reads([column("home", 1, struct(("city", 3)))])
    assert not file.reads([column("home", 1, struct(("city", 2), ("zip", 3)))])


def test_a_file_without_ids_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"id": [1]}), path)

    assert not TableFile(LocalFiles(), str(path)).reads([column("id", 1, "long")])


@pytest.mark.parametrize(
    ("location", "local", "far"),
    [
        ("/a/b c.parquet", True, False),
        ("file:/a/b.parquet", True, False),
        ("file:///a/b%20c.parquet", True, False),
        ("s3://bucket/b.parquet", False, True),
        ("s3a://bucket/b%20c.parquet", False, True),
        ("s3://bucket//b.parquet", False, False),
        ("hdfs://host/b.parquet", False, False),
        ("/a/b.orc", False, False),
        ("s3://bucket/b.orc", False, False),
    ],
)
def test_parquet_is_read_where_it_is(location: str, local: bool, far: bool) -> None:
    assert is_read_by(LocalFiles(), location) is local
    assert is_read_by(S3Files("eu-central-1"), location) is far


def test_deleted_places_name_their_file_by_its_number(tmp_path: Path) -> None:
    deletes = []
    for name, rows in {"a": [("/one", 3), ("/two", 0)], "b": [("/else", 1), ("/one", 5)]}.items():
        path = tmp_path / f"{name}.parquet"
        files, positions = zip(*rows, strict=True)
        pq.write_table(pa.table({"file_path": files, "pos": positions}), path)
        deletes.append(DeleteFile(None, str(path)))

    deleted = deleted_places(LocalFiles(), ["/one", "/two"], deletes)

    assert deleted is not None
    assert deleted.places.to_pylist() == [3, FILE_STEP, 5]
    assert deleted.named == tuple(zip(deletes, [{"/one", "/two"}, {"/else", "/one"}], strict=True))
    elsewhere = DeleteFile(None, "s3://bucket/c.parquet")
    assert deleted_places(LocalFiles(), ["/one"], [elsewhere]) is None
