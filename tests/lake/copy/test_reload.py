"""Reloads: the new load gathers beside Current, and one commit moves only what differs."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, ReloadResult, abandon_begun, reload
from polynya.lake.copy import reload as steps
from polynya.model.config.dataset import ReloadMode
from polynya.model.errors import OperationError
from polynya.observe.events import Event
from tests.lab.chosen import slow
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lake.apply.plain import PlainApplier

COMPARE: ReloadMode = "compare_and_apply_with_deleted_rows"


def row(key: int, name: str | None, **more: Any) -> dict[str, Any]:
    """A record as an extract holds it: without an operation or a sequence."""
    return {"id": key, "name": name, **more}


def loaded(lab: Lab, **how: Any) -> Feed:
    """A dataset whose first load is applied: 1 Ann, 2 Ben, 3 Cid."""
    users = lab.feed(initial_load="load/*.json", **how)
    users.land(row(1, "Ann"), row(2, "Ben"), row(3, "Cid"), file="load/1.json")
    users.apply()
    return users


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    return Kept(loaded(module_lab))


@pytest.fixture
def users(kept: Kept) -> Feed:
    """`loaded`, with history."""
    return kept.again()


def again(
    users: Feed, mode: ReloadMode = COMPARE, *, accept_incomplete: bool = False, **parts: Any
) -> ReloadResult:
    """Reload, as `polynya reload` does."""
    result = reload(
        users.lab.context(**parts),
        ReloadRequest(users.task, users.dataset, mode=mode, accept_incomplete=accept_incomplete),
    )
    assert result is not None
    return result


def extract(users: Feed, *rows: dict[str, Any]) -> None:
    """Put a new extract in the place of the old one."""
    users.land(*rows, file="load/1.json")


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_only_differences_move(users: Feed, plain: bool) -> None:
    extract(users, row(1, "Ann"), row(2, "Benny"), row(4, "Dot"))

    result = again(users, **({"applier": PlainApplier()} if plain else {}))

    assert users.current("id", "name") == [(1, "Ann"), (2, "Benny"), (4, "Dot")]
    stored = users.stored("current", "id", "hdr__operation")
    assert stored == [(1, "L"), (2, "u"), (4, "i")]
    assert [line[:3] for line in users.history("id", "name")] == [
        (1, "Ann", "L"), (2, "Ben", "L"), (2, "Benny", "u"), (3, "Cid", "L"), (3, "Cid", "d"),
        (4, "Dot", "i"),
    ]  # fmt: skip
    assert users.stored("reload", "id") == []
    if not plain:
        assert (result.loaded, result.current, result.removed) == (3, 2, 2)


def test_a_reload_without_differences_writes_no_row(lab: Lab) -> None:
    values = {"price": 1.5, "tags": ["a", None], "at": None, "where": {"x": 1, "y": None}}
    users = lab.feed(initial_load="load/*.json", timestamp=None, except_columns=["op", "seq"])
    users.land(row(1, None, **values), row(2, "Ben"), file="load/1.json")
    users.apply()
    before = users.stored("current", "id", "hdr__modified_timestamp")

    result = again(users)

    assert (result.loaded, result.current, result.prior, result.removed) == (2, 0, 0, 0)
    assert users.stored("current", "id", "hdr__modified_timestamp") == before


def test_rows_that_the_load_lacks_may_stay(users: Feed) -> None:
    extract(users, row(1, "Anna"))

    again(users, "compare_and_apply_without_deleted_rows")

    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben"), (3, "Cid")]


def test_truncate_and_insert_ends_every_record_and_begins_anew(users: Feed) -> None:
    extract(users, row(1, "Ann"), row(4, "Dot"))

    again(users, "truncate_and_insert")

    assert users.current("id", "name") == [(1, "Ann"), (4, "Dot")]
    assert [line[:2] for line in users.history("id", "hdr__operation")] == [
        (1, "D"), (1, "L"), (1, "L"), (2, "D"), (2, "L"), (3, "D"), (3, "L"), (4, "L"),
    ]  # fmt: skip


@pytest.mark.parametrize("plain", [False, slow(True)], ids=["fast", "plain"])
def test_drop_and_create_forgets_what_was(users: Feed, plain: bool) -> None:
    users.apply(put(1, 5, name="Anna"))
    extract(users, row(1, "Ann"), row(4, "Dot"))

    again(users, "drop_and_create", **({"applier": PlainApplier()} if plain else {}))

    assert users.current("id", "name") == [(1, "Ann"), (4, "Dot")]
    assert [line[:2] for line in users.history("id", "hdr__operation")] == [(1, "L"), (4, "L")]


@pytest.mark.parametrize("history", [True, slow(False)])
def test_changes_that_arrive_meanwhile_are_kept_and_applied_after(lab: Lab, history: bool) -> None:
    users = loaded(lab, history=history)
    users.apply(put(2, 10, name="Ben 10"))
    extract(users, row(1, "Ann"), row(2, "Ben 10"), row(3, "Cid"))
    target = users.table()
    steps.begin(target, COMPARE, now=STARTED)

    users.apply(put(1, 20, name="Ann 20"), drop(3, 21))
    during = users.current("id", "name")
    again(users)

    assert during == [(1, "Ann 20"), (2, "Ben 10")] == users.current("id", "name")
    users.apply(put(3, 30, name="Cid 30"))
    assert users.current("id", "name") == [(1, "Ann 20"), (2, "Ben 10"), (3, "Cid 30")]


def test_an_event_older_than_the_reload_does_not_undo_it(users: Feed) -> None:
    users.apply(put(1, 10, name="Ann 10"))
    extract(users, row(1, "Anna"), row(2, "Ben"), row(3, "Cid"))
    again(users)

    users.copy(put(1, 5, name="late"))
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(1, "Anna"), (2, "Ben"), (3, "Cid")]


def test_a_killed_reload_goes_on_where_it_stood(lab: Lab) -> None:
    users = loaded(lab, task={"batch": {"max_rows": 2}})
    extract(users, row(1, "Anna"), row(2, "Benny"), row(4, "Dot"))
    killed = lab.context()

    def stop(event: Event) -> None:
        if event.type == "reload.loaded":
            killed.stop.set()

    killed.sink = stop

    assert reload(killed, ReloadRequest(users.task, users.dataset, mode=COMPARE)) is None
    untouched = users.current("id", "name")
    result = again(users)

    assert untouched == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert result.loaded == 3
    assert users.current("id", "name") == [(1, "Anna"), (2, "Benny"), (4, "Dot")]


def test_a_reload_can_be_given_up(users: Feed, lab: Lab) -> None:
    other = lab.feed()
    other.copy(put(1, 1))
    target = users.table()
    steps.begin(target, COMPARE, now=STARTED)
    with pytest.raises(OperationError, match="is under way"):
        again(users, "drop_and_create")

    # Another dataset of the task has no reload under way.
    both = [other.dataset, users.dataset]
    given_up = abandon_begun(users.lab.context(), both)

    assert given_up == [users.view]
    with pytest.raises(OperationError, match="no reload of"):
        abandon_begun(users.lab.context(), both)
    again(users, "drop_and_create")
    assert users.current("id") == [(1,), (2,), (3,)]


def test_a_run_leaves_the_files_of_a_reload_that_is_under_way(users: Feed) -> None:
    steps.begin(users.table("killed"), COMPARE, now=STARTED)
    extract(users, row(2, "Benny"), row(4, "Dot"))
    users.land(row(5, "Eve"), file="load/2.json")

    users.apply(put(1, 10, name="Ann 10"))
    during = users.current("id", "name")
    users.copy(put(3, 11, name="Cid 11"))
    again(users)

    assert during == [(1, "Ann 10"), (2, "Ben"), (3, "Cid")]
    told = [event.text() for event in users.lab.events if event.type == "reload.waiting"]
    assert [line.split(": ", 2)[2] for line in told] == [
        "`polynya reload` has to read 2 more files of its load"
    ] * len(told)
    assert told
    # What changed while the reload was under way is newer than its load.
    found = users.current("id", "name")
    assert found == [(1, "Ann 10"), (2, "Benny"), (3, "Cid 11"), (4, "Dot"), (5, "Eve")]


def test_a_reload_goes_on_with_the_files_that_it_began_with(users: Feed) -> None:
    users.land(row(1, "Anna"), file="other/1.json")
    steps.begin(users.table("killed"), COMPARE, now=STARTED, glob="other/*.json")

    again(users)

    assert users.current("id", "name") == [(1, "Anna")]


def test_what_cannot_be_read_is_not_deleted(users: Feed) -> None:
    users.land(row(1, "Anna"), b"{broken", row(3, "Cid"), file="load/1.json")

    with pytest.raises(OperationError, match="1 of its records went to quarantine") as refused:
        again(users)
    untouched = users.current("id", "name")
    result = again(users, accept_incomplete=True)

    assert refused.value.code == "POLYNYA-LAKE-015"
    assert untouched == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert (result.loaded, result.quarantined) == (2, 1)
    assert users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    totals = users.totals()
    assert totals["in"] == totals["out"] + totals["filtered"] + totals["quarantined"] == 6


def test_a_load_that_deletes_nothing_may_have_bad_records(users: Feed) -> None:
    users.land(row(1, "Anna"), b"{broken", file="load/1.json")

    again(users, "compare_and_apply_without_deleted_rows")

    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben"), (3, "Cid")]


@pytest.mark.parametrize("mode", [COMPARE, "truncate_and_insert", slow("drop_and_create")])
def test_an_empty_load_deletes_only_when_told_so(users: Feed, mode: ReloadMode) -> None:
    extract(users)

    with pytest.raises(OperationError, match="it holds no row"):
        again(users, mode)
    untouched = users.current("id")
    again(users, mode, accept_incomplete=True)

    assert untouched == [(1,), (2,), (3,)]
    assert users.current("id") == []


def test_a_file_that_changes_while_it_is_loaded_is_an_error(lab: Lab) -> None:
    users = loaded(lab, task={"batch": {"max_rows": 2}})
    extract(users, row(1, "Anna"), row(2, "Benny"), row(3, "Cid"), row(4, "Dot"))
    context = lab.context()

    def rewrite(event: Event) -> None:
        if event.type == "reload.loaded":
            extract(users, row(1, "A"))

    context.sink = rewrite

    with pytest.raises(OperationError, match="changed or disappeared while") as failed:
        reload(context, ReloadRequest(users.task, users.dataset, mode=COMPARE))

    assert failed.value.code == "POLYNYA-LAKE-016"
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]


def test_soft_deleted_rows_stay_deleted(lab: Lab) -> None:
    users = loaded(lab, delete_mode="soft", history=False)
    users.apply(drop(3, 10))
    extract(users, row(1, "Ann"))

    again(users)

    found = users.current("id", "hdr__deleted")
    assert found == [(1, False), (2, True), (3, True)]
    assert users.stored("current", "id", "hdr__operation") == [(1, "L"), (2, "d"), (3, "D")]


def test_a_new_column_of_the_load_is_added(lab: Lab) -> None:
    users = loaded(lab)
    extract(users, row(1, "Ann", city="Oaxaca"), row(2, "Ben"), row(3, "Cid"))

    result = again(users)

    assert users.current("id", "city") == [(1, "Oaxaca"), (2, None), (3, None)]
    assert result.current == 1


def test_nothing_to_load_is_an_error_and_no_empty_table(users: Feed) -> None:
    (users.folder / "load/1.json").unlink()

    with pytest.raises(OperationError, match="no file matches"):
        again(users)

    assert len(users.current("id")) == 3
