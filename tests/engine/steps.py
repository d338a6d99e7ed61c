"""Every kind of step that a node takes with a table, and what each leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polynya.engine.commands.rebuild import recreate
from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.engine.context import EngineContext, ProcessMemory
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once, units
from polynya.formats.loads import LoadLimits
from polynya.lake.maintenance import rewrite_deletes
from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.retention import expire_rows
from polynya.lake.maintenance.rewrite_data_files import RULE, rewrite_data_files
from polynya.lake.maintenance.rewrite_deletes import rewrite_position_delete_files
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import DELETING, ReloadMode
from tests.lab.lab import STARTED, Feed, Lab, Row, put
from tests.lab.owned import owned, step

BY_TASKS = LoadLimits(least_bytes=1, split_bytes=100)


@dataclass
class Node:
    """One that was granted the work on a feed."""

    users: Feed
    name: str
    epoch: int
    memory: ProcessMemory = field(default_factory=ProcessMemory)
    #: Of what was asked of the feed once, that which the cluster knows to be done.
    done: list[str] = field(default_factory=list)

    def run(self, apply: ApplyMode) -> None:
        """Take the steps of a run."""
        context = self._context(apply, **self.users.applier)
        for failure in run_once(context, units(context, [self.users.task])).failures.values():
            raise failure

    def reload(self, mode: ReloadMode = DELETING) -> None:
        """Reload, as `polynya reload` does."""
        context = self._context()
        assert (
            reload(context, ReloadRequest(self.users.task, self.users.dataset, mode=mode))
            is not None
        )

    def recreate(self) -> None:
        """Recreate, as `polynya task recreate` asks once, and read all that has landed."""
        if "recreate" not in self.done:
            recreate(self._context(), self.users.task, [self.users.dataset], whole_task=True)
            self.done.append("recreate")
        self.run("always")

    def owned(self) -> DatasetTable:
        """The table, taken over."""
        spark = self.users.lab.spark
        table = DatasetTable.existing(spark, self.users.dataset, self.name, granted=self.epoch)
        table.take_over()
        return table

    def _context(self, apply: ApplyMode = "never", **parts: Any) -> EngineContext:
        return self.users.lab.context(
            apply, owner=self.name, epoch=self.epoch, memory=self.memory, **parts
        )


@dataclass(frozen=True)
class Kind:
    """A kind of step: what it needs, how a node takes it, a commit of it, and what it leaves.

    `then` is what the node does next, the same by default.
    """

    prepare: Callable[[Lab], Feed]
    work: Callable[[Node], Any]
    step: str
    left: list[Row]
    then: Callable[[Node], Any] | None = None


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


def pending_and_landed(lab: Lab) -> Feed:
    users = pending(lab)
    users.land(put(1, 4, name="Annie"), put(3, 5, name="Cid"))
    return users


def exported(lab: Lab) -> Feed:
    users = lab.feed(initial_load="load/*.json", apply_as_truncates=None)
    users.applier = {"load_limits": BY_TASKS}
    for key in (1, 2):
        users.land({"id": key, "name": f"user {key}"}, file=f"load/{key}.json")
    return users


def exported_again(lab: Lab, *, history: bool = True) -> Feed:
    users = lab.feed(initial_load="load/*.json", history=history)
    users.land({"id": 1, "name": "Ann"}, {"id": 2, "name": "Ben"}, file="load/1.json")
    users.apply()
    users.land({"id": 1, "name": "Anna"}, {"id": 3, "name": "Cid"}, file="load/1.json")
    return users


def landed_anew(lab: Lab) -> Feed:
    users = lab.feed()
    first = users.land(put(1, 1, name="Ann"))
    users.apply()
    (users.folder / first).unlink()
    users.land(put(2, 2, name="Ben"), put(3, 3, name="Cid"))
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
    "copy and apply": Kind(
        pending_and_landed,
        lambda node: node.run("always"),
        "copy+apply",
        [*in_partition("current", 1, 2, 3), *in_partition("prior", 1, 1)],
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
        then=lambda node: node.run("always"),
    ),
    # Without history: each time it is done, all records end and begin.
    "reload of all rows": Kind(
        lambda lab: exported_again(lab, history=False),
        lambda node: node.reload("truncate_and_insert"),
        "apply",
        in_partition("current", 1, 3),
        then=lambda node: node.run("always"),
    ),
    "recreation": Kind(landed_anew, Node.recreate, "recreate", in_partition("current", 2, 3)),
    "rewrite": Kind(
        in_many_files,
        lambda node: rewrite_data_files(node.owned(), ActionLimits(STARTED), RULE.thorough()),
        "rewrite-data-files",
        in_partition("current", 1, 2, 3),
    ),
    "delete files": Kind(
        with_deletes,
        lambda node: rewrite_position_delete_files(
            node.owned(), ActionLimits(STARTED), rewrite_deletes.RULE.thorough()
        ),
        "rewrite-position-delete-files",
        in_partition("current", 1, 2, 3),
    ),
    "expiry of rows": Kind(
        aged,
        lambda node: expire_rows(node.owned(), ActionLimits(STARTED)),
        "expire_rows",
        in_partition("current", 2),
    ),
}


def rows(users: Feed) -> list[Row]:
    """Partition and key of every row that is stored."""
    return users.lab.rows(
        f"SELECT hdr__partition, id FROM {users.relation} WHERE hdr__partition <> 'asset_state'"
    )
