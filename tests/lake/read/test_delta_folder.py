"""A Delta table of others is read at a version of its log, from the files that the log names."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.lake.read import delta_folder
from polynya.lake.read.delta_folder import DeltaFolder
from polynya.lake.read.registered_folders import folder_of
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredDataset, RegisteredName, RegisteredTable
from polynya.model.errors import OperationError
from tests.aws import REGION, aws_server, client


def folder_at(place: Path | str) -> DeltaFolder:
    """The table as a task names it."""
    table = RegisteredTable(name="rates", delta=str(place))
    dataset = RegisteredDataset("crm", RegisteredName("crm", "rates"), table)
    folder = folder_of(dataset, AwsAccess())
    assert isinstance(folder, DeltaFolder)
    return folder


def rows(folder: DeltaFolder, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of a version, the newest by default, in order."""
    found = folder.newest() if version is None else folder.at(version)
    assert found is not None
    table = pa.Table.from_batches(folder.batches(found), found.schema)
    return sorted(table.to_pylist(), key=lambda row: str(row))


def theirs(place: Path) -> list[dict[str, Any]]:
    """The rows as the library itself reads them."""
    table = pa.table(DeltaTable(str(place)).to_pyarrow_table())
    return sorted(table.to_pylist(), key=lambda row: str(row))


def write(place: Path, **columns: Any) -> None:
    """Append rows; new columns are added to the table."""
    write_deltalake(str(place), pa.table(columns), mode="append", schema_mode="merge")


def log(place: Path, *actions: dict[str, Any], number: int = 0) -> None:
    """A commit by hand."""
    (place / "_delta_log").mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (place / "_delta_log" / f"{number:020d}.json").write_text(text, "utf-8")


def begun(protocol: dict[str, Any] | None = None, **configuration: str) -> list[dict[str, Any]]:
    """What the first commit of a table with a column `id` says."""
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    return [
        {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "a-table",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [field]}),
                "partitionColumns": [],
                "configuration": configuration,
                "createdTime": 1,
            }
        },
    ]


def added(path: str, **more: Any) -> dict[str, Any]:
    """A file of the table."""
    file = {"partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {"path": path, **file, **more}}


def features(*names: str) -> dict[str, Any]:
    """The protocol of a table with features for readers."""
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(names),
        "writerFeatures": list(names),
    }


def refusal(place: Path) -> tuple[str, str]:
    """Code and message of what is raised for a table."""
    with pytest.raises(OperationError) as caught:
        folder_at(place).newest()
    return caught.value.code, caught.value.message


def test_deletes_updates_and_new_columns_are_those_of_the_log(tmp_path: Path) -> None:
    write(tmp_path, id=[1, 2, 3], v=[1.5, 2.5, 3.5])
    write(tmp_path, id=[4], v=[4.5], note=["new"])
    table = DeltaTable(str(tmp_path))
    table.delete("id = 2")
    table.update(predicate="id = 3", updates={"v": "0.5"})

    folder = folder_at(tmp_path)
    assert rows(folder) == theirs(tmp_path)
    assert [row["id"] for row in rows(folder)] == [1, 3, 4]
    assert {name: str(kind) for name, kind in folder.newest().columns.items()} == {
        "id": "bigint", "v": "double", "note": "string"
    }  # fmt: skip
    assert folder.newest().form == "Delta version 3"


def test_partition_columns_have_the_values_and_types_of_the_log(tmp_path: Path) -> None:
    columns = {
        "id": [1, 2],
        "region": ["a b/ü%", None],
        "n": pa.array([5, None], pa.int32()),
        "day": [dt.date(2026, 1, 2), None],
        "at": pa.array([dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC), None]),
        "price": pa.array([Decimal("1.20"), None], pa.decimal128(9, 2)),
        "open": [True, None],
    }
    names = [name for name in columns if name != "id"]
    write_deltalake(str(tmp_path), pa.table(columns), partition_by=names)

    assert rows(folder_at(tmp_path)) == theirs(tmp_path)
    assert [row["region"] for row in rows(folder_at(tmp_path))] == ["a b/ü%", None]


def test_a_checkpoint_a_vacuum_and_a_clean_log_change_no_row(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, id=[number])
    folder = folder_at(tmp_path)
    before = rows(folder)
    table = DeltaTable(str(tmp_path))
    table.delete("id = 0")
    table.create_checkpoint()
    write(tmp_path, id=[9])
    table = DeltaTable(str(tmp_path))
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    for number in range(5):
        (tmp_path / "_delta_log" / f"{number:020d}.json").unlink()

    assert rows(folder) == rows(folder_at(tmp_path)) == theirs(tmp_path)
    assert len(before) == 5


def test_a_wrong_hint_of_a_checkpoint_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, id=[1])
    write(tmp_path, id=[2])
    for text in ('{"version": 77}', '{"version": 1}', "[", '{"version": "x"}', "[" * 100_000):
        (tmp_path / "_delta_log" / "_last_checkpoint").write_text(text)
        assert [row["id"] for row in rows(folder_at(tmp_path))] == [1, 2]


def test_an_older_version_can_be_read_until_its_files_are_gone(tmp_path: Path) -> None:
    write(tmp_path, id=[1])
    folder = folder_at(tmp_path)
    first = folder.newest().number
    DeltaTable(str(tmp_path)).delete("id = 1")
    write(tmp_path, id=[2])

    later = folder_at(tmp_path)
    assert [row["id"] for row in rows(later)] == [2]
    assert [row["id"] for row in rows(later, first)] == [1]
    assert first != later.newest().number

    DeltaTable(str(tmp_path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(OperationError) as caught:
        rows(later, first)
    assert caught.value.code == "POLYNYA-TRF-124"


def test_a_version_that_appears_meanwhile_does_not_change_the_one_that_is_read(
    tmp_path: Path,
) -> None:
    write(tmp_path, id=[1])
    folder = folder_at(tmp_path)
    version = folder.newest()
    write(tmp_path, id=[2])

    assert pa.Table.from_batches(folder.batches(version)).to_pylist() == [{"id": 1}]
    assert folder.newest().number != version.number


def test_a_table_that_is_created_again_has_other_versions(tmp_path: Path) -> None:
    write(tmp_path / "t", id=[1])
    folder = folder_at(tmp_path / "t")
    before = folder.newest().number
    shutil.rmtree(tmp_path / "t")
    write(tmp_path / "t", id=[7])

    assert folder.newest().number != before
    assert not folder.shows_same_rows(before, folder.newest().number)
    assert folder.at(before) is None
    assert rows(folder) == [{"id": 7}]


def test_only_commits_that_say_so_show_the_same_rows(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, id=[number])
    folder = folder_at(tmp_path)
    written = folder.newest().number
    DeltaTable(str(tmp_path)).optimize.compact()
    compacted = folder.newest().number
    write(tmp_path, id=[9], note=["x"])
    widened = folder.newest().number

    assert written != compacted
    assert folder.shows_same_rows(written, compacted)
    assert not folder.shows_same_rows(compacted, widened)
    assert not folder.shows_same_rows(written, widened)


def keys_since(folder: DeltaFolder, before: int) -> list[Any] | str:
    """The values of `id` in files that make the difference to the newest version, or why not."""
    changes = folder.changes(before, folder.newest().number)
    found = changes if isinstance(changes, str) else changes.keys(folder.store, ["id"], 100)
    return found if isinstance(found, str) else sorted(set(found.column("id").to_pylist()))


def test_files_that_were_added_and_removed_tell_what_changed(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, id=[number, number + 10], v=[0, 0])
    folder = folder_at(tmp_path)
    first = folder.newest().number
    table = DeltaTable(str(tmp_path))
    table.update(predicate="id = 1", updates={"v": "1"})
    table.delete("id = 12")
    table.delete("id IN (3, 13)")
    write(tmp_path, id=[7], v=[7])
    assert keys_since(folder, first) == [1, 2, 3, 7, 11, 12, 13]

    second = folder.newest().number
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    table.delete("id = 0")
    write(tmp_path, id=[8], v=[8])
    # The file that the delete removed came in between: all files that differ are read.
    assert keys_since(folder, second) == [0, 1, 2, 7, 8, 10, 11]
    third = folder.newest().number
    write(tmp_path, id=[9], v=[9])
    DeltaTable(str(tmp_path)).optimize.compact()
    assert keys_since(folder, third) == [1, 2, 7, 8, 9, 10, 11]
    DeltaTable(str(tmp_path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert str(keys_since(folder, first)).endswith("was replaced or removed")


def test_compaction_before_other_commits_is_left_out(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, id=[number])
    folder = folder_at(tmp_path)
    first = folder.newest().number
    DeltaTable(str(tmp_path)).optimize.compact()
    write(tmp_path, id=[9])
    assert keys_since(folder, first) == [9]


def test_what_changed_in_a_table_that_is_created_again_is_not_known(tmp_path: Path) -> None:
    write(tmp_path / "t", id=[1])
    folder = folder_at(tmp_path / "t")
    before = folder.newest().number
    shutil.rmtree(tmp_path / "t")
    write(tmp_path / "t", id=[7])
    assert keys_since(folder, before) == "the version that it has read is not in its log any more"


@pytest.mark.parametrize(
    "path",
    ["../x.parquet", "a/%2E%2E/%2e%2e/x.parquet", "/etc/passwd", "s3://other/x.parquet",
     "file:///etc/passwd", "a//b.parquet", "a\\b.parquet", "%00", ""],
)  # fmt: skip
def test_a_file_outside_of_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "x.parquet").write_bytes(b"")
    log(tmp_path / "t", *begun(), added(path))

    code, message = refusal(tmp_path / "t")
    assert code == "POLYNYA-TRF-122"
    assert "log" in message


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other", id=[1])
    (secret,) = (tmp_path / "other").glob("*.parquet")
    log(tmp_path / "t", *begun(), added("a.parquet"))
    (tmp_path / "t" / "a.parquet").symlink_to(secret)

    with pytest.raises(OperationError) as caught:
        rows(folder_at(tmp_path / "t"))
    assert caught.value.code == "POLYNYA-STO-001"


@pytest.mark.parametrize(
    ("protocol", "configuration", "named"),
    [
        (features("deletionVectors"), {}, "deletionVectors"),
        (features("columnMapping"), {}, "columnMapping"),
        (features("typeWidening"), {}, "typeWidening"),
        (features("v2Checkpoint"), {}, "v2Checkpoint"),
        (features("vacuumProtocolCheck", "deletionVectors"), {}, "deletionVectors"),
        (features("fancy"), {}, "fancy"),
        ({"minReaderVersion": 9, "minWriterVersion": 9}, {}, "reader version 9"),
        ({"minReaderVersion": 2, "minWriterVersion": 5}, {"delta.columnMapping.mode": "name"},
         "olumn mapping"),
    ],
)  # fmt: skip
def test_what_the_files_alone_do_not_tell_is_refused_by_name(
    tmp_path: Path, protocol: dict[str, Any], configuration: dict[str, str], named: str
) -> None:
    vector = {
        "storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1,
        "sizeInBytes": 36, "cardinality": 2,
    }  # fmt: skip
    file = added("a.parquet", deletionVector=vector)
    log(tmp_path, *begun(protocol, **configuration), file)

    code, message = refusal(tmp_path)
    assert code in {"POLYNYA-TRF-122", "POLYNYA-TRF-125"}
    assert named in message


def test_features_that_change_no_row_are_read(tmp_path: Path) -> None:
    write(tmp_path / "other", id=[1])
    (file,) = (tmp_path / "other").glob("*.parquet")
    log(tmp_path / "t", *begun(features("vacuumProtocolCheck", "timestampNtz")), added("a.parquet"))
    shutil.copy(file, tmp_path / "t" / "a.parquet")

    assert rows(folder_at(tmp_path / "t")) == [{"id": 1}]


def test_a_table_may_allow_deletion_vectors_as_long_as_it_has_none(tmp_path: Path) -> None:
    write(tmp_path / "other", id=[1])
    (file,) = (tmp_path / "other").glob("*.parquet")
    log(
        tmp_path / "t",
        *begun(features("deletionVectors", "timestampNtz")),
        added("a%20b.parquet"),
    )
    shutil.copy(file, tmp_path / "t" / "a b.parquet")

    assert rows(folder_at(tmp_path / "t")) == [{"id": 1}]


@pytest.mark.parametrize(
    "text", ["", "{}", "{" * 100_000, "[" * 1_000_000, "\0", '{"add": 7}', '{"add":{"path":"'],
)  # fmt: skip
def test_a_log_that_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text(text)
    code, message = refusal(tmp_path)
    assert code == "POLYNYA-TRF-122"
    assert str(tmp_path) not in message
    assert "polynya-delta" not in message


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_log_gives_rows_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    place = tmp_path_factory.mktemp("delta")
    write(place, id=[1])
    file = place / "_delta_log" / f"{0:020d}.json"
    data = bytearray(file.read_bytes())
    for at, value in damage:
        data[(at * 7) % len(data)] = value
    file.write_bytes(data)
    with suppress(OperationError):
        assert len(rows(folder_at(place))) <= 1


def test_a_log_that_is_too_large_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path, *begun(), added("x" * 5_000))
    monkeypatch.setattr(delta_folder, "_MOST_LOG", 4_000)
    code, message = refusal(tmp_path)
    assert (code, "more than 4,000 bytes" in message) == ("POLYNYA-TRF-122", True)


def test_a_folder_without_a_log_is_missing(tmp_path: Path) -> None:
    assert refusal(tmp_path)[0] == "POLYNYA-TRF-121"


def test_without_the_library_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, id=[1])
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert refusal(tmp_path)[0] == "POLYNYA-TRF-126"


def test_the_library_sees_a_local_copy_of_the_log_and_no_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    real: Callable[..., Any] = DeltaTable

    def watched(*args: Any, **options: Any) -> Any:
        opened.append((args, options))
        files = [file for file in Path(args[0]).rglob("*") if file.is_file()]
        assert {file.parent.name for file in files} == {"_delta_log"}
        return real(*args, **options)

    write(tmp_path / "t", id=[1, 2])
    DeltaTable(str(tmp_path / "t")).delete("id = 1")
    with aws_server() as endpoint:
        s3 = client("s3", endpoint)
        s3.create_bucket(Bucket="partner", CreateBucketConfiguration={"LocationConstraint": REGION})
        for file in (tmp_path / "t").rglob("*"):
            if file.is_file():
                key = f"rates/{file.relative_to(tmp_path / 't')}"
                s3.put_object(Bucket="partner", Key=key, Body=file.read_bytes())
        table = RegisteredTable(name="rates", delta="s3://partner/rates")
        dataset = RegisteredDataset("crm", RegisteredName("crm", "rates"), table)
        monkeypatch.setattr(deltalake, "DeltaTable", watched)
        folder = folder_of(dataset, AwsAccess(region=REGION, endpoint=endpoint))
        assert isinstance(folder, DeltaFolder)

        assert rows(folder) == [{"id": 2}]
    ((place,), options) = opened[0]
    assert Path(place).is_absolute()
    assert options == {"version": None}
