"""Tables go to another catalog: everything, once, and resumable after an end at any moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from polynya.lake.warehouse.adopt import repair
from polynya.lake.warehouse.catalogs import CatalogEntry, new_catalog
from polynya.lake.warehouse.check import refuse_unusable
from polynya.lake.warehouse.move import CatalogMove
from polynya.lake.warehouse.moved import FOLDER, refuse_moved
from polynya.lake.warehouse.registers import SqliteRegister
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConflictError, OperationError
from polynya.store.object_store import LocalObjectStore

_NAME = "polynya"
_ROW = pa.table({"id": pa.array([1], pa.int64())})


class Killed(BaseException):
    """The process ended here."""


class Lakehouse:
    """A warehouse with two tables and a view, and two catalog files for it."""

    def __init__(self, folder: Path) -> None:
        self.warehouse = folder / "warehouse"
        self.warehouse.mkdir()
        self.files = {"old": self.warehouse / "catalog.db", "new": folder / "new.db"}
        self.catalog = SqlCatalog(
            _NAME, uri=f"sqlite:///{self.files['old']}", warehouse=str(self.warehouse)
        )
        self.catalog.create_namespace("shop_internal")
        for name in ("orders", "users"):
            self.catalog.create_table(("shop_internal", name), _ROW.schema).append(_ROW)
        view = self.warehouse / "shop/users/metadata/00000-a.metadata.json"
        view.parent.mkdir(parents=True)
        view.write_text("{}")
        new_catalog(self.files["old"], _NAME, [CatalogEntry("shop", "users", str(view), True)])

    def target(self, name: str) -> ResolvedTarget:
        uri = f"jdbc:sqlite:{self.files[name]}"
        return ResolvedTarget(name, Path("/landing"), self.warehouse, "jdbc", uri)

    @property
    def store(self) -> LocalObjectStore:
        return LocalObjectStore(self.warehouse)

    def move(
        self,
        start: str = "old",
        end: str = "new",
        on_step: Callable[[str, CatalogEntry], None] = lambda _step, _entry: None,
    ) -> CatalogMove:
        return CatalogMove(
            self.target(start),
            self.target(end),
            SqliteRegister(self.files[start], _NAME),
            SqliteRegister(self.files[end], _NAME),
            self.store,
            frozenset({"shop_internal"}),
            frozenset({"shop"}),
            on_step,
        )

    def held(self, name: str) -> dict[str, str]:
        """Metadata files of tables, and what those of views say."""
        found = SqliteRegister(self.files[name], _NAME).entries({"shop", "shop_internal"})
        return {
            one.full_name: Path(one.metadata).read_text() if one.is_view else one.metadata
            for one in found
        }

    def refusal(self, name: str) -> str | None:
        """The code with which a run on a target is refused."""
        try:
            refuse_moved(self.store, self.target(name), {"shop_internal"})
        except OperationError as error:
            return error.code
        return None


@pytest.fixture
def lakehouse(tmp_path: Path) -> Lakehouse:
    return Lakehouse(tmp_path)


def test_a_move_takes_tables_and_views_and_copies_nothing(lakehouse: Lakehouse) -> None:
    before = lakehouse.held("old")
    files = {path for path in lakehouse.warehouse.rglob("*") if path.is_file()}

    done = lakehouse.move().carry_out()

    assert len(done.release) == len(before) == 3
    assert (lakehouse.held("new"), lakehouse.held("old")) == (before, {})
    added = {path for path in lakehouse.warehouse.rglob("*") if path.is_file()} - files
    mark = lakehouse.warehouse / FOLDER / "shop_internal.json"
    (view,) = added - {mark}
    assert mark in added
    assert view.parent == lakehouse.warehouse / "shop/users/metadata"
    assert not done.is_resumed
    assert (lakehouse.refusal("old"), lakehouse.refusal("new")) == ("POLYNYA-LAKE-066", None)


def test_a_plan_changes_nothing(lakehouse: Lakehouse) -> None:
    before = lakehouse.held("old")

    planned = lakehouse.move().plan()

    assert [one.full_name for one, _ in planned.register] == list(before)
    assert (lakehouse.held("old"), lakehouse.held("new")) == (before, {})
    assert lakehouse.refusal("old") is None


@pytest.mark.parametrize("steps", range(6))
def test_a_move_that_was_killed_goes_on(lakehouse: Lakehouse, steps: int) -> None:
    before, taken = lakehouse.held("old"), 0

    def killing(_step: str, _entry: CatalogEntry) -> None:
        nonlocal taken
        if taken == steps:
            raise Killed
        taken += 1

    with pytest.raises(Killed):
        lakehouse.move(on_step=killing).carry_out()
    refused = lakehouse.refusal("old"), lakehouse.refusal("new")
    somewhere = lakehouse.held("old") | lakehouse.held("new")
    done = lakehouse.move().carry_out()

    assert refused == ("POLYNYA-LAKE-067", "POLYNYA-LAKE-067")
    assert somewhere == before
    assert done.is_resumed
    assert (lakehouse.held("new"), lakehouse.held("old")) == (before, {})
    assert lakehouse.refusal("new") is None


def test_a_move_that_was_killed_goes_nowhere_else(lakehouse: Lakehouse) -> None:
    def killing(_step: str, _entry: CatalogEntry) -> None:
        raise Killed

    with pytest.raises(Killed):
        lakehouse.move(on_step=killing).carry_out()
    lakehouse.files["third"] = lakehouse.warehouse.parent / "third.db"

    with pytest.raises(OperationError) as caught:
        lakehouse.move(end="third").plan()

    assert caught.value.code == "POLYNYA-LAKE-067"


def test_tables_come_back(lakehouse: Lakehouse) -> None:
    before = lakehouse.held("old")
    lakehouse.move().carry_out()

    lakehouse.move("new", "old").carry_out()

    assert (lakehouse.held("old"), lakehouse.held("new")) == (before, {})
    assert (lakehouse.refusal("old"), lakehouse.refusal("new")) == (None, "POLYNYA-LAKE-066")
    assert lakehouse.catalog.load_table(("shop_internal", "users")).scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("when", ["register", "release"])
def test_a_commit_during_the_move_is_kept(lakehouse: Lakehouse, when: str) -> None:
    """A run that began before the move still commits to the former catalog."""
    table = lakehouse.catalog.load_table(("shop_internal", "users"))

    def committing(step: str, entry: CatalogEntry) -> None:
        if (step, entry.full_name) == (when, "shop_internal.users"):
            table.append(_ROW)

    with pytest.raises(ConflictError) as caught:
        lakehouse.move(on_step=committing).carry_out()
    held = lakehouse.held("old")["shop_internal.users"]
    lakehouse.move().carry_out()

    assert caught.value.code == "POLYNYA-LAKE-070"
    assert held == table.metadata_location
    assert lakehouse.held("new")["shop_internal.users"] == table.metadata_location


def test_a_run_that_still_works_cannot_commit_afterwards(lakehouse: Lakehouse) -> None:
    table = lakehouse.catalog.load_table(("shop_internal", "users"))
    lakehouse.move().carry_out()

    with pytest.raises(Exception, match=r"does not exist|updated by another process"):
        table.append(_ROW)

    assert lakehouse.held("old") == {}


def test_tables_of_others_are_not_replaced(lakehouse: Lakehouse) -> None:
    other = CatalogEntry("shop_internal", "users", "/elsewhere/00000-a.metadata.json")
    new_catalog(lakehouse.files["new"], _NAME, [other])

    with pytest.raises(OperationError) as caught:
        lakehouse.move().carry_out()

    assert caught.value.code == "POLYNYA-LAKE-068"
    assert lakehouse.held("new") == {other.full_name: other.metadata}
    assert lakehouse.refusal("old") is None


def test_views_of_others_are_not_taken_for_moved_ones(lakehouse: Lakehouse) -> None:
    view = lakehouse.warehouse.parent / "00000-b.metadata.json"
    view.write_text("{}")
    new_catalog(lakehouse.files["new"], _NAME, [CatalogEntry("shop", "users", str(view), True)])
    before = lakehouse.held("old")

    with pytest.raises(OperationError) as caught:
        lakehouse.move().carry_out()

    assert caught.value.code == "POLYNYA-LAKE-068"
    assert lakehouse.held("old") == before


def test_a_move_from_a_catalog_without_tables_marks_nothing(lakehouse: Lakehouse) -> None:
    lakehouse.files["empty"] = lakehouse.warehouse.parent / "empty.db"

    done = lakehouse.move("empty", "new").carry_out()

    assert done.release == []
    assert [lakehouse.refusal(name) for name in ("old", "new", "empty")] == [None] * 3


def test_targets_that_do_not_go_together_are_refused(lakehouse: Lakehouse, tmp_path: Path) -> None:
    same = lakehouse.move("old", "old")
    elsewhere = replace(lakehouse.target("new"), warehouse=tmp_path / "other")
    apart = replace(lakehouse.move(), end=elsewhere)

    for impossible in (same, apart):
        with pytest.raises(OperationError) as caught:
            impossible.carry_out()
        assert caught.value.code == "POLYNYA-LAKE-069"


def test_the_former_catalog_is_not_repaired_from_the_moved_tables(lakehouse: Lakehouse) -> None:
    lakehouse.move().carry_out()
    former = lakehouse.target("old")

    for use in (lambda: refuse_unusable(former, _NAME), lambda: repair(former, _NAME)):
        with pytest.raises(OperationError) as caught:
            use()
        assert caught.value.code == "POLYNYA-LAKE-066"
    assert lakehouse.held("old") == {}


def test_a_damaged_mark_stops_runs(lakehouse: Lakehouse) -> None:
    lakehouse.move().carry_out()
    (lakehouse.warehouse / FOLDER / "shop_internal.json").write_text(json.dumps(["?"]))

    assert lakehouse.refusal("new") == "POLYNYA-LAKE-067"
