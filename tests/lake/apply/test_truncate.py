"""A truncate deletes every record whose last event is older, whenever it arrives."""

from __future__ import annotations

import pytest

from tests.lab.chosen import slow
from tests.lab.lab import Lab, clear, drop, put


@pytest.mark.parametrize("history", [False, slow(True)])
def test_what_is_older_goes_and_what_is_later_stays(lab: Lab, history: bool) -> None:
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))

    users.copy(clear(5), put(2, 6, name="Benno"))
    before = users.current("id", "name")
    users.apply(put(3, 7, name="Cid"))

    assert before == [(2, "Benno")]
    assert users.current("id", "name") == [(2, "Benno"), (3, "Cid")]


def test_history_closes_at_the_truncate(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), drop(2, 3))

    users.copy(clear(5))

    # A record that was deleted already is not deleted again.
    expected = [
        (1, "Ann", "D", 5.0, None),
        (1, "Ann", "I", 1.0, 5.0),
        (2, "Ben", "D", 3.0, None),
        (2, "Ben", "I", 2.0, 3.0),
    ]
    assert users.history("id", "name") == expected


def test_a_record_that_comes_back_keeps_what_the_truncate_left(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.copy(clear(5))

    # The second event is older than the truncate, so that this batch has to look at it again.
    users.copy(put(1, 7, name="Anna"), put(3, 3, name="Cid"))

    assert [line for line in users.history("id", "name") if line[0] == 1] == [
        (1, "Ann", "D", 5.0, 7.0),
        (1, "Ann", "I", 1.0, 5.0),
        (1, "Anna", "I", 7.0, None),
    ]


@pytest.mark.parametrize("history", [slow(False), True])
def test_a_late_truncate_does_the_same_retroactively(lab: Lab, history: bool) -> None:
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), put(2, 9, name="Benno"))

    users.copy(clear(5))

    assert users.current("id", "name") == [(2, "Benno")]
    if history:
        assert [row for row in users.history("id", "name") if row[0] == 2] == [
            (2, "Ben", "D", 5.0, 9.0),
            (2, "Ben", "I", 2.0, 5.0),
            (2, "Benno", "I", 9.0, None),
        ]


@pytest.mark.parametrize("history", [False, slow(True)])
def test_an_event_that_comes_late_for_a_truncate_is_deleted_by_it(lab: Lab, history: bool) -> None:
    users = lab.feed(history=history)
    users.apply(clear(5), put(1, 6, name="Ann"))

    users.copy(put(2, 3, name="late"), put(3, 8, name="Cid"))
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(1, "Ann"), (3, "Cid")]


def test_a_truncate_before_everything_changes_nothing(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 10, name="Ann"))

    users.apply(clear(5))

    assert users.history("id", "name") == [(1, "Ann", "I", 10.0, None)]


def test_an_empty_table_can_be_truncated(lab: Lab) -> None:
    users = lab.feed()

    users.copy(clear(5))
    users.apply(put(1, 3, name="late"), put(2, 7, name="Ben"))

    assert users.current("id", "name") == [(2, "Ben")]


@pytest.mark.parametrize("order", ["truncate first", slow("truncate last")])
def test_an_event_at_the_very_sequence_of_the_truncate_stays(lab: Lab, order: str) -> None:
    """Only records whose last sequence is lower are deleted."""
    users = lab.feed()
    records = [clear(5), put(1, 5, name="Ann")]
    for record in records if order == "truncate first" else reversed(records):
        users.apply(record)

    assert users.current("id", "name") == [(1, "Ann")]


def test_the_same_truncate_again_changes_nothing(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), clear(5), put(1, 7, name="Anna"))
    before = users.history("id", "name")

    users.apply(clear(5))

    assert users.history("id", "name") == before
    assert len(users.table().state.apply.truncates) == 1


def test_pending_changes_are_applied_with_the_truncate(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))

    users.copy(clear(5))

    assert users.changes("id") == users.current("id") == []
    assert users.totals() == {"in": 2, "out": 2, "filtered": 0, "quarantined": 0}


def test_a_column_may_have_the_name_of_any_word_of_the_fold(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, copy="a", part="b", seq_="c"))

    users.copy(clear(5), put(1, 7, copy="d", part="e", seq_="f"))

    assert users.current("id", "copy", "part", "seq_") == [(1, "d", "e", "f")]
