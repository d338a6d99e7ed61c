"""A column that the source did not send keeps the value valid just before, in order of events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polynya.engine.commands.rebuild import rebuild
from polynya.lake.read.verify import verify
from polynya.lake.table import shaping
from polynya.model.formats import FormatRules, rules_of
from tests.lab.chosen import slow
from tests.lab.events import delete, land, load, upsert
from tests.lab.lab import Lab

FIRST = upsert(1, 10, name="Ann", note="long")
SECOND = upsert(1, 20, unsent=["note"], name="Anna")


@pytest.mark.parametrize(
    ("order", "history"),
    [
        ("together", True),
        ("one by one", False),
        ("backwards", True),
        slow("together", False),
        slow("one by one", True),
        slow("backwards", False),
    ],
)
def test_the_value_just_before_is_kept(lab: Lab, order: str, history: bool) -> None:
    capture = lab.capture(history=history)
    steps = {
        "together": [[FIRST, SECOND]],
        "one by one": [[FIRST], [SECOND]],
        "backwards": [[SECOND], [FIRST]],
    }
    for events in steps[order]:
        land(capture, *events)
        capture.run()
    before = capture["users"].current("name", "note")

    capture.run("always")

    assert before == capture["users"].current("name", "note") == [("Anna", "long")]


def test_a_late_value_goes_to_all_that_come_after_it(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, FIRST, SECOND, upsert(1, 30, unsent=["note"], name="Annie"))
    capture.run("always")

    land(capture, upsert(1, 15, name="Ann", note="late"))
    capture.run()
    before = capture["users"].history("name", "note")
    capture.run("always")

    expected = [
        ("Ann", "late", "U", 15.0, 20.0),
        ("Ann", "long", "I", 10.0, 15.0),
        ("Anna", "late", "U", 20.0, 30.0),
        ("Annie", "late", "U", 30.0, None),
    ]
    assert before == capture["users"].history("name", "note") == expected


def test_a_null_that_was_sent_is_a_value(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, FIRST, upsert(1, 15, name="Ann", note=None), SECOND)

    capture.run("always")

    assert capture["users"].current("name", "note") == [("Anna", None)]


@pytest.mark.parametrize("history", [slow(False), True])
def test_nothing_is_inherited_over_a_delete(lab: Lab, history: bool) -> None:
    capture = lab.capture(history=history)
    land(capture, FIRST)
    capture.run("always")

    land(capture, delete(1, 15), SECOND)
    capture.run()
    before = capture["users"].current("name", "note")
    capture.run("always")

    assert before == capture["users"].current("name", "note") == [("Anna", None)]


def test_a_delete_that_lands_late_ends_what_was_inherited(lab: Lab) -> None:
    capture = lab.capture()
    for event in (FIRST, SECOND):
        land(capture, event)
        capture.run("always")

    land(capture, delete(1, 15))
    capture.run()
    before = capture["users"].history("name", "note")
    capture.run("always")

    assert before == capture["users"].history("name", "note")
    assert before[-1][:3] == ("Anna", None, "I")
    assert not verify(capture["users"].table()).findings


def test_a_load_that_lands_later_fills_what_changes_did_not_send(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, unsent=["note"], name="Ann"))
    capture.run("always")
    land(capture, upsert(1, 20, unsent=["note"], name="Anna"))
    capture.run()

    land(capture, load(1, at=30, name="Anna", note="long"))
    capture.run()
    before = capture["users"].history("name", "note")
    capture.run("always")

    states = [(row[0], row[1], row[2]) for row in before]
    assert states == [("Ann", "long", "I"), ("Anna", "long", "U"), ("Anna", "long", "U")]
    assert before == capture["users"].history("name", "note")
    assert not verify(capture["users"].table()).findings


def test_what_a_change_sent_between_is_not_taken_from_a_later_load(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, unsent=["note"], name="Ann"), load(1, at=30, name="Ann", note="b"))
    land(capture, upsert(2, 10, unsent=["note"], name="Bob"), load(2, at=30, name="Bob", note="c"))
    capture.run("always")

    land(capture, upsert(1, 20, name="Ann", note="b"), delete(2, 20))
    capture.run("always")

    states = capture["users"].history("name", "note")
    assert {row[1:3] for row in states if row[0] == "Ann"} == {(None, "I"), ("b", "U")}
    # What stood before a delete is not what a load shows behind it.
    assert {row[1:3] for row in states if row[0] == "Bob"} == {(None, "I"), (None, "D"), ("c", "L")}


def test_a_load_that_shows_what_is_known_adds_no_version(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, *(load(key, at=0, name="Ann", note="long") for key in range(3)))
    capture.run("always")
    land(capture, upsert(1, 10, unsent=["note"], name="Anna"))
    capture.run("always")

    again = [load(key, at=20, name="Ann", note="long") for key in (0, 2)]
    land(capture, *again, load(1, at=20, name="Anna", note="long"))
    capture.run("always")

    states = [(row[0], row[1], row[2]) for row in capture["users"].history("id", "name")]
    assert sorted(states) == [(0, "Ann", "L"), (1, "Ann", "L"), (1, "Anna", "U"), (2, "Ann", "L")]
    assert not verify(capture["users"].table()).findings


@pytest.mark.slow
def test_a_rebuild_mends_history_of_the_time_when_loaded_rows_were_changes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_looks(name: str) -> FormatRules:
        return replace(rules_of(name), reads_in_order=False)

    capture = lab.capture(changes_retention="keep")
    with monkeypatch.context() as then:
        then.setattr(shaping, "rules_of", without_looks)
        land(capture, upsert(1, 10, unsent=["note"], name="Ann"))
        capture.run("always")
        land(capture, *(load(1, at=at, name="Ann", note="long") for at in (20, 30)))
        capture.run("always")
    users = capture["users"]
    stored = [row[1:3] for row in users.history("name", "note")]
    assert sorted(stored, key=repr) == [("long", "U"), ("long", "U"), (None, "I")]
    rules = {finding.rule for finding in verify(users.table()).findings}

    rebuild(lab.context(), users.dataset)

    assert rules == {"changed_version", "surplus_version"}
    assert users.history("name", "note") == [
        ("Ann", "long", "I", 10.0, 20.0),
        ("Ann", "long", "U", 20.0, None),
    ]
    land(capture, upsert(1, 15, unsent=["note"], name="Anne"))
    capture.run("always")
    assert [row[1] for row in users.history("name", "note")] == ["long"] * 3
    assert not verify(users.table()).findings


def test_a_late_delete_makes_a_loaded_row_the_first_of_a_record(lab: Lab) -> None:
    capture = lab.capture(changes_retention="keep")
    land(capture, upsert(1, 10, name="Ann"), load(1, at=30, name="Anna"))
    capture.run("always")

    land(capture, delete(1, 20))
    capture.run()
    before = capture["users"].history("name")
    capture.run("always")

    assert sorted(row[1] for row in before) == ["D", "I", "L"]
    assert before == capture["users"].history("name")
    assert not verify(capture["users"].table()).findings
