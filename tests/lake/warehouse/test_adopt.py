"""A warehouse that was copied, moved, or lost its catalog, and what makes it whole again."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from polynya.lake.spark.catalog import CATALOG
from polynya.lake.warehouse.adopt import adopt, repair
from polynya.lake.warehouse.check import refuse_incomplete, refuse_unusable
from polynya.model.errors import ConflictError, DependencyError, OperationError
from tests.lab.lab import Lab, put
from tests.lake.warehouse.tables import catalog_in, ids, make_tables, target_in


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path) -> str:
    """The code with which a warehouse is refused."""
    with pytest.raises((OperationError, DependencyError)) as caught:
        refuse_unusable(target_in(folder), CATALOG)
    return caught.value.code


def test_a_copy_is_refused_until_it_adopts_its_tables_and_leaves_the_original_alone(
    tmp_path: Path,
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    make_tables(there, "users_internal", "towns_internal")
    shutil.copytree(there, here)
    before = contents(there)
    refuse_unusable(target_in(there), CATALOG)
    assert refused(here) == "POLYNYA-LAKE-042"

    done = adopt(target_in(here), CATALOG)

    assert done.tables == ("shop_internal.towns_internal", "shop_internal.users_internal")
    refuse_unusable(target_in(here), CATALOG)
    table = catalog_in(here).load_table(("shop_internal", "users_internal"))
    table.append(pa.table({"id": pa.array([3], pa.int64())}))
    assert ids(here, "users_internal") == [1, 2, 3]
    assert contents(there) == before
    # Nothing of the copy names the original, least of all what its clean-up deletes.
    assert str(there) not in Path(table.metadata_location).read_text()
    assert not adopt(target_in(here), CATALOG).tables


def test_a_moved_warehouse_is_adopted_though_the_former_place_is_gone(tmp_path: Path) -> None:
    make_tables(tmp_path / "there", "users_internal")
    (tmp_path / "there").rename(tmp_path / "here")
    assert refused(tmp_path / "here") == "POLYNYA-LAKE-042"

    adopt(target_in(tmp_path / "here"), CATALOG)

    assert ids(tmp_path / "here", "users_internal") == [1, 2]


def test_a_table_that_was_not_copied_is_told_and_nothing_is_changed(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    make_tables(there, "users_internal", "towns_internal")
    shutil.copytree(there, here)
    shutil.rmtree(here / "warehouse/shop_internal/users_internal")
    catalog = (here / "warehouse/catalog.db").read_bytes()

    with pytest.raises(OperationError, match="users_internal is not in this warehouse"):
        adopt(target_in(here), CATALOG)

    assert (here / "warehouse/catalog.db").read_bytes() == catalog


def test_a_commit_meanwhile_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    make_tables(there, "users_internal")
    shutil.copytree(there, here)

    def committed(metadata: Path, folder: Path) -> Path:
        with sqlite3.connect(here / "warehouse/catalog.db") as database:
            database.execute("UPDATE iceberg_tables SET metadata_location = 'elsewhere'")
        return folder / metadata.name

    monkeypatch.setattr("polynya.lake.warehouse.adopt.at_home", committed)

    with pytest.raises(ConflictError, match="another process committed"):
        adopt(target_in(here), CATALOG)


@pytest.mark.parametrize("lost", ["gone", "empty"])
def test_a_lost_catalog_is_refused_and_its_tables_are_registered_again(
    tmp_path: Path, lost: str
) -> None:
    target = make_tables(tmp_path, "users_internal", "towns_internal")
    file = tmp_path / "warehouse/catalog.db"
    file.unlink()
    if lost == "empty":
        file.touch()
    assert refused(tmp_path) == "POLYNYA-LAKE-041"

    done = repair(target, CATALOG)

    assert len(done.tables) == 2
    refuse_unusable(target, CATALOG)
    assert ids(tmp_path, "users_internal") == ids(tmp_path, "towns_internal") == [1, 2]
    assert repair(target, CATALOG).nothing


@pytest.mark.parametrize("damage", ["garbage", "truncated"])
def test_a_damaged_catalog_is_put_aside(tmp_path: Path, damage: str) -> None:
    target = make_tables(tmp_path, "users_internal")
    file = tmp_path / "warehouse/catalog.db"
    whole = file.read_bytes()
    broken = b"garbage" * 1000 if damage == "garbage" else whole[: len(whole) // 2]
    file.write_bytes(broken)
    assert refused(tmp_path) == "POLYNYA-LAKE-040"

    done = repair(target, CATALOG)

    assert done.aside is not None
    assert done.aside.read_bytes() == broken
    assert ids(tmp_path, "users_internal") == [1, 2]


def test_missing_metadata_is_refused_and_the_newest_that_is_there_takes_its_place(
    tmp_path: Path,
) -> None:
    target = make_tables(tmp_path, "users_internal")
    table = catalog_in(tmp_path).load_table(("shop_internal", "users_internal"))
    Path(table.metadata_location.removeprefix("file://")).unlink()
    refuse_unusable(target, CATALOG)
    with pytest.raises(OperationError, match="users_internal are missing"):
        refuse_incomplete(target, CATALOG)

    repair(target, CATALOG)

    assert ids(tmp_path, "users_internal") == [1]


def test_who_was_killed_while_making_the_first_table_goes_on(tmp_path: Path) -> None:
    target = make_tables(tmp_path, "users_internal")
    metadata = tmp_path / "warehouse/shop_internal/users_internal/metadata"
    for file in metadata.glob("*.metadata.json"):
        if not file.name.startswith("00000-"):
            file.unlink()
    (tmp_path / "warehouse/catalog.db").write_bytes(b"")

    refuse_unusable(target, CATALOG)


def test_what_is_new_or_empty_is_not_refused(tmp_path: Path) -> None:
    refuse_unusable(target_in(tmp_path), CATALOG)
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse/catalog.db").touch()
    refuse_unusable(target_in(tmp_path), CATALOG)


def test_a_copied_table_keeps_its_deletes(lab: Lab, tmp_path: Path) -> None:
    users = lab.feed()
    users.apply(*(put(number, number, name="Ann") for number in range(1, 5)))
    users.apply(put(2, 9, name="Ben"))
    namespace, name = users.internal.split(".")
    copied = tmp_path / "warehouse" / namespace / name
    shutil.copytree(lab.project / "warehouse" / namespace / name, copied)
    shutil.copy(lab.project / "warehouse/catalog.db", tmp_path / "warehouse/catalog.db")
    with sqlite3.connect(tmp_path / "warehouse/catalog.db") as database:
        database.execute("DELETE FROM iceberg_tables WHERE table_name <> ?", (name,))
        database.execute("DELETE FROM iceberg_tables WHERE table_namespace <> ?", (namespace,))

    adopt(target_in(tmp_path), CATALOG)

    table = catalog_in(tmp_path).load_table((namespace, name))
    tasks = list(table.scan().plan_files())
    assert any(task.delete_files for task in tasks), "there is nothing to show"
    read = {task.file.file_path for task in tasks}
    read |= {one.file_path for task in tasks for one in task.delete_files}
    assert all(path.startswith(str(tmp_path)) for path in read)
    rows = table.scan(row_filter="hdr__partition == 'current'", selected_fields=("id", "name"))
    assert sorted(rows.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "name": "Ann"},
        {"id": 2, "name": "Ben"},
        {"id": 3, "name": "Ann"},
        {"id": 4, "name": "Ann"},
    ]
