"""Hard and soft deletes, and the tombstones that keep late events from bringing records back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.lab.chosen import slow
from tests.lab.lab import Lab, drop, put


@pytest.mark.parametrize("history", [False, slow(True)])
def test_a_late_update_does_not_bring_a_deleted_record_back(lab: Lab, history: bool) -> None:
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.apply(drop(1, 5))

    users.copy(put(1, 3, name="late"))
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(2, "Ben")]


def test_a_late_delete_shortens_the_version_that_it_meets(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(1, 9, name="Anna"))

    users.copy(drop(1, 5))
    before = users.history("name")
    users.apply()

    expected = [("Ann", "D", 5.0, 9.0), ("Ann", "I", 1.0, 5.0), ("Anna", "I", 9.0, None)]
    assert before == users.history("name") == expected


def test_a_delete_of_a_record_that_nobody_knows_is_remembered(lab: Lab) -> None:
    users = lab.feed(history=False)
    users.apply(drop(1, 5), put(2, 1, name="Ben"))

    users.apply(put(1, 3, name="late"))

    assert users.current("id") == [(2,)]
    assert users.table().state.apply.totals["delete_of_missing"] == 1


def test_a_delete_beats_an_upsert_of_equal_sequence(lab: Lab) -> None:
    users = lab.feed()

    users.copy(drop(1, 5), put(1, 5, name="Ann"))
    before = users.current("id")
    users.apply()

    assert before == users.current("id") == []


def test_soft_deleted_records_stay_and_say_so(lab: Lab) -> None:
    users = lab.feed(delete_mode="soft", history=False)
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))

    users.copy(drop(1, 5))
    before = users.current("id", "name", "hdr__deleted")
    users.apply()
    after = users.current("id", "name", "hdr__deleted")

    assert before == after == [(1, "Ann", True), (2, "Ben", False)]
    assert users.stored("current", "id", "hdr__operation") == [(1, "D"), (2, "I")]


def test_a_soft_deleted_record_comes_back_with_a_later_insert(lab: Lab) -> None:
    users = lab.feed(delete_mode="soft")
    users.apply(put(1, 1, name="Ann"), drop(1, 5))

    users.apply(put(1, 9, name="Anna"))

    assert users.current("id", "name", "hdr__deleted") == [(1, "Anna", False)]
    operations = [(name, operation) for name, operation, *_ in users.history("name")]
    assert operations == [("Ann", "D"), ("Ann", "I"), ("Anna", "I")]


def test_tombstones_older_than_their_retention_go_and_leave_a_horizon(lab: Lab) -> None:
    users = lab.feed(history=False, tombstone_retention="10d")
    users.apply(put(1, 1, name="Ann"), drop(1, 50), put(2, 2, name="Ben"))
    assert users.stored("prior", "id") == [(1,)]

    lab.clock.advance(timedelta(days=11))
    users.apply(put(2, 60, name="Benno"), drop(3, 70))

    # The tombstone of today stays.
    assert users.stored("prior", "id") == [(3,)]

    users.apply(put(1, 40, name="late"), put(1, 55, name="again"), put(3, 69, name="late"))

    assert users.current("id", "name") == [(1, "again"), (2, "Benno")]
    assert [rule for *_, rule in users.rejected()] == ["older_than_horizon"]


def test_young_tombstones_stay_for_their_whole_retention(lab: Lab) -> None:
    users = lab.feed(history=False, tombstone_retention="10d")
    users.apply(put(1, 1, name="Ann"), drop(1, 50))

    lab.clock.advance(timedelta(days=9))
    users.apply(put(2, 60, name="Ben"))
    users.apply(put(1, 40, name="late"))

    assert users.current("id") == [(2,)]
    assert users.rejected() == []


def test_with_history_there_is_no_horizon(lab: Lab) -> None:
    users = lab.feed(tombstone_retention="10d")
    users.apply(put(1, 1, name="Ann"), drop(1, 50))

    lab.clock.advance(timedelta(days=400))
    users.apply(put(2, 60, name="Ben"))
    users.apply(put(1, 40, name="late"))

    assert users.current("id") == [(2,)]
    assert [row[:2] for row in users.history("name") if row[0] == "late"] == [
        ("late", "D"),
        ("late", "U"),
    ]
