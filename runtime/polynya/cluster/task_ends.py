"""When tasks that work all the time have ended, for `after` and `overdue` of automations.

A task of a cluster has ended well when all that came up to its last commit was taken in by each of
its units. It has ended with a failure when one of its units begins to fail. It is as fresh as the
oldest change that one of its units has not taken in.

Each node tells how far the units are that it owns, in a file of its own, and the leader finds the
ends in the files of all nodes. An owner that is new begins with what was told of a unit before, and
what an earlier owner says later does not count. So ends outlast nodes and leaders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from polynya.automation.due import TaskEnds
from polynya.automation.state import AutomationStore, NodeProgress, UnitProgress
from polynya.notify.conditions import is_failing, seconds_behind

#: A unit that has worked for so long has looked for what waits for it.
FIRST_LOOK: Final = timedelta(minutes=1)
#: A leader that has just begun lets all units look before a task is overdue.
SETTLED: Final = 3 * FIRST_LOOK
#: What only shows that nothing is wrong is written as often.
STEP: Final = timedelta(seconds=30)
#: A node writes its file again after this time; one that is older than `GONE` is removed.
RENEWED: Final = timedelta(days=1)
GONE: Final = timedelta(days=7)

#: Units by task and name.
_Progress: TypeAlias = dict[str, dict[str, UnitProgress]]


def after_job(
    before: UnitProgress | None, job: Mapping[str, Any], at: datetime, since: datetime | None
) -> UnitProgress:
    """How far a unit is, after a report of the node that owns it. Pure.

    Args:
        before: how far it was.
        job: as the node reports it.
        at: when.
        since: from when on the node works on it; None: it does not.
    """
    known = before or UnitProgress()
    step = job["last_step"]["at"] if job["last_step"] is not None else None
    steps = [one for one in (known.step, step) if one is not None]
    progress: dict[str, Any] = {
        "epoch": max(known.epoch, job["epoch"] or 0),
        "step": max(steps, default=None),
    }
    looked = since is not None and job["rounds"] > 0 and at - since >= FIRST_LOOK
    if is_failing(job):
        progress["failing"] = True
        if not known.failing:
            progress["failed"] = at
    elif looked:
        progress["failing"] = False
        fresh = _reached(job, at, since or at)
        if fresh is not None and (known.fresh is None or fresh > known.fresh):
            progress["fresh"] = fresh
    return known.model_copy(update=progress)


def _reached(job: Mapping[str, Any], at: datetime, since: datetime) -> datetime | None:
    """The moment up to which all was taken in; None: no later one is known.

    How long a file has waited when the unit began here is unknown, so it says nothing.
    """
    behind = seconds_behind(job)
    if not job["backlog"]["files"] and not behind:
        return at
    reached = at - timedelta(seconds=behind)
    return reached if reached - since >= FIRST_LOOK else None


def ends_of(
    units: Sequence[UnitProgress | None], awaited: datetime | None
) -> tuple[TaskEnds, datetime | None]:
    """The ends of a task by its units. Pure.

    Args:
        units: of the task; None for one that nothing is known of.
        awaited: the commit that has to be followed by all units before the task has ended.

    Returns the ends, and the commit that is awaited from then on.
    """
    known = [one for one in units if one is not None]
    step = max((one.step for one in known if one.step is not None), default=None)
    awaited = step if awaited is None else awaited
    failed = max((one.failed for one in known if one.failed is not None), default=None)
    reached = [one.fresh for one in known if one.fresh is not None]
    if not units or len(reached) < len(units):
        return TaskEnds(failure=failed), awaited
    fresh = min(reached)
    if awaited is None or fresh < awaited or any(one.failing for one in known):
        return TaskEnds(failure=failed, fresh=fresh), awaited
    return TaskEnds(awaited, failed, fresh), step if step != awaited else None


class TaskProgress:
    """What one node tells of its units, and what it finds as the leader."""

    def __init__(self, store: AutomationStore) -> None:
        self._store = store
        #: Since when each run of a unit is under way here: by task, name, version and epoch.
        self._since: dict[tuple[str, str, str | None, int | None], datetime] = {}
        self._own: _Progress = {}
        self._written: NodeProgress | None = None
        self._awaited: dict[str, datetime | None] = {}
        self._began: datetime | None = None

    def tell(self, report: Mapping[str, Any], tasks: Collection[str]) -> None:
        """Tell how far the units of this node are, if that changed; only of these tasks."""
        at: datetime = report["at"]
        self._began = self._began or at
        owned = {
            (task, name): job
            for task, one in report["tasks"].items()
            if task in tasks
            for name, job in one["jobs"].items()
            if job["state"] != "elsewhere"
        }
        before = self._own
        if any(name not in before.get(task, {}) for task, name in owned):
            before = newest(self._store.progress().values())
            for task, units in self._own.items():
                before[task] = before.get(task, {}) | units
        since: dict[tuple[str, str, str | None, int | None], datetime] = {}
        own: _Progress = {}
        for (task, name), job in owned.items():
            run = task, name, job["version"], job["epoch"]
            if job["state"] in ("running", "stopping"):
                since[run] = self._since.get(run, at)
            known = before.get(task, {}).get(name)
            own.setdefault(task, {})[name] = after_job(known, job, at, since.get(run))
        self._since, self._own = since, own
        written = self._written
        if own and (written is None or at - written.at > RENEWED or _is_news(written.units, own)):
            self._written = NodeProgress(at=at, units=own)
            self._store.note_progress(f"{report['cluster']}/{report['node']}", self._written)

    def ends(self, report: Mapping[str, Any], tasks: Collection[str]) -> dict[str, TaskEnds]:
        """When these tasks ended, as the leader finds it in what all nodes have told."""
        files = self._store.progress()
        for node, one in files.items():
            if report["at"] - one.at > GONE:
                self._store.forget_node(node)
        told = newest(files.values())
        is_settling = self._began is None or report["at"] - self._began < SETTLED
        found = {}
        for task in sorted(tasks):
            names = report["tasks"].get(task, {"jobs": {}})["jobs"]
            units = [told.get(task, {}).get(name) for name in names]
            ends, self._awaited[task] = ends_of(units, self._awaited.get(task))
            found[task] = replace(self._noted(task, ends), is_settling=is_settling)
        return found

    def _noted(self, task: str, ends: TaskEnds) -> TaskEnds:
        known = self._store.ends(task)
        later = known.with_later(ends)
        same = (later.success, later.failure) == (known.success, known.failure)
        if same and not _advanced(known.fresh, later.fresh):
            return later
        return self._store.note_ends(task, ends)


def newest(nodes: Iterable[NodeProgress]) -> _Progress:
    """How far each unit is, as the owner with the highest epoch told it last."""
    found: dict[tuple[str, str], tuple[tuple[int, datetime], UnitProgress]] = {}
    for node in nodes:
        for task, units in node.units.items():
            for name, one in units.items():
                rank = one.epoch, node.at
                if (task, name) not in found or found[task, name][0] < rank:
                    found[task, name] = rank, one
    progress: _Progress = {}
    for (task, name), (_, one) in found.items():
        progress.setdefault(task, {})[name] = one
    return progress


def _advanced(before: datetime | None, after: datetime | None) -> bool:
    return after is not None and (before is None or after - before >= STEP)


def _is_news(before: _Progress, after: _Progress) -> bool:
    """Whether the units of a node have changed by more than the time that has passed."""
    if {task: units.keys() for task, units in before.items()} != {
        task: units.keys() for task, units in after.items()
    }:
        return True
    return any(
        _advanced(before[task][name].fresh, one.fresh)
        or before[task][name] != one.model_copy(update={"fresh": before[task][name].fresh})
        for task, units in after.items()
        for name, one in units.items()
    )
