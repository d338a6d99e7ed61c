"""A large first load, or a large copy of change files: tasks read the landed files.

The rows of a load go straight to Current. Nothing is shuffled. A check afterwards proves that all
keys differ, from what the tasks saw or by reading the keys back. A load with a repeated key is
copied in batches instead, which are folded. The rows of change files go to Changes, as those of a
batch that only appends do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import Final, TypeAlias

import pyarrow as pa

from polynya.formats.batch import NO_ORDER, UNPARSED, BatchFacts, LoadedBatch
from polynya.formats.loads import (
    KeyRange,
    Split,
    SplitPlan,
    SplitReader,
    SplitReport,
    rejected_rows,
    task_schema,
)
from polynya.lake.apply import retention
from polynya.lake.apply.retention import Retention
from polynya.lake.copy.copy import CopyResult, state_after, to_current
from polynya.lake.copy.load_writer import Direct, DirectWriter, LoadedFile, direct_of
from polynya.lake.copy.rows import HELPERS, Times, derived, first_rejected_in_spark
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import within
from polynya.lake.iceberg.files import DataFile, FilePartition
from polynya.lake.iceberg.staged import staged_rows
from polynya.lake.iceberg.writing import data_folder, stage, written_file
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.spark.tasks import TaskReports, rows_of_tasks
from polynya.lake.table.books import booked, rows_by_partition, with_changes, with_inserted
from polynya.lake.table.dataset import DatasetTable, change_columns
from polynya.lake.table.ownership import agreed_keys, has_rows
from polynya.lake.table.suspension import refuse_bad_records
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.model.promotion import widen
from polynya.model.types import BIGINT, INT, DataType
from polynya.observe.trace import span

log = logging.getLogger(__name__)
_PROGRESS_SECONDS: Final = 1.0
#: Jobs of other datasets wait for a core as long as a task takes: two seconds or so. Each task
#: makes data files of its own, which should not be too small either.
_MIN_TASK_BYTES = 16 * 1024 * 1024
_MAX_TASK_BYTES = 64 * 1024 * 1024
#: Tasks for each core of a load that is not small.
_TASKS_PER_CORE = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Columns of a landed batch that are the same for all rows that tasks read.
_SAME = {"__position": "CAST(NULL AS STRING)", "__unsent": "CAST(NULL AS ARRAY<STRING>)"}
#: Those of a load.
_LOADED = {"__op": "'L'", "__ts": "CAST(NULL AS TIMESTAMP)"}
#: Those of changes: the settings say which are deletes.
_CHANGED = {"__op": "CAST(NULL AS STRING)"}
_GOES_TO_CURRENT = f"(__decided = 'L' AND {h.PARTITION} = '{Partition.CHANGES}')"


@dataclass(frozen=True, slots=True)
class SoFar:
    """What the tasks of a plan have read and what is left of it: `left_files` not wholly."""

    rows: int
    read_bytes: int
    left_bytes: int
    left_files: int


#: Receives the progress of a load.
TellSoFar: TypeAlias = Callable[[SoFar], None]


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The work of all tasks; it is sent to each.

    Attributes:
        reader: reads splits.
        tasks: the splits of each task.
        rejected: rows of files that cannot be read.
        direct: how tasks write rows, None when they write none.
        reports: of splits, by their number.
        written: files, by the number of the task.
    """

    reader: SplitReader
    tasks: Sequence[Sequence[Split]]
    rejected: pa.RecordBatch
    direct: Direct | None
    reports: TaskReports[SplitReport]
    written: TaskReports[list[LoadedFile]]

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a task that it does not write."""
        if number == 0 and self.rejected.num_rows:
            yield self.rejected
        writer = None if self.direct is None else DirectWriter(self.direct)
        for split in self.tasks[number]:
            for batch in self.reader.read(split, self.reports.report):
                left = batch if writer is None else writer.take(batch)
                if left.num_rows:
                    yield left
        if writer is not None:
            self.written.report(number, writer.close())


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows of a plan whose files are written and in no snapshot yet.

    Attributes:
        files: that were staged.
        reports: by number of the split.
        job: that wrote them, to look at rejected records again.
    """

    files: Sequence[DataFile]
    reports: Mapping[int, SplitReport]
    job: SplitJob


@dataclass(frozen=True, slots=True)
class StagedLoad(StagedRows):
    """The same of a load; `keeping` is what it does to kept events."""

    keeping: Retention


@dataclass(slots=True)
class SplitJob:
    """Reads the splits of a plan, as often as its rows are asked for."""

    target: DatasetTable
    plan: SplitPlan
    shape: Shape
    began: datetime
    now: datetime
    reports: TaskReports[SplitReport] = field(init=False)
    written: TaskReports[list[LoadedFile]] = field(init=False)

    def __post_init__(self) -> None:
        self.reports, self.written = TaskReports(self.target.spark), TaskReports(self.target.spark)

    def rows(self, direct: Direct | None = None) -> DataFrame:
        """Rows of the internal table, but for those that `direct` lets the tasks write."""
        return derived(
            self._landed(direct),
            self.plan.schema,
            self.target.dataset,
            self.shape,
            Times(self.now, self.began),
        )

    def _landed(self, direct: Direct | None) -> DataFrame:
        """The rows of all splits, in the columns of a landed batch."""
        spark, plan = self.target.spark, self.plan
        placed = bool(self.target.dataset.events.sequence_by)
        schema = task_schema(plan.schema, placed=placed, timed=not plan.load)
        work = TaskWork(
            plan.reader,
            tasks_of(plan.splits, spark.sparkContext.defaultParallelism),
            rejected_rows(plan.rejected, schema),
            direct,
            self.reports,
            self.written,
        )
        read = rows_of_tasks(spark, len(work.tasks), work.rows, schema)
        same = _SAME | (_LOADED if plan.load else _CHANGED)
        if "__ci" not in schema.names:
            same |= {"__ci": f"'{NO_ORDER}'", "__tail": "CAST(NULL AS STRING)"}
        columns = {name: functions.expr(value) for name, value in same.items()}
        members = ", ".join(f"{quote(key)}: {self.shape.type_of(key)}" for key in self.shape.keys)
        columns["__old"] = functions.expr(f"CAST(NULL AS STRUCT<{members}>)")
        return read.withColumns(columns)


@span("stage load")
def stage_load(
    target: DatasetTable, plan: SplitPlan, *, now: datetime, tell: TellSoFar = lambda _: None
) -> StagedLoad:
    """Let tasks read all splits of a plan and write their rows; nothing is committed.

    The table was entered. The files are worth nothing unless the reports say what was assumed.
    `tell` hears meanwhile, in another thread, how far the tasks are.
    Raises what the store raises when it does not give a file.
    """
    batch = loaded_batch(target, plan, {}, rows_in=0)
    keys = agreed_keys(target, batch)
    if not _holds(target, plan.schema):
        forget_columns(target)
    target.grow(plan.schema)
    following = state_after(target, batch, keys, now=now, live_files=None)
    shape = target.shape(plan.schema, keys, following)
    keeping = retention.before(target, shape, now)
    began = following.position.load_started_at or now
    direct = None
    if plan.load and keeping.state is None:
        direct = direct_for(target, plan, shape, began, keeping.now, to=Partition.CURRENT)
    job = SplitJob(target, plan, shape, began, now)
    rows = job.rows(direct)
    if plan.load:
        rows = to_current(rows, _GOES_TO_CURRENT, keeping.now)
        if keeping.state is not None:
            rows = retention.with_loaded_events(rows, keeping.now)
    staged = staged_by_tasks(job, rows, tell, to=Partition.CURRENT, laid_out=plan.load)
    return StagedLoad(staged.files, staged.reports, job, keeping)


def staged_by_tasks(
    job: SplitJob, rows: DataFrame, tell: TellSoFar, *, to: Partition, laid_out: bool
) -> StagedRows:
    """Let tasks write `rows`, which are those of a job; what they write themselves goes `to`.

    Raises what the store raises when it does not give a file.
    """
    target, plan = job.target, job.plan
    with watched(plan, lambda: job.reports.all, tell):
        files = stage(target.table, rows.drop(*HELPERS), laid_out=laid_out)
    files += (
        written_file(
            target.table,
            file.path,
            FilePartition(str(to)),
            file.footer,
            rows=file.rows,
            size_bytes=file.size_bytes,
        )
        for file in chain.from_iterable(job.written.all.values())
    )
    staged = StagedRows(files, job.reports.all, job)
    for report in staged.reports.values():
        if report.failed is not None:
            forget(target, staged)
            raise report.failed
    return staged


def direct_for(
    target: DatasetTable,
    plan: SplitPlan,
    shape: Shape,
    began: datetime,
    now: datetime,
    *,
    to: Partition,
) -> Direct | None:
    """How the tasks write rows by themselves, None when Spark writes all."""
    files, folder = target.table.reach().writes, data_folder(target.table)
    if isinstance(files, str):
        log.debug("load of %s is written by Spark: %s", target.table.name, files)
        return None
    is_sorted = any(term.order != "zorder" for term in target.dataset.layout.sort_by)
    if is_sorted or target.table.java_files().is_laid_out:
        log.debug("load of %s is written by Spark, which parts and sorts it", target.table.name)
        return None
    if not files.holds(folder):
        return None
    return direct_of(target, shape, plan.schema, files, folder, loaded=began, now=now, to=to)


def _holds(target: DatasetTable, schema: Mapping[str, DataType]) -> bool:
    """Whether the columns of the table can become those of `schema` in place."""
    stored = target.known_schema()
    return all(
        name in schema and widen(kind, schema[name]) == schema[name]
        for name, kind in stored.items()
    )


def forget_columns(target: DatasetTable) -> None:
    """Drop the columns of attempts whose assumptions did not hold, if no file was ever copied.

    Files that left the landing zone are forgotten: then only the rows tell that some were.
    """
    schema = target.known_schema()
    if schema and not target.state.copy.position.files and not has_rows(target):
        change_columns(target, {}, list(schema), of_empty=True)


def forget(target: DatasetTable, staged: StagedRows) -> None:
    """Remove what was staged."""
    target.table.drop_files(file.path for file in staged.files)


def tasks_of(splits: Sequence[Split], cores: int) -> list[list[Split]]:
    """Splits that one task reads after another: neighbours, about as many bytes each.

    As many tasks for each core, so that all cores are done at about the same time.
    """
    of_core = sum(split.size for split in splits) // max(cores, 1)
    count = max(min(of_core // _MIN_TASK_BYTES, _TASKS_PER_CORE), -(-of_core // _MAX_TASK_BYTES), 1)
    task_bytes = max(of_core // count, 1)
    tasks: list[list[Split]] = [[]]
    size = 0
    for split in splits:
        if tasks[-1] and size + split.size // 2 >= task_bytes:
            tasks.append([])
            size = 0
        tasks[-1].append(split)
        size += split.size
    return tasks


@contextmanager
def watched(
    plan: SplitPlan, reports: Callable[[], Mapping[int, SplitReport]], tell: TellSoFar
) -> Iterator[None]:
    """Tell how far a plan has come whenever tasks ended, until the end of the block."""
    over = threading.Event()

    def watch() -> None:
        count = 0
        while not over.wait(_PROGRESS_SECONDS):
            reported = dict(reports())
            if len(reported) > count:
                count = len(reported)
                tell(so_far(plan, reported))

    thread = threading.Thread(target=watch, name="load", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def so_far(plan: SplitPlan, reports: Mapping[int, SplitReport]) -> SoFar:
    """How far a plan has come, of whose splits these have their report."""
    left = [split for split in plan.splits if split.number not in reports]
    left_bytes = sum(split.size for split in left)
    return SoFar(
        rows=sum(report.records for report in reports.values()),
        read_bytes=sum(split.size for split in plan.splits) - left_bytes,
        left_bytes=left_bytes,
        left_files=len({split.file for split in left}),
    )


@span("check keys")
def is_unique(target: DatasetTable, plan: SplitPlan, staged: StagedLoad) -> bool:
    """Whether no key stands twice in Current once the load is committed."""
    ranges = [staged.reports[split.number].keys for split in plan.splits]
    return keys_are_unique(target, staged.job.shape, staged.files, ranges)


def keys_are_unique(
    target: DatasetTable,
    shape: Shape,
    staged: Sequence[DataFile],
    ranges: Sequence[KeyRange | None],
) -> bool:
    """Whether no key of the staged rows for Current stands twice, or in Current already.

    `ranges` are what each split of the load says of its keys. Without a proof in them the keys are
    read back.
    """
    new = [file for file in staged if file.partition == Partition.CURRENT]
    if not new or _is_proven(target, shape, ranges):
        return True
    keys = [quote(key) for key in shape.keys]
    listed = ", ".join(keys)
    with staged_rows(target.table, new) as staged_keys:
        rows = staged_keys.selectExpr(*keys)
        snapshot = target.state.snapshot
        if snapshot is not None and target.table.files(Partition.CURRENT, snapshot):
            counts = target.spark.sql(
                f"SELECT {listed} FROM {target.table.at(snapshot)} "
                f"WHERE {within(Partition.CURRENT)}"
            )
            rows = rows.unionAll(counts)
        return rows.groupBy(*keys).count().where("count > 1").isEmpty()


def _is_proven(target: DatasetTable, shape: Shape, ranges: Sequence[KeyRange | None]) -> bool:
    bounded = [bounds for bounds in ranges if bounds is not None]
    if len(bounded) < len(ranges):
        return False
    lows = [bounds.low for bounds in bounded]
    if not (all(type(low) is int for low in lows) or all(type(low) is str for low in lows)):
        return False
    bounded.sort(key=lambda bounds: bounds.low)
    if any(before.high >= after.low for before, after in pairwise(bounded)):  # type: ignore[operator]
        return False
    return _is_apart_from_current(target, shape, bounded)


def _is_apart_from_current(target: DatasetTable, shape: Shape, bounded: Sequence[KeyRange]) -> bool:
    snapshot, (key,) = target.state.snapshot, shape.keys
    if snapshot is None or not target.table.files(Partition.CURRENT, snapshot):
        return True
    if shape.columns[key] not in {INT, BIGINT}:
        return False
    current_bounds = target.table.bounds(Partition.CURRENT, snapshot, key)
    if current_bounds is None:
        return False
    low, high = current_bounds
    return all(bounds.high < low or high < bounds.low for bounds in bounded)  # type: ignore[operator]


def commit_load(
    target: DatasetTable,
    plan: SplitPlan,
    staged: StagedLoad,
    *,
    now: datetime,
    live_files: Iterable[str] | None,
) -> CopyResult:
    """Commit staged rows with the position after them.

    Raises BadRecordError for a bad record of a dataset that does not quarantine them.
    """
    counts = rows_by_partition(staged.files)
    quarantined = counts.pop(Partition.QUARANTINE, 0)
    kept = counts.pop(Partition.RETAINED, 0)
    if quarantined:
        refuse_bad_records(target, lambda: first_rejected_in_spark(staged.job.rows()), now)
    batch = batch_of(target, plan, staged)
    following = state_after(
        target, batch, agreed_keys(target, batch), now=now, live_files=live_files
    )
    out = sum(counts.values())
    following, summary = booked(
        target, batch, following, step="copy", out=out, quarantined=quarantined
    )
    if plan.load:
        following = with_inserted(target, following, counts[Partition.CURRENT], now)
    else:
        following = with_changes(target, following, counts[Partition.CHANGES])
    apply = None
    if kept:
        apply = replace(target.state.apply, retaining=staged.keeping.following(kept))
    snapshot = target.commit(copy=following, apply=apply, add=staged.files, summary=summary)
    return CopyResult(batch.rows_in, out, 0, quarantined, snapshot)


def batch_of(target: DatasetTable, plan: SplitPlan, staged: StagedRows) -> LoadedBatch:
    """What was staged, as a batch."""
    records = sum(report.records for report in staged.reports.values())
    return loaded_batch(target, plan, staged.reports, rows_in=records + len(plan.rejected))


def loaded_batch(
    target: DatasetTable, plan: SplitPlan, reports: Mapping[int, SplitReport], *, rows_in: int
) -> LoadedBatch:
    """A plan as a batch, as far as these splits have their reports."""
    newest = max(
        (report.newest for report in reports.values() if report.newest is not None), default=None
    )
    copied = [report.copied_to for report in reports.values() if report.copied_to is not None]
    if not target.dataset.events.sequence_by and reports:
        copied = [NO_ORDER]
    return LoadedBatch(
        schema=plan.schema,
        keys=target.dataset.events.keys,
        rows_in=rows_in,
        files=plan.progress_after(reports) if reports or not plan.splits else plan.progress,
        facts=BatchFacts(
            newest=None if newest is None else _EPOCH + timedelta(microseconds=newest),
            copied_to=max(copied, default=None),
            loads=plan.load and bool(plan.splits),
        ),
        declared=plan.declared,
        met=plan.met,
        of_load=plan.load,
        unparsed=sum(report.unparsed for report in reports.values())
        + sum(record.rule in UNPARSED for record in plan.rejected),
    )
