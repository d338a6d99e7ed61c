"""The first full load goes straight to Current; what happens while it runs is applied after it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from polynya.lake.read.verify import verify
from tests.lab.lab import STARTED, Feed, Lab, drop, put


def row(key: int, name: str) -> dict[str, Any]:
    """A record as a full load exports it: without an operation or a sequence."""
    return {"id": key, "name": name}


def test_loaded_rows_are_current_at_once_and_carry_the_start_of_the_load(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json")
    users.land(row(1, "Ann"), row(2, "Ben"), file="load/1.json")

    users.run("never")

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert users.changes("id") == []
    headers = ("hdr__operation", "hdr__from_timestamp", "hdr__inserted_timestamp")
    assert users.stored("current", *headers) == [("L", STARTED, STARTED)] * 2


def test_a_load_in_several_files_and_batches_is_one_load(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", task={"batch": {"max_rows": 2}})
    users.land(row(1, "Ann"), row(2, "Ben"), row(3, "Cid"), file="load/1.json")
    users.land(row(4, "Dot"), file="load/2.json")

    users.run("never")

    assert users.current("id") == [(1,), (2,), (3,), (4,)]
    assert set(users.stored("current", "hdr__from_timestamp")) == {(STARTED,)}


def test_of_what_was_loaded_twice_the_later_state_is_current_and_an_equal_one_is_none(
    lab: Lab,
) -> None:
    users = lab.feed(initial_load="load/*.json")
    states = put(8, 5, name="new"), put(8, 2, name="old")
    users.land(row(1, "Ann"), row(1, "Ann"), row(2, "Ben"), *states, file="load/1.json")
    users.run("never")
    users.land(row(2, "Ben"), row(3, "Cid"), file="load/2.json")

    users.run("never")
    before = users.current("id", "name")
    users.apply()

    assert before == [(1, "Ann"), (2, "Ben"), (3, "Cid"), (8, "new")]
    assert users.current("id", "name") == before
    versions = users.history("id", "name")
    assert [row[:3] for row in versions if row[0] == 8] == [(8, "new", "U"), (8, "old", "L")]
    assert len(versions) == 3 + 2


def test_changes_that_landed_with_the_load_come_after_it(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json")
    users.land(row(1, "Ann"), row(2, "Ben"), file="load/1.json")
    users.land(put(1, 10, name="Anna"), drop(2, 11), put(3, 12, name="Cid"))

    users.run("never")
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    assert {row[:3] for row in users.history("id", "name")} == {
        (1, "Ann", "L"),
        (1, "Anna", "U"),
        (2, "Ben", "L"),
        (2, "Ben", "D"),
        (3, "Cid", "I"),
    }


def test_a_load_that_lands_after_changes_were_applied_still_comes_before_them(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", history=False)
    users.apply(put(1, 10, name="Anna"), drop(2, 11))
    users.land(row(1, "Ann"), row(2, "Ben"), row(3, "Cid"), file="load/1.json")

    users.run("never")
    before = users.current("id", "name")
    users.apply()

    assert before == users.current("id", "name") == [(1, "Anna"), (3, "Cid")]


def test_a_bad_loaded_row_is_in_quarantine_and_the_others_are_current(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json")
    users.land(row(1, "Ann"), b"{broken", {"name": "no key"}, file="load/1.json")

    users.run("never")

    assert users.current("id") == [(1,)]
    assert [rule for _, _, rule in users.rejected()] == ["bad_json", "null_key"]
    assert users.totals() == {"in": 3, "out": 1, "filtered": 0, "quarantined": 2}


def load_again(lab: Lab, users: Feed, *records: dict[str, Any], file: str) -> None:
    lab.clock.advance(timedelta(seconds=60))
    users.land(*records, file=f"load/{file}.json")
    users.run("never")


@pytest.mark.parametrize("applied", ["never", pytest.param("between", marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", [("a", "b"), pytest.param(("b", "a"), marks=pytest.mark.slow)])
def test_what_a_later_batch_of_the_load_replaces_is_found_in_history(
    lab: Lab, names: tuple[str, str], applied: str
) -> None:
    first, second = names
    users = lab.feed(initial_load="load/*.json", changes_retention="keep")
    load_again(lab, users, row(1, first), row(2, "same"), file="1")
    if applied == "between":
        users.apply(put(9, 9, name="Zoe"))

    load_again(lab, users, row(1, second), row(2, "same"), row(3, "new"), file="2")
    seen = users.current("id", "name")
    load_again(lab, users, row(1, first), {**row(2, "same"), "tags": None}, file="3")
    users.apply(put(1, 10, name="Anna"))

    assert seen[:3] == [(1, second), (2, "same"), (3, "new")]
    assert users.current("id", "name")[:3] == [(1, "Anna"), (2, "same"), (3, "new")]
    versions = [name for key, name, *_ in users.history("id", "name") if key < 9]
    assert sorted(versions) == sorted([first, first, second, "Anna", "same", "new"])
    assert verify(users.table()).findings == []


@pytest.mark.slow
def test_a_load_that_is_begun_again_leaves_the_history_of_one(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json")
    rows = [{**row(key, "Ann"), "tags": {"a": [1.5]}, "none": None} for key in (1, 2)]
    load_again(lab, users, *rows, file="1")
    before = users.history("id", "name")
    load_again(lab, users, *rows, file="2")
    users.apply()

    load_again(lab, users, *rows, file="3")
    users.apply()

    assert users.history("id", "name") == before
