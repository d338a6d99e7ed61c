"""A table that begins again: all goes in one commit, and the next run reads all that has landed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.engine.commands.rebuild import recreate
from polynya.engine.commands.unit_command import UnitCommand, execute
from polynya.engine.dataset import WorkingDataset
from polynya.lake.table.dataset import empty
from polynya.model.errors import FencedError, OperationError
from tests.lab.events import land, upsert
from tests.lab.lab import Capture, Feed, Lab, drop, put


def again(work: Feed | Capture, unit: str, dataset: str | None = None) -> str | None:
    """Recreate, as the owner of a unit does."""
    return execute(work.lab.context(), work.task, unit, UnitCommand("recreate", dataset))


def test_all_goes_and_what_has_landed_is_read_with_todays_settings(lab: Lab) -> None:
    users = lab.feed(sort_by=["city"])
    users.apply(put(1, 1, name="Ann", city="Oslo", age=4), put(2, 2, name="Ben", city="Bonn"))
    users.apply(drop(2, 3), b"not json")
    assert len(users.rejected()) == 1
    before = users.table().state
    users.configure(keys=["name"])
    (users.folder / "0002.json").write_text("")
    (users.folder / "0001.json").unlink()
    users.land(put(1, 4, name="Ann", city="Rome", age="old"), put(1, 5, name="Cid", city=""))

    said = again(users, users.view)

    assert said == f"{users.view}: emptied, what has landed is reread"
    after = users.table().state
    assert after.epoch == before.epoch + 1
    assert (after.copy.position.files, after.apply.applies) == ({}, 0)
    assert after.copy.columns.schema == {"city": "string"}
    stored = {name for name in users.table().table.column_names() if not name.startswith("hdr__")}
    assert stored == {"city"}
    users.apply()
    assert users.rejected() == []
    assert users.current("id", "name", "age") == [(1, "Ann", "old"), (1, "Cid", None)]
    assert users.types()["age"] == "string"


@pytest.mark.slow
def test_done_again_it_comes_to_the_same(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    again(users, users.view)
    again(users, users.view)
    users.apply()

    assert users.current("id", "name") == [(1, "Ann")]


def test_who_was_overtaken_empties_nothing(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    stale = replace(lab.context(), owner="n1", epoch=5)
    table = WorkingDataset.open(stale, users.dataset).table
    table.take_over()
    recreate(
        replace(lab.context(), owner="n2", epoch=6), users.task, [users.dataset], whole_task=False
    )
    users.apply()

    with pytest.raises(FencedError):
        empty(table)

    assert users.current("id", "name") == [(1, "Ann")]


@pytest.mark.slow
def test_a_capture_forgets_its_tables_and_finds_them_again(lab: Lab) -> None:
    capture = lab.capture()
    for table in ("a", "b"):
        land(capture, upsert(1, 10, name="Ann"), table=table)
    capture.apply()

    again(capture, capture.task.name)

    assert capture.ledger().table().state.copy.membership.members == []
    capture.apply()
    assert capture["a"].current("id", "name") == [(1, "Ann")]
    assert capture["b"].current("id", "name") == [(1, "Ann")]


@pytest.mark.slow
def test_one_table_of_a_capture_reads_the_shared_files_again(lab: Lab) -> None:
    capture = lab.capture()
    for table in ("a", "b"):
        land(capture, upsert(1, 10, name="Ann"), table=table)
    capture.apply()
    untouched = capture["b"].table().state.snapshot

    again(capture, capture.task.name, "a")
    capture.apply()

    assert capture["a"].current("id", "name") == [(1, "Ann")]
    assert capture["b"].table().state.snapshot == untouched


def test_what_a_unit_has_not_cannot_be_done(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    with pytest.raises(OperationError) as caught:
        again(users, users.view, "orders")

    assert caught.value.code == "POLYNYA-AGT-024"
    assert users.current("id", "name") == [(1, "Ann")]
