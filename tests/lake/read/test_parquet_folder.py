"""A folder of Parquet files is one table with versions."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.lake.read.parquet_folder import ParquetFolder
from polynya.lake.read.registered_folders import folder_of
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredDataset, RegisteredName, RegisteredTable
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectInfo
from polynya.store.places import LocalSourceStore
from tests.aws import REGION, aws_server, client


def folder_at(place: Path) -> ParquetFolder:
    """The folder as a task names it."""
    table = RegisteredTable(name="rates", parquet=str(place))
    dataset = RegisteredDataset("crm", RegisteredName("crm", "rates"), table)
    return ParquetFolder(LocalSourceStore(place), dataset)


def write(place: Path, name: str, **columns: Any) -> Path:
    """A Parquet file."""
    file = place / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    return file


def rows(folder: ParquetFolder) -> list[dict[str, Any]]:
    """The rows of the newest version."""
    version = folder.newest()
    return pa.Table.from_batches(folder.batches(version), version.schema).to_pylist()


def test_columns_of_all_files_are_brought_together(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", id=pa.array([1], pa.int32()))
    write(tmp_path, "b.parquet", id=pa.array([2**40]), note=["x"])
    write(tmp_path, "region=n%2Fa/c.parquet", id=[3], seen=[dt.datetime(2026, 1, 2)])
    write(tmp_path, "region=__HIVE_DEFAULT_PARTITION__/d.parquet", id=[4])
    write(tmp_path, "_temporary/e.parquet", id=[5])
    write(tmp_path, ".hidden.parquet", id=[6])

    folder = folder_at(tmp_path)
    assert {name: str(kind) for name, kind in folder.newest().columns.items()} == {
        "id": "bigint", "note": "string", "region": "string", "seen": "timestamp_ntz"
    }  # fmt: skip
    assert sorted((one["id"], one["note"], one["region"]) for one in rows(folder)) == [
        (1, None, None), (3, None, "n/a"), (4, None, None), (2**40, "x", None)
    ]  # fmt: skip


def test_the_number_of_a_version_follows_the_files(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", id=[1])
    folder = folder_at(tmp_path)
    first = folder.newest()
    assert folder.newest() is first
    assert folder_at(tmp_path).newest().number == first.number

    added = write(tmp_path, "b.parquet", id=[2])
    assert folder.newest().number != first.number
    added.unlink()
    assert folder.newest().number == first.number


def keys_since(folder: ParquetFolder, before: int, most: int = 100) -> list[Any] | str:
    """The values of `id` in files that make the difference to the newest version, or why not."""
    changes = folder.changes(before, folder.newest().number)
    found = changes if isinstance(changes, str) else changes.keys(folder.store, ["id"], most)
    return found if isinstance(found, str) else found.column("id").to_pylist()


def test_files_that_are_new_tell_what_changed_in_each_process(tmp_path: Path) -> None:
    write(tmp_path, "b.parquet", id=[1, 2])
    write(tmp_path, "day=1/c.parquet", id=[3], note=["x"])
    first = folder_at(tmp_path).newest().number
    write(tmp_path, "a.parquet", note=["y", "z"], id=[4, 5])
    write(tmp_path, "day=2/d.parquet", id=[6])

    later = folder_at(tmp_path)
    assert sorted(keys_since(later, first)) == [4, 5, 6]
    version = later.at(first)
    assert version is not None
    assert [file.path for file in version.files] == ["b.parquet", "day=1/c.parquet"]
    changes = later.changes(first, later.newest().number)
    assert not isinstance(changes, str)
    assert not changes.removed.files
    assert 0.2 < changes.share < 0.5
    assert keys_since(later, first, most=2) == "more than 2 of its rows were written since"
    days = changes.keys(later.store, ["day"], 100)
    assert isinstance(days, pa.Table)
    assert days.column("day").to_pylist() == [None, None, "2"]
    assert changes.keys(later.store, ["x"], 100) == "it has no column `x`"


@pytest.mark.parametrize("what", ["replaced", "removed", "older"])
def test_other_changes_of_a_folder_are_not_known_by_keys(tmp_path: Path, what: str) -> None:
    file = write(tmp_path, "a.parquet", id=[1])
    write(tmp_path, "b.parquet", id=[2])
    first = folder_at(tmp_path).newest().number
    if what == "replaced":
        write(tmp_path, "a.parquet", id=[7])
    elif what == "removed":
        file.unlink()
    else:
        os.utime(write(tmp_path, "c.parquet", id=[3]), (1, 1))

    folder = folder_at(tmp_path)
    assert str(keys_since(folder, first)).startswith("a file of it was replaced or removed")
    assert folder.at(first) is None


def test_a_new_file_that_goes_while_it_is_read_tells_no_keys(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", id=[1])
    folder = folder_at(tmp_path)
    first = folder.newest().number
    file = write(tmp_path, "b.parquet", id=[2])
    changes = folder.changes(first, folder.newest().number)
    assert not isinstance(changes, str)
    file.unlink()
    said = changes.keys(folder.store, ["id"], 100)
    assert said == "its file `b.parquet` was replaced or removed"


def test_a_file_that_is_replaced_after_its_listing_ends_the_read(tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", id=[1])
    folder = folder_at(tmp_path)
    version = folder.newest()
    for damage in (lambda: write(tmp_path, "a.parquet", id=[7]), lambda: file.unlink()):
        damage()
        with pytest.raises(OperationError) as changed:
            list(folder.batches(version))
        assert changed.value.code == "POLYNYA-TRF-124"


def test_only_footers_of_new_files_are_read(tmp_path: Path) -> None:
    opened = []

    class Counted(LocalSourceStore):
        def open(self, path: str) -> Any:
            opened.append(path)
            return super().open(path)

    write(tmp_path, "a.parquet", id=[1])
    folder = folder_at(tmp_path)
    folder.store = Counted(tmp_path)
    folder.newest()
    write(tmp_path, "b.parquet", id=[2])
    folder.newest()
    assert opened == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": ["x"]}, "column `id` is string in `b.parquet` and bigint in files before it"),
        ({"ID": [1]}, "`id` and `ID` are one name to engines"),
    ],
)
def test_files_that_do_not_fit_together_are_refused_with_their_names(
    tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    write(tmp_path, "a.parquet", id=[1])
    write(tmp_path, "b.parquet", **columns)
    with pytest.raises(OperationError, match=reason) as refused:
        folder_at(tmp_path).newest()
    assert refused.value.code == "POLYNYA-TRF-122"


def test_a_value_that_no_table_holds_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", at=pa.array([1], pa.timestamp("ns")))
    with pytest.raises(OperationError, match=r"a\.parquet.*would lose data") as refused:
        rows(folder_at(tmp_path))
    assert refused.value.code == "POLYNYA-TRF-122"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path, "elsewhere/secret.parquet", id=[1])
    inside = tmp_path / "rates"
    write(inside, "a.parquet", id=[1])
    (inside / "b.parquet").symlink_to(secret)
    with pytest.raises(OperationError) as refused:
        folder_at(inside).newest()
    assert refused.value.code == "POLYNYA-STO-001"


def test_nothing_but_reading_is_asked_of_the_store(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", id=[1])

    class ReadOnly:
        """Lists and opens; everything else is missing."""

        def __init__(self) -> None:
            self._store = LocalSourceStore(tmp_path)

        def list(self, prefix: str = "") -> list[ObjectInfo]:
            return list(self._store.list(prefix))

        def beginning(self, start: str, after: str = "") -> list[ObjectInfo]:
            return list(self._store.beginning(start, after))

        def open(self, path: str) -> Any:
            return self._store.open(path)

    folder = folder_at(tmp_path)
    folder.store = ReadOnly()  # type: ignore[assignment]
    assert rows(folder) == [{"id": 1}]


def test_a_folder_in_s3_is_read_with_the_rights_to_list_and_read(tmp_path: Path) -> None:
    with aws_server("partner") as endpoint:
        s3 = client("s3", endpoint)
        for number, day in enumerate(("2026-01-01", "2026-01-02"), 1):
            file = write(tmp_path, f"{number}.parquet", id=[number])
            s3.put_object(
                Bucket="partner", Key=f"rates/day={day}/1.parquet", Body=file.read_bytes()
            )
        s3.put_object(Bucket="partner", Key="rates/", Body=b"")
        s3.put_object(Bucket="partner", Key="other/1.parquet", Body=b"of somebody else")
        table = RegisteredTable(name="rates", parquet="s3://partner/rates")
        dataset = RegisteredDataset("crm", RegisteredName("crm", "rates"), table)
        folder = folder_of(dataset, AwsAccess(region=REGION, endpoint=endpoint))
        assert isinstance(folder, ParquetFolder)

        assert rows(folder) == [
            {"day": "2026-01-01", "id": 1}, {"day": "2026-01-02", "id": 2}
        ]  # fmt: skip
        version = folder.newest()
        replaced = write(tmp_path, "3.parquet", id=[3]).read_bytes()
        s3.put_object(Bucket="partner", Key="rates/day=2026-01-02/1.parquet", Body=replaced)
        with pytest.raises(OperationError, match="replaced or removed"):
            list(folder.batches(version))
        assert folder.newest().number != version.number
        assert [one["id"] for one in rows(folder)] == [1, 3]
