"""`rewrite_data_files` and `rewrite_layout`: rewrite groups of data files and commit each group.

An apply never waits for a rewrite and never fails because of one: files are written without a lock
and committed between two applies. Rows of these files may be deleted between the snapshot that was
read and the commit. The new files are not written a second time for that: the earlier place of each
of their rows is known, so the same commit deletes the same rows in them.

Groups are written in this process, or in Spark tasks on executors or local worker processes. A task
writes one group, with the memory that the driver would need for it. The driver gets the footers of
the new files and the earlier places of their rows, never a row.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.deletes import Deleted, deleted_places, of_files
from polynya.lake.iceberg.files import FilePartition
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.job import RewriteJob, RewrittenFile, write
from polynya.lake.maintenance.rewrite_plan import (
    REWRITTEN,
    GroupBatch,
    RewriteCandidate,
    RewriteGroup,
    RewriteRule,
    SnapshotFiles,
    TaskCapacity,
    batches,
    look,
    plan,
    plan_layout,
    reader_of,
)
from polynya.lake.maintenance.rewrite_writer import NewFile, ordered_by
from polynya.lake.maintenance.write import GaveWayError, StagedGroup, job_of, stage_here, staged
from polynya.lake.spark.api import Py4JJavaError, PySparkException, SparkSession
from polynya.lake.spark.session import is_local
from polynya.lake.spark.tasks import attempt_of_task, cancelled_when, rows_of_tasks
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.maintenance import ActionName
from polynya.model.errors import ConflictError
from polynya.observe.trace import span

log = logging.getLogger(__name__)
RULE: Final = RewriteRule()
#: How long what was written waits for the end of an apply before it is given up.
PATIENCE_SECONDS: Final = 60.0
#: How often a task is tried, as `spark.task.maxFailures` has it.
_TASK_ATTEMPTS: Final = 4
_NEW_FILES: Final = pa.schema(
    [
        ("job", pa.int32()),
        ("attempt", pa.int32()),
        ("path", pa.string()),
        ("partition", pa.string()),
        ("spec", pa.int32()),
        ("slot_values", pa.string()),
        ("rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("footer", pa.binary()),
        ("packed", pa.binary()),
    ]
)
_EMPTY: Final = "the table is empty"
_GAVE_WAY: Final = "it gave way"


@dataclass(frozen=True, slots=True)
class _Aim:
    """Why files are rewritten, and the text for when there are none."""

    action: ActionName
    plan: Callable[[Iterable[RewriteCandidate], RewriteRule], list[RewriteGroup]]
    nothing: str


_SHAPE: Final = _Aim("rewrite_data_files", plan, "no files are worth writing again")
_LAYOUT: Final = _Aim("rewrite_layout", plan_layout, "all files have the layout of the table")


def rewrite_data_files(
    target: DatasetTable, limits: ActionLimits, rule: RewriteRule = RULE
) -> ActionOutcome:
    """Rewrite files that are small or have many deleted rows; the rows stay the same.

    This process has taken the table over. Other steps may be taken meanwhile, by other threads.
    Raises what a commit raises whose outcome is not known, and ConflictError when another process
    took the table over.
    """
    return _rewritten(target, limits, rule, _SHAPE)


def rewrite_layout(
    target: DatasetTable, limits: ActionLimits, rule: RewriteRule = RULE
) -> ActionOutcome:
    """Rewrite files whose partitioning or sorting differs from the table's present layout.

    For all else see `rewrite_data_files`.
    """
    return _rewritten(target, limits, rule, _LAYOUT)


def _rewritten(
    target: DatasetTable, limits: ActionLimits, rule: RewriteRule, aim: _Aim
) -> ActionOutcome:
    began = time.monotonic()
    sized = rule.sized(target.dataset.layout.file_bytes)
    work = _Work(target, limits, sized, engine_of(target.spark), aim)
    work.all()
    return work.outcome(round(time.monotonic() - began, 3))


def planned(target: DatasetTable, rule: RewriteRule = RULE) -> list[RewriteGroup] | str:
    """What `rewrite_data_files` would do now, or why nothing can be done. Writes nothing.

    Raises OSError.
    """
    snapshot = target.state.snapshot
    if snapshot is None:
        return _EMPTY
    seen = _look(target, snapshot, target.stored_shape())
    sized = rule.sized(target.dataset.layout.file_bytes)
    return seen if isinstance(seen, str) else plan(seen.files, sized)


def engine_of(spark: SparkSession) -> TaskCapacity:
    """What runs the tasks of a session."""
    return TaskCapacity(spark.sparkContext.defaultParallelism, on_cluster=not is_local(spark))


def _look(target: DatasetTable, snapshot: int, shape: Shape) -> SnapshotFiles | str:
    keep = target.dataset.kept.changes_retention
    kept = keep if isinstance(keep, timedelta) else None
    return look(target.table, snapshot, shape, target.dataset.layout, keep=kept)


@dataclass(slots=True)
class _Work:
    """One run of an action, and what it has done so far."""

    target: DatasetTable
    limits: ActionLimits
    rule: RewriteRule
    engine: TaskCapacity
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

    def _groups(self, seen: SnapshotFiles, shape: Shape) -> None:
        waiting: list[StagedGroup] = []
        for batch in batches(self.aim.plan(seen.files, self.rule), self.engine):
            log.debug("%s: %s", self.target.table.name, batch.reason)
            if self.limits.give_way():
                self.left.append(_GAVE_WAY)
                break
            staged = self._staged(seen, batch, shape)
            self.used_bytes += sum(group.group.written_bytes for group in staged)
            waiting += staged
            if sum(group.written_bytes for group in waiting) >= self.rule.target_bytes:
                self._land(seen, waiting)
                waiting = []
        self._land(seen, waiting)

    def _staged(self, seen: SnapshotFiles, batch: GroupBatch, shape: Shape) -> list[StagedGroup]:
        """The groups of a batch, written; why others are not is noted."""
        try:
            jobs = list(self._jobs(seen, batch, shape))
            if batch.by_tasks and jobs:
                return stage_by_tasks(self.target.table, jobs, self.limits.give_way)
            return [stage_here(self.target.table, *job, self.limits.give_way) for job in jobs]
        except GaveWayError:
            self.left.append(_GAVE_WAY)
        except (OSError, pa.ArrowInvalid) as error:
            self.left.append(f"a file was not read or written: {error}")
        return []

    def _jobs(
        self, seen: SnapshotFiles, batch: GroupBatch, shape: Shape
    ) -> Iterator[tuple[RewriteGroup, RewriteJob]]:
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

    def _land(self, seen: SnapshotFiles, groups: Sequence[StagedGroup]) -> None:
        """Commit, or remove what was written."""
        if not groups:
            return
        staged = [path for group in groups for path in group.paths]
        with self.target.between_applies(PATIENCE_SECONDS) as free:
            if not free:
                self.left.append(f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s")
                self.target.table.drop_files(staged)
                return
            try:
                landed = land(self.target, seen, groups)
            except ConflictError as error:
                # Another commit, or a new owner: then this raises.
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

    def outcome(self, seconds: float) -> ActionOutcome:
        """What was done."""
        groups = [staged.group for staged in self.made]
        removed = sum(len(group.files) for group in groups)
        added = sum(len(staged.files) for staged in self.made)
        return ActionOutcome(
            self.aim.action,
            self._why(removed, added, sum(group.dead_rows for group in groups)),
            whole=not self.left,
            commits=self.commits,
            files_removed=removed + self.dropped_deletes,
            files_added=added,
            read_bytes=sum(group.read_bytes for group in groups),
            written_bytes=sum(staged.written_bytes for staged in self.made),
            seconds=seconds,
        )

    def _why(self, removed: int, added: int, dead: int) -> str:
        did = f"{removed:,} files became {added:,}, without {dead:,} deleted rows"
        why = dict.fromkeys([*self.nothing, *self.left])
        return "; ".join([did, *why] if removed else why or [self.aim.nothing])


@span("write rows again", by="tasks")
def stage_by_tasks(
    table: IcebergTable,
    work: Sequence[tuple[RewriteGroup, RewriteJob]],
    give_way: Callable[[], bool],
) -> list[StagedGroup]:
    """Write groups at the same time, each in a task.

    Raises GaveWayError when it has to give way, and OSError; its files are removed then.
    """
    jobs = [job for _, job in work]
    try:
        with cancelled_when(table.spark, give_way) as cancelled:
            rows = rows_of_tasks(table.spark, len(jobs), _writing(jobs), _NEW_FILES).toArrow()
    except BaseException as error:
        table.drop_files(path for job in jobs for path in job.left(_TASK_ATTEMPTS))
        if cancelled.is_set():
            raise GaveWayError from error
        if isinstance(error, (PySparkException, Py4JJavaError)):
            raise OSError(_first_line(error)) from error
        raise
    made: list[list[RewrittenFile]] = [[] for _ in jobs]
    for row in rows.to_pylist():
        made[row["job"]].append(_written(row))
        if row["attempt"]:
            table.drop_files(jobs[row["job"]].left(row["attempt"]))
    return [staged(table, *item, some) for item, some in zip(work, made, strict=True)]


def _writing(jobs: Sequence[RewriteJob]) -> Callable[[int], Iterator[pa.RecordBatch]]:
    """What a task does; it is sent with the jobs."""

    def work(number: int) -> Iterator[pa.RecordBatch]:
        attempt = attempt_of_task()
        for file in write(jobs[number], lambda: None, attempt):
            yield pa.RecordBatch.from_pylist([_row(number, attempt, file)], schema=_NEW_FILES)
        # The process waits for the next task of anybody.
        pa.default_memory_pool().release_unused()

    return work


def _row(number: int, attempt: int, one: RewrittenFile) -> dict[str, Any]:
    file = one.file
    return {
        "job": number,
        "attempt": attempt,
        "path": file.path,
        "partition": file.slot.partition,
        "spec": file.slot.spec,
        "slot_values": file.slot.values,
        "rows": file.rows,
        "size_bytes": file.size_bytes,
        "footer": file.footer,
        "packed": one.packed,
    }


def _written(row: dict[str, Any]) -> RewrittenFile:
    slot = FilePartition(row["partition"], row["spec"], row["slot_values"])
    file = NewFile(row["path"], slot, row["rows"], row["size_bytes"], row["footer"])
    return RewrittenFile(file, row["packed"])


def _first_line(error: Exception) -> str:
    """The line that says what was wrong, without the stacks of Java and Python."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error: " in line), lines[0] if lines else "")


@dataclass(frozen=True, slots=True)
class CommittedGroups:
    """Which groups were committed, and which were dropped: with what was in their way."""

    made: tuple[StagedGroup, ...]
    dropped: tuple[tuple[StagedGroup, str], ...]
    dropped_deletes: int = 0


@span("land rewrite")
def land(
    target: DatasetTable, seen: SnapshotFiles, groups: Sequence[StagedGroup]
) -> CommittedGroups:
    """Commit what still holds. No apply is at work, and nobody else commits (`between_applies`).

    The staged files of groups that do not hold are removed. Raises what a commit raises, and
    OSError.
    """
    table, snapshot = target.table, target.state.snapshot
    assert snapshot is not None, "files were read from a snapshot"
    live = {file.path for partition in REWRITTEN for file in table.files(partition, snapshot)}
    deleted = _deleted_now(table, seen, snapshot, live)
    made: list[StagedGroup] = []
    dropped: list[tuple[StagedGroup, str]] = []
    places: list[pa.Table] = []
    for group in groups:
        moved = _moved(group, seen, deleted, live)
        if isinstance(moved, str):
            dropped.append((group, moved))
        else:
            made.append(group)
            places.append(moved)
    table.drop_files(path for group, _ in dropped for path in group.paths)
    if not made:
        return CommittedGroups((), tuple(dropped))
    assert not isinstance(deleted, str)
    gone = [file.file for staged in made for file in staged.group.files]
    drop = deleted.only_named_by((file.path for file in gone), live)
    removed = pa.concat_tables(places)
    target.commit(
        apply=target.state.apply,
        add=[file.file for staged in made for file in staged.files],
        remove=gone,
        removed=removed if removed.num_rows else None,
        drop=drop,
        summary={
            "polynya.step": "rewrite-data-files",
            "polynya.reason": made[0].group.reason,
            "polynya.rewritten-files": str(len(gone)),
        },
    )
    return CommittedGroups(tuple(made), tuple(dropped), len(drop))


def _deleted_now(
    table: IcebergTable, seen: SnapshotFiles, snapshot: int, live: Set[str]
) -> Deleted | str:
    """Rows that are now deleted, with the numbers of `seen`; or why that is unknown.

    A delete file never changes: only new ones are read, unless one of before is gone that named a
    live file, because a vector or a rewrite took its place.
    """
    if snapshot == seen.snapshot:
        return seen.deleted
    deletes = table.position_deletes(snapshot)
    if deletes is None:
        return "another engine wrote equality deletes, or position deletes that are not Parquet"
    here = {delete.place for delete in deletes}
    lost = any(file.place not in here and names & live for file, names in seen.deleted.named)
    names_by_place = {} if lost else {file.place: names for file, names in seen.deleted.named}
    new = [delete for delete in deletes if delete.place not in names_by_place]
    read = deleted_places(reader_of(table, new), seen.deleted.paths, new)
    if read is None:
        return "delete files are in another place than the table"
    if lost:
        return read
    still = [(file, names) for file, names in seen.deleted.named if file.place in here]
    places = pa.concat_arrays([seen.deleted.places, read.places])
    return Deleted(seen.deleted.paths, places, (*still, *read.named))


def _moved(
    staged: StagedGroup, seen: SnapshotFiles, deleted: Deleted | str, live: Set[str]
) -> pa.Table | str:
    """Places in the new files of rows that were deleted meanwhile; or why no new file is usable."""
    if isinstance(deleted, str):
        return deleted
    if any(file.file.path not in live for file in staged.group.files):
        return "another step has removed or rewritten some of its files"
    parts = [PLACES.empty_table()]
    if deleted is seen.deleted:
        return parts[0]
    numbers = [file.number for file in staged.group.files]
    before, now = (of_files(deletes.places, numbers) for deletes in (seen.deleted, deleted))
    if len(before.filter(pc.is_in(before, value_set=now))) < len(before):
        return "rows that were deleted are there again: the table was rolled back"
    new = now.filter(pc.invert(pc.is_in(now, value_set=before)))
    for file in staged.files:
        at = pc.index_in(new, value_set=file.places()).drop_null()
        count = len(at)
        parts.append(
            pa.table(
                [
                    pa.repeat(pa.scalar(file.file.partition, pa.string()), count),
                    pa.repeat(pa.scalar(file.file.path, pa.string()), count),
                    at.cast(pa.int64()),
                ],
                schema=PLACES,
            )
        )
    positions = pa.concat_tables(parts)
    if positions.num_rows != len(new):
        return "rows were deleted that were not read"
    return positions
