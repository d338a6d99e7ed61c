"""A change of key is delete(old) + insert(new); what was not sent again follows the record."""

from __future__ import annotations

import pytest

from tests.lab.events import delete, land, upsert
from tests.lab.lab import Lab


def test_values_follow_through_a_chain_in_one_batch(lab: Lab) -> None:
    capture = lab.capture()
    land(
        capture,
        upsert(1, 10, name="Ann", note="long"),
        delete(1, 20),
        upsert(2, 20, was=1, unsent=["note"], name="Anna"),
        delete(2, 30),
        upsert(3, 30, was=2, unsent=["note"], name="Annie"),
    )

    capture.run()

    users = capture["users"]
    assert users.current("id", "name", "note") == [(3, "Annie", "long")]
    assert users.history("id", "note") == [
        (1, "long", "D", 20.0, None),
        (1, "long", "I", 10.0, 20.0),
        (2, "long", "D", 30.0, None),
        (2, "long", "I", 20.0, 30.0),
        (3, "long", "I", 30.0, None),
    ]


@pytest.mark.slow
def test_values_follow_a_record_that_changes_its_key_very_often_in_one_batch(lab: Lab) -> None:
    capture = lab.capture()
    moves = [
        event
        for n in range(20)
        for event in (
            delete(1 + n % 3, 20 + n),
            upsert(1 + (n + 1) % 3, 20 + n, was=1 + n % 3, unsent=["note"], name=f"name {n}"),
        )
    ]
    land(capture, upsert(1, 10, name="Ann", note="long"), *moves)

    capture.run()

    assert capture["users"].current("id", "name", "note") == [(3, "name 19", "long")]


@pytest.mark.slow
def test_values_follow_a_record_that_was_applied_before(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, name="Ann", note="long"))
    capture.run("always")

    land(capture, delete(1, 20), upsert(2, 20, was=1, unsent=["note"], name="Anna"))
    capture.run()

    assert capture["users"].current("id", "name", "note") == [(2, "Anna", "long")]


@pytest.mark.slow
def test_a_late_value_of_the_old_key_reaches_the_new_one(lab: Lab) -> None:
    capture = lab.capture()
    land(
        capture,
        upsert(1, 10, name="Ann", note="first"),
        delete(1, 20),
        upsert(2, 20, was=1, unsent=["note"], name="Anna"),
    )
    capture.run("always")

    land(capture, upsert(1, 15, name="Ann", note="late"))
    capture.run()

    users = capture["users"]
    assert users.current("id", "note") == [(2, "late")]
    assert [row[:2] for row in users.history("id", "note") if row[0] == 2] == [(2, "late")]


@pytest.mark.slow
@pytest.mark.parametrize("history", [False, True])
def test_the_record_arrives_before_its_old_key_is_known(lab: Lab, history: bool) -> None:
    capture = lab.capture(history=history)
    land(capture, upsert(2, 20, was=1, unsent=["note"], name="Anna"))
    capture.run("always")
    assert capture["users"].current("id", "note") == [(2, None)]

    land(capture, delete(1, 20), upsert(1, 10, name="Ann", note="long"))
    capture.run()

    assert capture["users"].current("id", "note") == [(2, "long")]
