"""A column that the source did not send keeps the value valid just before, in order of events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from polynya.engine.commands.rebuild import rebuild
from polynya.lake.read.verify import verify
from polynya.lake.table import shaping
from polynya.model.formats import FormatRules, rules_of
from tests.lab.chosen import slow
from tests.lab.events import delete, land, load, upsert
from tests.lab.lab import Lab, Row

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


#: Keys of records that live side by side in one capture: each of them is a story of its own.
LATE, DELETED, LOADED, SENT, GONE = range(1, 6)
#: What is applied together, one after the other.
APPLIED = (
    [
        FIRST, SECOND, upsert(LATE, 30, unsent=["note"], name="Annie"),
        upsert(DELETED, 10, name="Ann", note="long"),
        upsert(LOADED, 10, unsent=["note"], name="Ann"),
        upsert(SENT, 10, unsent=["note"], name="Ann"), load(SENT, at=30, name="Ann", note="b"),
        upsert(GONE, 10, unsent=["note"], name="Bob"), load(GONE, at=30, name="Bob", note="c"),
    ],
    [
        upsert(DELETED, 20, unsent=["note"], name="Anna"),
        upsert(SENT, 20, name="Ann", note="b"), delete(GONE, 20),
    ],
)  # fmt: skip
#: What lands after that, each in a batch.
LANDED = (
    [upsert(LOADED, 20, unsent=["note"], name="Anna")],
    [
        upsert(LATE, 15, name="Ann", note="late"), delete(DELETED, 15),
        load(LOADED, at=30, name="Anna", note="long"),
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Lived:
    """The history of each key before the last apply and after it, and what is wrong then."""

    before: dict[int, list[Row]]
    after: dict[int, list[Row]]
    findings: list[Any]

    def of(self, key: int) -> list[Row]:
        """The history of a record, which an apply does not change."""
        assert self.before[key] == self.after[key]
        return self.after[key]


@pytest.fixture(scope="module")
def lived(module_lab: Lab) -> Lived:
    """All stories, lived through once: most of their time is that of the steps and the views."""
    capture = module_lab.capture()
    for events in APPLIED:
        land(capture, *events)
        capture.run("always")
    for events in LANDED:
        land(capture, *events)
        capture.run()

    def history() -> dict[int, list[Row]]:
        rows = capture["users"].history("id", "name", "note")
        return {key: [row[1:] for row in rows if row[0] == key] for key in range(1, 6)}

    before = history()
    capture.run("always")
    return Lived(before, history(), verify(capture["users"].table()).findings)


def test_what_the_records_become_is_sound(lived: Lived) -> None:
    assert not lived.findings


def test_a_late_value_goes_to_all_that_come_after_it(lived: Lived) -> None:
    assert lived.of(LATE) == [
        ("Ann", "late", "U", 15.0, 20.0),
        ("Ann", "long", "I", 10.0, 15.0),
        ("Anna", "late", "U", 20.0, 30.0),
        ("Annie", "late", "U", 30.0, None),
    ]


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


def test_a_delete_that_lands_late_ends_what_was_inherited(lived: Lived) -> None:
    assert lived.of(DELETED)[-1][:3] == ("Anna", None, "I")


def test_a_load_that_lands_later_fills_what_changes_did_not_send(lived: Lived) -> None:
    states = [row[:3] for row in lived.of(LOADED)]

    assert states == [("Ann", "long", "I"), ("Anna", "long", "U"), ("Anna", "long", "U")]


def test_what_a_change_sent_between_is_not_taken_from_a_later_load(lived: Lived) -> None:
    assert {row[1:3] for row in lived.of(SENT)} == {(None, "I"), ("b", "U")}
    # What stood before a delete is not what a load shows behind it.
    assert {row[1:3] for row in lived.of(GONE)} == {(None, "I"), (None, "D"), ("c", "L")}


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


@pytest.mark.slow
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
