"""Every kind of step by a node whose work was given to another one meanwhile: refused, whole.

The old node stands still just before the commit of its step. The new one is granted the next epoch
and does the same work. Then the old one goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError, FencedError, PolynyaError
from tests.engine.steps import KINDS, Kind, Node, rows
from tests.lab.chosen import slow
from tests.lab.lab import STARTED, Lab, Row, put

#: So often a commit and a takeover race.
RACES = 10


@dataclass
class Stage:
    """Two nodes, the newer of which does its work while the older one stands still."""

    old: Node
    new: Node
    kind: Kind
    #: What there was when the new node was done.
    rows: list[Row] = field(default_factory=list)
    snapshot: int | None = None
    steps: list[str] = field(default_factory=list)

    def meanwhile(self) -> None:
        self.kind.work(self.new)
        self.rows, self.snapshot = rows(self.old.users), self.old.users.table().state.snapshot


@pytest.fixture
def staged(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Stage]:
    def staged(name: str) -> Stage:
        kind = KINDS[name]
        users = kind.prepare(lab)
        spark, target = lab.spark, users.dataset
        epoch = DatasetTable.open(spark, target, "a test").state.epoch
        stage = Stage(Node(users, "node-1", epoch + 1), Node(users, "node-2", epoch + 2), kind)
        real = commit.commit_row_delta

        def late(table: IcebergTable, step: CommitStep) -> Committed:
            stage.steps.append(step.summary["polynya.step"])
            if stage.snapshot is None and stage.steps[-1] == kind.step:
                monkeypatch.setattr(dataset, "commit_row_delta", real)
                stage.meanwhile()
            return real(table, step)

        monkeypatch.setattr(dataset, "commit_row_delta", late)
        return stage

    return staged


@pytest.mark.parametrize(
    "name",
    [
        "copy",
        slow("apply"),
        slow("copy and apply"),
        slow("first load"),
        slow("reload"),
        slow("rewrite"),
        slow("delete files"),
        slow("expiry of rows"),
    ],
)
def test_a_step_of_a_node_that_no_longer_has_the_work_writes_nothing(
    staged: Callable[[str], Stage], name: str
) -> None:
    stage = staged(name)
    old, new = stage.old, stage.new

    with pytest.raises(FencedError) as refused:
        stage.kind.work(old)

    assert stage.steps[0] == "takeover"
    assert (refused.value.code, refused.value.epoch) == ("POLYNYA-LAKE-002", new.epoch)
    # It starts again with the grant that it had.
    with pytest.raises(FencedError) as refused:
        stage.kind.work(old)
    assert (refused.value.code, refused.value.epoch) == ("POLYNYA-LAKE-060", new.epoch)
    assert rows(old.users) == stage.rows == stage.kind.left
    state = old.users.table().state
    assert (state.snapshot, state.epoch) == (stage.snapshot, new.epoch)
    assert state.ownership.owner == "node-2"
    # It has the work after all, and does not wait until the other one has been silent.
    old.epoch = new.epoch + 1
    stage.kind.work(old)
    assert rows(old.users) == stage.kind.left


@pytest.mark.parametrize(
    "name",
    [
        "copy",
        slow("apply"),
        slow("copy and apply"),
        slow("rewrite"),
        slow("first load"),
        slow("reload"),
    ],
)
def test_without_the_fence_its_rows_would_be_there_twice(
    staged: Callable[[str], Stage], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The planted fault of the test above."""
    stage = staged(name)
    monkeypatch.setattr(commit, "_validate", lambda *_: None)

    with suppress(PolynyaError):
        stage.kind.work(stage.old)

    assert stage.rows == stage.kind.left
    assert len(rows(stage.old.users)) > len(stage.rows)


@pytest.mark.slow
def test_of_a_commit_and_a_takeover_at_the_same_moment_one_is_made(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever the catalog takes first: the other one finds the state file gone."""
    users = lab.feed()
    users.copy(put(0, 1, name="first"))
    real, together = commit.commit_row_delta, threading.Barrier(2)
    made: set[int] = set()

    def at_once(table: IcebergTable, step: CommitStep) -> Committed:
        together.wait(60)
        return real(table, step)

    for number in range(1, RACES + 1):
        epoch = users.table().state.epoch + 1
        old, new = Node(users, "node-1", epoch).owned(), users.table("node-2")
        new.granted = epoch + 1
        batch = users.batch(put(number, number), file=f"{number}.json")
        monkeypatch.setattr(dataset, "commit_row_delta", at_once)
        with ThreadPoolExecutor(2) as pool:
            copying = pool.submit(copy_batch, old, batch, FastApplier(), now=STARTED)
            taking = pool.submit(new.take_over)
            copied, taken = copying.exception(), taking.exception()
        monkeypatch.setattr(dataset, "commit_row_delta", real)
        assert sorted([copied is None, taken is None]) == [False, True]
        assert isinstance(copied or taken, ConflictError)
        made |= {number} if copied is None else set()

    assert {key for (key,) in users.changes("id")} == {0, *made}
    assert len(rows(users)) == 1 + len(made)
