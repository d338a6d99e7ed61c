"""Which source table a landed file belongs to, by its folder."""

from __future__ import annotations

import pytest

from polynya.formats.batch import WHOLE_FILE, FileProgress
from polynya.formats.dms import table_of_dms
from polynya.formats.files import Folders, NoTable, sorted_out, unrouted
from polynya.formats.replicate.tables import metadata_path, table_of_replicate
from polynya.model.config.settings import Delivery
from polynya.store.object_store import ObjectInfo


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("shop/orders/LOAD00000001.csv", "shop.orders"),
        ("shop/orders/2026/01/31/20260131-000000000.csv", "shop.orders"),
        ("changes/new/shop/orders/20260131-000000000.csv", "shop.orders"),
        ("shop/_migrations/LOAD00000001.csv", "shop._migrations"),
        ("shop/awsdms_apply_exceptions/LOAD00000001.csv", NoTable.CONTROL),
        ("changes/new/20260131-000000000.csv", NoTable.UNPLACED),
        ("shop/LOAD00000001.csv", NoTable.UNPLACED),
        ("LOAD00000001.csv", NoTable.UNPLACED),
    ],
)
def test_dms_names_folders_by_schema_and_table(path: str, table: object) -> None:
    assert table_of_dms(Delivery(cdc_path="changes/new"))(path) == table


def _sorted_out(*paths: str) -> Folders:
    infos = [ObjectInfo(f"land/{path}", 7) for path in paths]
    return sorted_out(infos, "land", table_of_dms(Delivery()), lambda table: table != "s.out")


def test_files_are_sorted_by_their_table() -> None:
    found = _sorted_out("s/a/LOAD1.csv", "s/out/LOAD1.csv", "s/awsdms_x/LOAD1.csv", "odd.csv")

    assert {table: [info.path for info in infos] for table, infos in found.tables.items()} == {
        "s.a": ["land/s/a/LOAD1.csv"]
    }
    assert [info.path for info in found.left_out] == ["land/s/out/LOAD1.csv"]
    assert [info.path for info in found.control] == ["land/s/awsdms_x/LOAD1.csv"]
    assert [info.path for info in found.unplaced] == ["land/odd.csv"]


def test_unfinished_files_are_left_alone_but_a_table_may_begin_with_an_underscore() -> None:
    found = _sorted_out("s/_a/LOAD1.csv", "s/_a/_x.csv", "s/a/b.csv.tmp", ".git/a/LOAD1.csv")

    assert list(found.tables) == ["s._a"]
    assert len(found.tables["s._a"]) == 1
    assert found.unplaced == ()


def test_files_without_a_table_are_accounted_once() -> None:
    found = _sorted_out("s/out/LOAD1.csv", "s/awsdms_x/LOAD1.csv", "odd.csv")

    batch = unrouted(found, {})

    assert batch.counters == {"control_table_files": 1, "not_included_files": 1}
    assert [(one.file, one.offset, one.rule) for one in batch.rejected] == [
        ("land/odd.csv", WHOLE_FILE, "no_dataset")
    ]
    assert set(batch.files.values()) == {FileProgress(7, 0, complete=True)}
    again = unrouted(found, batch.files)
    assert (again.rows_in, again.counters, again.files) == (0, {}, {})


def test_a_file_waits_for_the_one_that_describes_it() -> None:
    names = ["s.a/LOAD1.csv", "s.a/LOAD1.dfm", "s.a/LOAD2.csv", "s.b/LOAD1.csv"]
    infos = [ObjectInfo(f"land/{name}", 7) for name in names]

    found = sorted_out(infos, "land", table_of_replicate, lambda _: True, metadata_path)

    assert {table: [info.path for info in infos] for table, infos in found.tables.items()} == {
        "s.a": ["land/s.a/LOAD1.csv"],
        "s.b": [],
    }
    assert found.waiting == {
        "s.a": {"land/s.a/LOAD2.csv": "land/s.a/LOAD2.dfm"},
        "s.b": {"land/s.b/LOAD1.csv": "land/s.b/LOAD1.dfm"},
    }
