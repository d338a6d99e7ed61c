"""A few events are applied by the commit that copies them, where they would be applied at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from polynya.engine.policy import with_spread_age
from polynya.lake.apply.fast import FastApplier
from polynya.lake.apply.removal import Rewriting
from polynya.lake.iceberg.reading import TableFile, stored_file
from polynya.lake.read.changed_keys import changed_keys
from polynya.lake.read.verify import verify
from polynya.model.headers import Partition
from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.store.data_files import DataFiles
from tests.lab.lab import Feed, Lab, drop, put


def steps(users: Feed) -> list[str]:
    """Each commit of the table that is not a takeover, oldest first."""
    snapshots = users.table().table.metadata()["snapshots"]
    said = [snapshot["summary"]["polynya.step"] for snapshot in snapshots]
    return [step for step in said if step not in {"takeover", "schema"}]


@pytest.mark.parametrize("history", [True, False])
def test_one_commit_copies_and_applies_a_small_batch(lab: Lab, *, history: bool) -> None:
    users = lab.feed(history=history)
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"))
    users.apply(put(1, 2, name="Anna"), drop(2, 2), put(3, 2, name="Cid", born=1990))

    assert steps(users) == ["copy+apply", "copy+apply"]
    assert users.current("id", "name", "born") == [(1, "Anna", None), (3, "Cid", 1990)]
    if history:
        versions = [line[:3] for line in users.history("id", "name")]
        assert versions == [
            (1, "Ann", "I"), (1, "Anna", "U"), (2, "Ben", "D"), (2, "Ben", "I"), (3, "Cid", "I"),
        ]  # fmt: skip
    assert users.stored("changes", "id") == []
    assert users.totals() == {"in": 5, "out": 5, "filtered": 0, "quarantined": 0}
    assert verify(users.table()).findings == []
    told = [type(event) for event in lab.events if isinstance(event, BatchCopied | DatasetApplied)]
    assert told == [BatchCopied, DatasetApplied] * 2


def test_rows_are_counted_as_if_they_had_been_copied_first(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(2, 2, name="Ben"))
    users.apply(put(3, 3, name="Cid"))

    books, applied = users.table().state.copy.books, users.table().state.apply
    assert (books.inserted, books.inserted_since) == (0, None)
    assert (books.to_changes, applied.from_changes) == (1, 1)
    assert (applied.totals["inserts"], applied.counted_since) == (3, None)


def test_what_is_pending_is_applied_by_the_same_commit(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"))
    users.copy(put(1, 2, name="Anna"), put(3, 2, name="Cid"))
    users.apply(put(1, 3, name="Annie"))

    assert steps(users)[1:] == ["copy", "copy+apply"]
    assert users.current("id", "name") == [(1, "Annie"), (2, "Ben"), (3, "Cid")]
    assert [line[:2] for line in users.history("id", "name")][:3] == [
        (1, "Ann"), (1, "Anna"), (1, "Annie"),
    ]  # fmt: skip
    assert users.stored("changes", "id") == []
    assert verify(users.table()).findings == []


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([put(1, 2, name="late")], "it takes a query"),
        ([put(2, 6, name="Ben"), {"op": "U", "seq": 7}], "a record goes to quarantine"),
    ],
    ids=["a late event", "a bad record"],
)
def test_other_batches_are_copied_first(lab: Lab, records: list[Any], why: str) -> None:
    users = lab.feed()
    users.apply(put(1, 5, name="Ann"))
    users.apply(*records)

    assert steps(users)[1:] == ["copy", "apply"], why
    assert verify(users.table()).findings == []


def test_a_batch_of_too_many_rows_is_copied_first(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.engine.policy._FEW_ROWS", 2)
    users = lab.feed(history=False)
    users.apply(put(1, 1, name="x"), put(2, 1, name="x"))
    users.apply(*(put(key, 2, name="y") for key in (1, 2, 3)))

    assert steps(users) == ["copy+apply", "copy", "apply"]
    assert users.current("id", "name") == [(1, "y"), (2, "y"), (3, "y")]


def test_only_the_last_of_several_batches_is_applied_with_its_copy(lab: Lab) -> None:
    users = lab.feed(task={"batch": {"max_rows": 2}})
    users.apply(*(put(key, key, name="x") for key in range(1, 6)))

    assert steps(users) == ["copy", "copy", "copy+apply"]
    assert len(users.current("id")) == 5
    assert verify(users.table()).findings == []


def test_the_policy_decides_with_the_batch_in_mind(lab: Lab) -> None:
    users = lab.feed(task={"apply": {"max_pending_files": 2}})
    for sequence in (1, 2, 3):
        users.land(put(sequence, sequence, name="x"))
        users.run("policy")

    assert steps(users) == ["copy", "copy+apply", "copy"]


def test_a_copy_takes_the_apply_along_before_the_whole_age(lab: Lab) -> None:
    users = lab.feed()
    early = with_spread_age(users.task.apply, f"{lab.schema}.users").max_pending_age
    second = timedelta(seconds=1)
    for sequence, passed in enumerate((timedelta(), early - second, second), 1):
        lab.clock.advance(passed)
        users.land(put(sequence, sequence, name="x"))
        users.run("policy")

    assert early < users.task.apply.max_pending_age
    assert steps(users) == ["copy", "copy", "copy+apply"]


@pytest.mark.parametrize("history", [True, False])
def test_the_keys_that_one_commit_changes_are_in_the_rows_that_it_writes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, history: bool
) -> None:
    """The rows that it takes out may be in all data files of the table: none of these is read."""
    users = lab.feed(history=history)
    users.apply(*(put(key, 1, name="x") for key in range(20)))
    users.copy(put(0, 2, name="pending"))
    table = users.table()
    before = table.state.snapshot
    parts = (Partition.CHANGES, Partition.CURRENT)
    old = {file.path for part in parts for file in table.table.files(part, before)}
    users.apply(put(1, 3, name="y"), drop(2, 3), put(9, 3, name="new"), put(1, 4, name="z"))
    opened: list[str] = []

    def noted(store: DataFiles, path: str) -> TableFile:
        opened.append(path)
        return stored_file(store, path)

    monkeypatch.setattr("polynya.lake.read.changed_keys.stored_file", noted)
    table = users.table()
    assert before is not None
    assert table.state.snapshot is not None
    keys = changed_keys(table.table, table.shape(), before, table.state.snapshot)

    assert steps(users)[1:] == ["copy", "copy+apply"]
    assert isinstance(keys, pa.Table)
    # The pending event was told by its own commit.
    assert sorted(keys.column("id").to_pylist()) == [0, 1, 2, 9]
    assert opened
    assert old.isdisjoint(opened)


def test_rows_that_are_written_again_do_not_come_with_events(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers of changed keys leave applies out, and so what these write again."""
    monkeypatch.setattr("polynya.lake.apply.fast.FEW_EVENTS", 3)
    users = lab.feed(history=False)
    users.applier = {"applier": FastApplier(rewriting=Rewriting(share=0.2))}
    users.apply(*(put(key, 1, name="x") for key in range(5)))
    users.apply(put(0, 2, name="y"))

    assert steps(users) == ["copy+apply", "copy", "apply"]
    assert users.current("id", "name")[:2] == [(0, "y"), (1, "x")]
    assert verify(users.table()).findings == []
