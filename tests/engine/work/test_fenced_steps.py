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
from typing import Any

import pytest

from polynya.engine.runner import run_once, units
from polynya.engine.verbs.reload import reload
from polynya.engine.work.context import EngineContext
from polynya.engine.work.policy import ApplyMode
from polynya.engine.work.truce import Truce
from polynya.formats.loads import LoadLimits
from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import Committed, Step
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.maintenance.base import Limits
from polynya.lake.maintenance.retention.expire import expire_rows
from polynya.lake.maintenance.rewrite import delete_files
from polynya.lake.maintenance.rewrite.data_files import RULE, rewrite_data_files
from polynya.lake.maintenance.rewrite.delete_files import rewrite_position_delete_files
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.reload import DELETING
from polynya.model.errors import ConflictError, FencedError, PolynyaError
from tests.lab.chosen import slow
from tests.lab.lab import STARTED, Feed, Lab, Row, put
from tests.lab.owned import owned, step

BY_TASKS = LoadLimits(least_bytes=1, split_bytes=100)
#: So often a commit and a takeover race.
RACES = 10


@dataclass
class Node:
    """One that was granted the work on a feed."""

    users: Feed
    name: str
    epoch: int
    truce: Truce = field(default_factory=Truce)

    def run(self, apply: ApplyMode) -> None:
        """Take the steps of a run."""
        context = self._context(apply, **self.users.applier)
        for failure in run_once(context, units(context, [self.users.task])).failures.values():
            raise failure

    def reload(self) -> None:
        """Reload, as `polynya reload` does."""
        context = self._context()
        assert reload(context, self.users.task, self.users.dataset, mode=DELETING) is not None

    def owned(self) -> DatasetTable:
        """The table, taken over."""
        spark = self.users.lab.spark
        table = DatasetTable.existing(spark, self.users.dataset, self.name, granted=self.epoch)
        table.take_over()
        return table

    def _context(self, apply: ApplyMode = "never", **parts: Any) -> EngineContext:
        return self.users.lab.context(
            apply, owner=self.name, epoch=self.epoch, truce=self.truce, **parts
        )


@dataclass(frozen=True)
class Kind:
    """A kind of step: what it needs, how a node takes it, its last commit, and what it leaves."""

    prepare: Callable[[Lab], Feed]
    work: Callable[[Node], Any]
    step: str
    left: list[Row]


def landed(lab: Lab) -> Feed:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.land(put(2, 2, name="Ben"), put(3, 3, name="Cid"))
    return users


def pending(lab: Lab) -> Feed:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(1, 2, name="Anna"), put(2, 3, name="Ben"))
    return users


def exported(lab: Lab) -> Feed:
    users = lab.feed(initial_load="load/*.json", apply_as_truncates=None)
    users.applier = {"loads": BY_TASKS}
    for key in (1, 2):
        users.land({"id": key, "name": f"user {key}"}, file=f"load/{key}.json")
    return users


def exported_again(lab: Lab) -> Feed:
    users = lab.feed(initial_load="load/*.json")
    users.land({"id": 1, "name": "Ann"}, {"id": 2, "name": "Ben"}, file="load/1.json")
    users.apply()
    users.land({"id": 1, "name": "Anna"}, {"id": 3, "name": "Cid"}, file="load/1.json")
    return users


def in_many_files(lab: Lab) -> Feed:
    users = lab.feed(history=False, maintenance={"enabled": False})
    for key in (1, 2, 3):
        users.apply(put(key, key, name=f"n{key}"))
    return users


def with_deletes(lab: Lab) -> Feed:
    users = lab.feed(history=False, maintenance={"enabled": False})
    users.apply(*(put(key, 1, name="first") for key in (1, 2, 3)))
    table = owned(users)
    for key in (1, 2):
        step(users, table, put(key, 2, name="second"))
    return users


def aged(lab: Lab) -> Feed:
    retention = {"column": "day", "keep": "90d"}
    users = lab.feed(history=False, retention=retention, columns={"day": "date"})
    users.apply(put(1, 1, day="2026-01-10"), put(2, 2, day="2026-05-10"))
    return users


def in_partition(name: str, *keys: int) -> list[Row]:
    return [(name, key) for key in keys]


KINDS = {
    "copy": Kind(
        landed,
        lambda node: node.run("never"),
        "copy",
        [*in_partition("changes", 2, 3), *in_partition("current", 1)],
    ),
    "apply": Kind(
        pending,
        lambda node: node.run("always"),
        "apply",
        [*in_partition("current", 1, 2), *in_partition("prior", 1)],
    ),
    "first load": Kind(
        exported, lambda node: node.run("never"), "copy", in_partition("current", 1, 2)
    ),
    "reload": Kind(
        exported_again,
        Node.reload,
        "apply",
        # Of the record that left there is its version and its delete.
        [*in_partition("current", 1, 3), *in_partition("prior", 1, 2, 2)],
    ),
    "rewrite": Kind(
        in_many_files,
        lambda node: rewrite_data_files(node.owned(), Limits(STARTED), RULE.thorough()),
        "rewrite-data-files",
        in_partition("current", 1, 2, 3),
    ),
    "delete files": Kind(
        with_deletes,
        lambda node: rewrite_position_delete_files(
            node.owned(), Limits(STARTED), delete_files.RULE.thorough()
        ),
        "rewrite-position-delete-files",
        in_partition("current", 1, 2, 3),
    ),
    "expiry of rows": Kind(
        aged,
        lambda node: expire_rows(node.owned(), Limits(STARTED)),
        "expire_rows",
        in_partition("current", 2),
    ),
}


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


def rows(users: Feed) -> list[Row]:
    """Partition and key of every row that is stored."""
    return users.lab.rows(
        f"SELECT hdr__partition, id FROM {users.relation} WHERE hdr__partition <> 'asset_state'"
    )


@pytest.fixture
def staged(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Stage]:
    def staged(name: str) -> Stage:
        kind = KINDS[name]
        users = kind.prepare(lab)
        spark, target = lab.spark, users.dataset
        epoch = DatasetTable.open(spark, target, "a test").state.epoch
        stage = Stage(Node(users, "node-1", epoch + 1), Node(users, "node-2", epoch + 2), kind)
        real = commit.commit_row_delta

        def late(table: IcebergTable, step: Step) -> Committed:
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
    "name", ["copy", slow("apply"), slow("rewrite"), slow("first load"), slow("reload")]
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

    def at_once(table: IcebergTable, step: Step) -> Committed:
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
