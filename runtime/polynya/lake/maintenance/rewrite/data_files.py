"""`rewrite_data_files` and `rewrite_layout`: the sequence, in pieces that each are committed.

An apply never waits for a rewrite and never fails because of one: files are written without a lock,
and committed between two applies.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Final

import pyarrow as pa

from polynya.lake.fold.shape import Shape
from polynya.lake.maintenance.base import ActionName, Limits, Outcome
from polynya.lake.maintenance.rewrite.by_tasks import stage_by_tasks
from polynya.lake.maintenance.rewrite.facts import Seen, look
from polynya.lake.maintenance.rewrite.job import Job
from polynya.lake.maintenance.rewrite.land import land
from polynya.lake.maintenance.rewrite.plan import FileFacts, Group, Rule, plan, plan_layout
from polynya.lake.maintenance.rewrite.sorting import ordered_by
from polynya.lake.maintenance.rewrite.way import Batch, Engine, batches
from polynya.lake.maintenance.rewrite.write import GaveWayError, StagedGroup, job_of, stage_here
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.session import is_local
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError
from polynya.observe.trace import span

log = logging.getLogger(__name__)

RULE: Final = Rule()
#: How long what was written waits for the end of an apply before it is given up.
PATIENCE_SECONDS: Final = 60.0
_EMPTY: Final = "the table is empty"
_GAVE_WAY: Final = "it gave way"


@dataclass(frozen=True, slots=True)
class _Aim:
    """What files are written again for, and what is said where there are none."""

    action: ActionName
    plan: Callable[[Iterable[FileFacts], Rule], list[Group]]
    nothing: str


_SHAPE: Final = _Aim("rewrite_data_files", plan, "no files are worth writing again")
_LAYOUT: Final = _Aim("rewrite_layout", plan_layout, "all files have the layout of the table")


def rewrite_data_files(target: DatasetTable, limits: Limits, rule: Rule = RULE) -> Outcome:
    """Write files again that are small, or of which much is deleted; the rows stay the same.

    This process has taken the table over. Other steps may be taken meanwhile, by other threads.
    Raises what a commit raises whose outcome is not known, and ConflictError when somebody else
    took the table over.
    """
    return _rewritten(target, limits, rule, _SHAPE)


def rewrite_layout(target: DatasetTable, limits: Limits, rule: Rule = RULE) -> Outcome:
    """Write files again that are parted or sorted otherwise than the table is now.

    For all else see `rewrite_data_files`.
    """
    return _rewritten(target, limits, rule, _LAYOUT)


def _rewritten(target: DatasetTable, limits: Limits, rule: Rule, aim: _Aim) -> Outcome:
    began = time.monotonic()
    sized = rule.sized(target.dataset.layout.file_bytes)
    work = _Work(target, limits, sized, engine_of(target.spark), aim)
    work.all()
    return work.outcome(round(time.monotonic() - began, 3))


def planned(target: DatasetTable, rule: Rule = RULE) -> list[Group] | str:
    """What `rewrite_data_files` would do now, or why nothing can be done. Writes nothing.

    Raises OSError.
    """
    snapshot = target.state.snapshot
    if snapshot is None:
        return _EMPTY
    seen = _look(target, snapshot, target.stored_shape())
    sized = rule.sized(target.dataset.layout.file_bytes)
    return seen if isinstance(seen, str) else plan(seen.files, sized)


def engine_of(spark: SparkSession) -> Engine:
    """What runs the tasks of a session."""
    return Engine(spark.sparkContext.defaultParallelism, on_cluster=not is_local(spark))


def _look(target: DatasetTable, snapshot: int, shape: Shape) -> Seen | str:
    keep = target.dataset.kept.changes_retention
    kept = keep if isinstance(keep, timedelta) else None
    return look(target.table, snapshot, shape, target.dataset.layout, keep=kept)


@dataclass(slots=True)
class _Work:
    """One run of an action, and what it has done so far."""

    target: DatasetTable
    limits: Limits
    rule: Rule
    engine: Engine
    aim: _Aim
    made: list[StagedGroup] = field(default_factory=list)
    commits: int = 0
    dropped_deletes: int = 0
    #: Of the budget.
    used_bytes: int = 0
    #: Why there is more to do.
    left: list[str] = field(default_factory=list)
    #: Why there is nothing to do, or nothing that can be done.
    nothing: list[str] = field(default_factory=list)

    @span("rewrite data files", table=attrgetter("target.table.name"))
    def all(self) -> None:
        """Write and commit, group by group."""
        snapshot = self.target.state.snapshot
        if snapshot is None:
            self.nothing.append(_EMPTY)
            return
        with self.target.table.keeping(snapshot):
            shape = self.target.stored_shape()
            try:
                seen = _look(self.target, snapshot, shape)
            except (OSError, pa.ArrowInvalid) as error:
                self.target.table.forget_deletes()
                self.left.append(f"a file was not read: {error}")
                return
            if isinstance(seen, str):
                self.nothing.append(seen)
                return
            self._groups(seen, shape)

    def _groups(self, seen: Seen, shape: Shape) -> None:
        waiting: list[StagedGroup] = []
        for batch in batches(self.aim.plan(seen.files, self.rule), self.engine):
            log.debug("%s: %s", self.target.table.name, batch.reason)
            if self.limits.give_way():
                self.left.append(_GAVE_WAY)
                break
            staged = self._staged(seen, batch, shape)
            self.used_bytes += sum(one.group.written_bytes for one in staged)
            waiting += staged
            if sum(one.written_bytes for one in waiting) >= self.rule.target_bytes:
                self._land(seen, waiting)
                waiting = []
        self._land(seen, waiting)

    def _staged(self, seen: Seen, batch: Batch, shape: Shape) -> list[StagedGroup]:
        """The groups of a batch, written; why others are not is noted."""
        try:
            jobs = list(self._jobs(seen, batch, shape))
            if batch.by_tasks and jobs:
                return stage_by_tasks(self.target.table, jobs, self.limits.give_way)
            return [stage_here(self.target.table, *one, self.limits.give_way) for one in jobs]
        except GaveWayError:
            self.left.append(_GAVE_WAY)
        except (OSError, pa.ArrowInvalid) as error:
            self.left.append(f"a file was not read or written: {error}")
        return []

    def _jobs(self, seen: Seen, batch: Batch, shape: Shape) -> Iterator[tuple[Group, Job]]:
        """How the groups of a batch are written that the budget is for. Raises OSError."""
        budget, used = self.limits.budget_bytes, self.used_bytes
        for group in batch.groups:
            log.debug("%s in %s: %s", group.kind, self.target.table.name, group.reason)
            if budget is not None and used + group.written_bytes > budget:
                self.left.append("the budget is used up")
                continue
            order = ordered_by(self.target.dataset.layout, shape, group.partition)
            job = job_of(self.target.table, seen, group, order)
            if isinstance(job, str):
                self.nothing.append(job)
                continue
            used += group.written_bytes
            yield group, job

    def _land(self, seen: Seen, groups: Sequence[StagedGroup]) -> None:
        """Commit, or remove what was written."""
        if not groups:
            return
        staged = [path for one in groups for path in one.paths]
        with self.target.between_applies(PATIENCE_SECONDS) as free:
            if not free:
                self.left.append(f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s")
                self.target.table.drop_files(staged)
                return
            try:
                landed = land(self.target, seen, groups)
            except ConflictError as error:
                # Somebody else's commit, or a new owner: then this raises.
                self.target.reload()
                self.left.append(error.message)
                return
            except (OSError, pa.ArrowInvalid) as error:
                self.target.table.drop_files(staged)
                self.left.append(f"a delete file was not read: {error}")
                return
        self.made += landed.made
        self.commits += bool(landed.made)
        self.dropped_deletes += landed.dropped_deletes
        self.left += [why for _, why in landed.dropped]

    def outcome(self, seconds: float) -> Outcome:
        """What was done."""
        groups = [one.group for one in self.made]
        removed = sum(len(group.files) for group in groups)
        added = sum(len(one.files) for one in self.made)
        return Outcome(
            self.aim.action,
            self._why(removed, added, sum(group.dead_rows for group in groups)),
            whole=not self.left,
            commits=self.commits,
            files_removed=removed + self.dropped_deletes,
            files_added=added,
            read_bytes=sum(group.read_bytes for group in groups),
            written_bytes=sum(one.written_bytes for one in self.made),
            seconds=seconds,
        )

    def _why(self, removed: int, added: int, dead: int) -> str:
        did = f"{removed:,} files became {added:,}, without {dead:,} deleted rows"
        why = dict.fromkeys([*self.nothing, *self.left])
        return "; ".join([did, *why] if removed else why or [self.aim.nothing])
