"""Mapped columns of a capture: keys under other names, and what an event did not send."""

from __future__ import annotations

import pytest

from tests.lab.events import delete, land, truncate, upsert
from tests.lab.lab import Lab

COLUMNS = [
    {"name": "user_id", "expression": "id"},
    {"name": "label", "expression": "concat(name, '/', city)"},
]


@pytest.mark.slow
def test_what_was_not_sent_keeps_its_value_through_the_mapping(lab: Lab) -> None:
    """Also when the record gets another key, whose name is another one, too."""
    capture = lab.capture(columns=COLUMNS)
    land(
        capture,
        upsert(1, 10, name="Ann", city="Oslo", note="long"),
        upsert(1, 20, unsent=["note"], name="Anna", city="Oslo"),
        upsert(1, 30, unsent=["name"], city="Rome", note="new"),
    )
    capture.run()
    users = capture["users"]
    assert users.current("user_id", "label", "note") == [(1, "Anna/Oslo", "new")]
    land(
        capture,
        delete(1, 40),
        upsert(2, 40, was=1, unsent=["note"], name="Bo", city="Bonn"),
        upsert(3, 50, name="Cid", city="Lima", note="x"),
    )
    capture.run("always")

    assert users.current("user_id", "label", "note") == [
        (2, "Bo/Bonn", "new"),
        (3, "Cid/Lima", "x"),
    ]
    assert sorted(users.columns()) == ["city", "label", "name", "note", "user_id"]
    assert users.history("user_id", "label")[0][:2] == (1, "Ann/Oslo")
    land(capture, truncate(60))
    capture.run("always")
    assert users.current("user_id") == []


@pytest.mark.slow
def test_a_condition_over_what_was_not_sent_is_not_guessed(lab: Lab) -> None:
    capture = lab.capture(columns=COLUMNS, where="note <> 'no'")
    land(
        capture,
        upsert(1, 10, name="Ann", city="Oslo", note="yes"),
        upsert(1, 20, unsent=["note"], name="Anna", city="Oslo"),
        upsert(2, 30, name="Ben", city="Rome", note="no"),
        upsert(3, 40, name="Cid", city="Rome", note="yes"),
        delete(3, 50),
    )
    capture.run("always")

    users = capture["users"]
    assert users.current("user_id", "label") == [(1, "Ann/Oslo")]
    assert [rule for *_, rule in users.rejected()] == ["mapping"]
    assert users.totals() == {"in": 5, "out": 3, "filtered": 1, "quarantined": 1}


@pytest.mark.slow
def test_the_list_may_say_the_key_that_the_source_has(lab: Lab) -> None:
    columns = [{"name": "user_id", "expression": "id", "key": 1}, *COLUMNS[1:]]
    capture = lab.capture(columns=columns, nested="expand")
    land(capture, upsert(1, 10, name="Ann", city="Oslo"), upsert(2, 10, name="Ben", city="Rome"))
    land(capture, upsert(1, 20, name="Anna", city="Oslo"), delete(2, 30))
    capture.run("always")
    assert capture["users"].current("user_id", "label") == [(1, "Anna/Oslo")]
