"""What a table counts of its events, and which schema changes it remembers, over kills."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import SuspendedError
from tests.lab.lab import Feed, Lab, clear, drop, put

COUNTED = ("inserts", "updates", "deletes", "truncates")


def counts(users: Feed) -> tuple[int, ...]:
    totals = users.table().state.apply.totals
    return tuple(totals.get(name, 0) for name in COUNTED)


def remembered(users: Feed) -> list[tuple[str, str, bool]]:
    changes = users.table().state.copy.shape_changes
    return [(change.change, change.policy, change.accepted) for change in changes]


@pytest.mark.parametrize("history", [True, False])
def test_events_are_counted_by_what_they_did_once_each(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, history: bool
) -> None:
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"), put(1, 2, name="Anna"))
    first = counts(users)
    users.land(drop(2, 3), drop(9, 3), put(3, 3, name="Cid"))

    commit = DatasetTable.commit

    def killed(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(DatasetTable, "commit", commit)
        raise KeyboardInterrupt

    users.run("never")
    monkeypatch.setattr(DatasetTable, "commit", killed)
    with pytest.raises(KeyboardInterrupt):
        users.run("always")
    users.apply()
    second = counts(users)
    # A repeated delivery, a late event, a truncate.
    users.apply(put(3, 3, name="Cid"), put(1, 0, name="A"), clear(9))

    assert first == (2, 1, 0, 0)
    assert second == (3, 1, 2, 0)
    assert counts(users) == (4, 1, 2, 1)


def test_rows_that_go_straight_to_current_are_counted_as_inserts(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json")
    users.land({"id": 1, "name": "Ann"}, {"id": 2, "name": "Ben"}, file="load/1.json")
    users.apply()

    books = users.table().state.copy.books
    assert (books.inserted, books.inserted_since) == (2, None)


def test_schema_changes_are_remembered_with_the_policy_that_decided(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed(schema_evolution={"add_column": "propagate"})
    users.apply(put(1, 1, name="Ann"))
    users.land(put(2, 2, name="Ben", city="Oslo"))
    copied = DatasetTable.commit

    def killed(table: DatasetTable, **how: Any) -> Any:
        if how.get("summary", {}).get("polynya.step") == "copy":
            monkeypatch.setattr(DatasetTable, "commit", copied)
            raise KeyboardInterrupt
        return copied(table, **how)

    monkeypatch.setattr(DatasetTable, "commit", killed)
    with pytest.raises(KeyboardInterrupt):
        users.run()
    users.apply()
    added = remembered(users)
    users.configure(schema_evolution={"add_column": "suspend"})
    users.land(put(3, 3, name="Cid", town="Rome"))
    with pytest.raises(SuspendedError):
        users.run()

    assert added == [("add_column", "propagate", False)]
    assert remembered(users) == [*added, ("add_column", "suspend", False)]
