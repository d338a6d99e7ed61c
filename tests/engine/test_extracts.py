"""Full extracts: each landed one is compared with the table, in order, whole and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.engine.runner import run_once, units
from polynya.lake.copy import compared_load, reload
from polynya.lake.read.verify import verify
from polynya.lake.table.suspension import resume
from polynya.model import headers as h
from polynya.model.errors import OperationError, SuspendedError
from polynya.observe.events import Event
from tests.lab.lab import Feed, Lab, moment


def row(key: int, name: str | None, **more: Any) -> dict[str, Any]:
    """A record as an extract holds it: without an operation or a sequence."""
    return {"id": key, "name": name, **more}


def source(lab: Lab, *, name: str = "users", path: str | None = None, **extracts: Any) -> Feed:
    """A dataset of extracts whose names hold seconds: `000010.json` is that of second 10."""
    bare = dict.fromkeys(
        ("sequence_by", "timestamp", "apply_as_deletes", "apply_as_truncates", "except_columns")
    )
    named = {"time_in_name": "%Y-%m-%dT%H%M%S", **extracts}
    return lab.feed(name, **bare, path=path or "*.json", extracts=named)


def land(users: Feed, second: int, *rows: dict[str, Any] | bytes, part: str = ".json") -> str:
    """Land one extract."""
    return users.land(*rows, file=f"{moment(second):%Y-%m-%dT%H%M%S}{part}")


def told(lab: Lab, kind: str) -> list[Any]:
    """The extracts that events of a kind are about."""
    return [event.as_json()["extract"] for event in lab.events if event.type == kind]


def test_each_extract_moves_its_differences_at_its_time(lab: Lab) -> None:
    users = source(lab)
    land(users, 0, row(1, "Ann"), row(2, "Ben"), row(3, "Cid"))
    users.run()
    first = users.current("id", "name")
    land(users, 20, row(2, "Benny"), row(3, "Cid"), row(1, "Ann"))
    land(users, 10, row(2, "Ben"), row(3, "Cid"), row(4, "Dot"))

    users.run()
    users.run()

    assert first == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert users.current("id", "name") == [(1, "Ann"), (2, "Benny"), (3, "Cid")]
    assert users.history("id", "name") == [
        (1, "Ann", "L", 0.0, 10.0),
        (1, "Ann", "d", 10.0, 20.0),
        (1, "Ann", "i", 20.0, None),
        (2, "Ben", "L", 0.0, 20.0),
        (2, "Benny", "u", 20.0, None),
        (3, "Cid", "L", 0.0, None),
        (4, "Dot", "d", 20.0, None),
        (4, "Dot", "i", 10.0, 20.0),
    ]
    assert len(told(lab, "extract.applied")) == 3
    assert users.totals() == {"in": 9, "out": 9, "filtered": 0, "quarantined": 0}
    assert not verify(users.table()).findings


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="history"),
        pytest.param({"history": False}, id="newest only", marks=pytest.mark.slow),
        pytest.param({"timestamp": "at"}, id="own times", marks=pytest.mark.slow),
    ],
)
def test_a_first_extract_leaves_what_the_fold_leaves(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """Its rows go to Current as they are, also where Spark counts their keys."""
    rows = [row(1, "Ann", at=moment(3).isoformat()), row(2, None), row(3, "Cid"), b"no record"]
    columns = [*(name for name in h.HEADER_NAMES if name != h.QUARANTINE), "id", "name"]
    left = {}
    for how in ("as they are", "counted by Spark", "folded"):
        users = source(lab, name=how.replace(" ", "_"))
        users.settings |= settings
        land(users, 5, *rows)
        with monkeypatch.context() as patch:
            if how == "counted by Spark":
                patch.setattr(compared_load, "MOST_ROWS", 0)
            if how == "folded":
                patch.setattr(reload, "goes_to_current", lambda *_: False)
            users.run()
        assert not verify(users.table()).findings
        left[how] = (users.stored("current", *columns), users.stored("prior", "id"))
        whole = f"SELECT 1 FROM {users.internal}.snapshots WHERE summary['polynya.reload'] <> ''"
        step = f"{whole} AND summary['polynya.step'] = 'apply'"
        assert len(lab.rows(step)) == (how == "folded")
    assert left["as they are"] == left["counted by Spark"] == left["folded"]


@pytest.mark.parametrize("rows", [[row(1, "Ann"), row(1, "Anna")], [row(1, "a"), row(1, "a")]])
def test_a_first_extract_with_a_key_twice_is_folded(lab: Lab, rows: list[dict[str, Any]]) -> None:
    users = source(lab)
    land(users, 0, *rows, row(2, "Ben"))

    users.run()

    assert users.current("id") == [(1,), (2,)]
    assert not verify(users.table()).findings


@pytest.mark.slow
def test_what_an_incomplete_extract_lacks_stays_and_a_late_one_is_set_aside(lab: Lab) -> None:
    users = source(lab)
    land(users, 0, row(1, "Ann"), row(2, "Ben"))
    land(users, 20, row(1, "Anna"), b"{broken")
    land(users, 30)
    users.run()
    incomplete = users.current("id", "name")
    late = land(users, 10, row(9, "late"))
    nameless = users.land(row(9, "when?"), file="users.json")
    land(users, 40, row(1, "Anna"))

    users.run()

    assert incomplete == [(1, "Anna"), (2, "Ben")]
    assert users.current("id", "name") == [(1, "Anna")]
    rules = {(Path(file).name, rule) for file, _, rule in users.rejected()}
    assert rules == {
        (f"{moment(20):%Y-%m-%dT%H%M%S}.json", "bad_json"),
        (late, "late_extract"),
        (nameless, "no_extract"),
    }
    totals = users.totals()
    assert totals["in"] == totals["out"] + totals["quarantined"] == 4 + 3


def test_an_empty_extract_counts_where_it_is_accepted(lab: Lab) -> None:
    users = source(lab, incomplete="accept")
    land(users, 0, row(1, "Ann"))
    land(users, 10)

    users.run()

    assert users.current("id") == []
    assert users.history("id")[-1] == (1, "d", 10.0, None)


def test_absent_records_may_stay_and_only_some_columns_tell_a_change(lab: Lab) -> None:
    users = source(lab, absent="keep", check_columns=["name"])
    land(users, 0, row(1, "Ann", n=1), row(2, "Ben", n=1))
    land(users, 10, row(1, "Ann", n=2), row(3, "Cid", n=1))

    users.run()

    assert users.current("id", "name", "n") == [(1, "Ann", 1), (2, "Ben", 1), (3, "Cid", 1)]


def test_updated_at_tells_a_change_and_its_time(lab: Lab) -> None:
    def dated(key: int, name: str, second: int) -> dict[str, Any]:
        return row(key, name, at=moment(second).isoformat())

    users = source(lab, updated_at="at")
    land(users, 10, dated(1, "Ann", 1), dated(2, "Ben", 2), dated(3, "Cid", 3))
    land(users, 20, dated(1, "Anna", 1), dated(2, "Benny", 12))
    land(users, 30, dated(2, "older", 5), dated(3, "Cid", 3))

    users.run()

    assert users.history("id", "name") == [
        (1, "Ann", "L", 1.0, 30.0),
        (1, "Ann", "d", 30.0, None),
        (2, "Ben", "L", 2.0, 12.0),
        (2, "Benny", "u", 12.0, None),
        (3, "Cid", "L", 3.0, 20.0),
        (3, "Cid", "d", 20.0, 20.0),
        (3, "Cid", "i", 20.0, None),
    ]


def test_a_folder_is_read_when_its_marker_is_there(lab: Lab) -> None:
    users = source(lab, path="*/*.json", each="folder")
    land(users, 0, row(1, "Ann"), part="/a.json")
    land(users, 0, row(2, "Ben"), part="/b.json")
    users.run()
    waited = users.table().state.copy.columns.schema
    land(users, 0, part="/_SUCCESS")
    users.run()
    land(users, 0, row(3, "Cid"), part="/c.json")
    users.land(row(4, "Dot"), file="a.json")
    land(users, 10, row(2, "Ben"), part="/a.json")

    users.run()

    assert waited == {}
    assert users.current("id") == [(1,), (2,)]
    assert sorted(rule for *_, rule in users.rejected()) == ["late_extract"]
    assert len(told(lab, "extract.waiting")) == 2


def test_a_bad_record_may_suspend_the_dataset(lab: Lab) -> None:
    users = source(lab)
    land(users, 0, row(1, "Ann"), row(2, "Ben"))
    users.run()
    users.configure(on_bad_record="suspend")
    land(users, 10, row(1, "Anna"), b"{broken")

    with pytest.raises(SuspendedError, match="bad_json"):
        users.run()
    with pytest.raises(SuspendedError, match="bad_json"):
        users.run()
    waiting = users.current("id", "name")
    resume(users.table("somebody"), {"bad_record": "quarantine"})
    users.run()

    assert waiting == [(1, "Ann"), (2, "Ben")]
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]
    assert users.table().state.copy.decisions.accepted == {}


def stopped(lab: Lab, users: Feed, kind: str = "reload.loaded") -> None:
    """Run, and stop at the first event of a kind, as a killed process does."""
    context = lab.context()

    def stop(event: Event) -> None:
        if event.type == kind:
            context.stop.set()

    context.sink = stop
    for failure in run_once(context, units(context, [users.task])).failures.values():
        raise failure


@pytest.mark.slow
def test_a_killed_extract_goes_on_and_one_that_changed_begins_anew(lab: Lab) -> None:
    users = source(lab)
    users.more = {"batch": {"max_rows": 2}}
    land(users, 0, row(1, "Ann"), row(2, "Ben"), row(3, "Cid"))
    users.run()
    land(users, 10, row(1, "Anna"), row(2, "Ben"), row(4, "Dot"))

    stopped(lab, users)
    halfway = users.current("id", "name"), len(users.stored("reload", "id"))
    land(users, 10, row(1, "Anne"), row(2, "Ben"), row(4, "Dot"), row(5, "Eve"), row(6, "Fay"))
    users.run()
    users.run()

    assert halfway == ([(1, "Ann"), (2, "Ben"), (3, "Cid")], 2)
    assert told(lab, "extract.restarted") == told(lab, "extract.applied")[1:]
    assert users.current("id") == [(1,), (2,), (4,), (5,), (6,)]
    stopped_again = users.table().state.copy
    assert stopped_again.reloading is None
    land(users, 20, row(1, "Anne"), row(2, "Bob"), row(4, "Dot"))
    stopped(lab, users)
    users.run()
    assert users.current("id", "name") == [(1, "Anne"), (2, "Bob"), (4, "Dot")]


def test_an_extract_that_left_is_given_up(lab: Lab) -> None:
    users = source(lab)
    users.more = {"batch": {"max_rows": 1}}
    land(users, 0, row(1, "Ann"))
    users.run()
    gone = land(users, 10, row(7, "gone"), row(8, "gone"))
    stopped(lab, users)
    (users.folder / gone).unlink()
    land(users, 20, row(1, "Anna"))

    users.run()

    assert users.current("id", "name") == [(1, "Anna")]
    assert told(lab, "extract.restarted") == [gone]


@pytest.mark.slow
def test_a_first_extract_without_a_good_row_and_a_column_that_is_not_there(lab: Lab) -> None:
    users = source(lab, updated_at="changed")
    land(users, 0, b"\xff\xfe", b"{broken")
    users.run()
    land(users, 10, row(1, "Ann"))
    land(users, 20, row(1, "Anna"))

    with pytest.raises(OperationError) as failed:
        users.run()
    users.configure(extracts={"time_in_name": "%Y-%m-%dT%H%M%S", "check_columns": ["name"]})
    users.run()

    assert failed.value.code == "POLYNYA-LAKE-021"
    assert users.current("id", "name") == [(1, "Anna")]
