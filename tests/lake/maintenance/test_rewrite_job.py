"""A group of files as a value: sent to another process, and written there without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.files import DataFile, FilePartition
from polynya.lake.iceberg.partitions import Parting, PartitionField, Spec
from polynya.lake.maintenance.job import RewriteJob, write
from polynya.lake.maintenance.rewrite_writer import Input, RowOrder
from polynya.store.data_files import LocalFiles

COLUMNS = [
    {"id": 1, "name": "hdr__partition", "type": "string", "required": False},
    {"id": 2, "name": "id", "type": "long", "required": False},
]
SCHEMA = pa.schema(
    [
        pa.field(one["name"], kind, metadata={"PARQUET:field_id": str(one["id"])})
        for one, kind in zip(COLUMNS, (pa.string(), pa.int64()), strict=True)
    ]
)
FILES = LocalFiles()


def job(folder: Path, *files: Sequence[int], outputs: int = 1, **how: Any) -> RewriteJob:
    """Of files with these keys; the first row of each is deleted."""
    inputs = []
    for number, keys in enumerate(files):
        path = str(folder / f"{number}.parquet")
        pq.write_table(pa.table([["current"] * len(keys), keys], schema=SCHEMA), path)
        file = DataFile(None, path, "current", len(keys), 1000)
        inputs.append(Input(number, file, pa.array([0], pa.int64())))
    given = {"order": RowOrder(), "slot": FilePartition("current"), "parting": None, **how}
    return RewriteJob(FILES, FILES, COLUMNS, inputs, outputs=outputs, stem=f"{folder}/new", **given)


def keys(path: str) -> list[int]:
    found: list[int] = pq.read_table(path).column("id").to_pylist()
    return found


def test_it_is_written_elsewhere_as_it_would_be_here(tmp_path: Path) -> None:
    order = RowOrder.of(COLUMNS, [("id", "asc")])
    made = job(tmp_path, [0, 9, 5, 1], [0, 4, 8], outputs=2, order=order)
    sent = pickle.loads(pickle.dumps(made))

    one, other = write(sent, lambda: None, attempt=1)

    assert (keys(one.file.path), keys(other.file.path)) == ([1, 4, 5], [8, 9])
    assert one.places().to_pylist() == [3, FILE_STEP + 1, 2]
    assert other.places().to_pylist() == [FILE_STEP + 2, 1]
    here = write(made, lambda: None)
    assert [Path(some.file.path).name for some in here] == ["new-0-00000.parquet",
                                                            "new-0-00001.parquet"]  # fmt: skip
    for some, same in zip(here, (one, other), strict=True):
        assert Path(some.file.path).read_bytes() == Path(same.file.path).read_bytes()


def test_rows_go_to_their_partitions(tmp_path: Path) -> None:
    fields = (
        PartitionField(1000, 1, "identity", "hdr__partition"),
        PartitionField(1001, 2, "truncate[10]", "tens"),
    )
    parting = Parting.by(Spec(1, fields), COLUMNS)
    order = RowOrder.of(COLUMNS, [("id", "desc")], ["id"])

    found = write(job(tmp_path, [0, 12, 3], [0, 4, 15], order=order, parting=parting), lambda: None)

    assert {one.file.slot.values: keys(one.file.path) for one in found} == {
        '["current",10]': [15, 12], '["current",0]': [4, 3],
    }  # fmt: skip


def test_a_group_of_deleted_rows_becomes_no_file(tmp_path: Path) -> None:
    assert write(job(tmp_path, [1], [2]), lambda: None) == []
    assert list(job(tmp_path, [1]).left()) == []


def test_what_was_begun_can_be_found(tmp_path: Path) -> None:
    """Of every attempt, also where the first one left nothing."""
    made = job(tmp_path, range(7), outputs=3)

    write(made, lambda: None, attempt=2)
    write(made, lambda: None)

    names = [Path(path).name for path in made.left(4)]
    assert names == [f"new-{attempt}-0000{n}.parquet" for attempt in (0, 2) for n in range(3)]
    assert list(made.left(1)) == [made.path(number) for number in range(3)]
