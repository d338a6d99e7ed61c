"""Large first loads, reloads, and large copies of change files on a cluster, by tasks of Spark.

The decision is taken anew for each step, and all else is copied in batches by one process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from polynya.engine.dataset import WorkingDataset
from polynya.engine.evolution import BatchColumns, refuse_unknown_columns, types_that_need_a_rewrite
from polynya.formats.base import ReadRequest
from polynya.formats.begun import Begun
from polynya.formats.files import Discovery, before_file
from polynya.formats.loads import LoadFormat, LoadLimits, SplitBoundary, SplitPlan
from polynya.lake.copy.copy import CopyResult
from polynya.lake.copy.load import (
    SoFar,
    StagedLoad,
    StagedRows,
    TellSoFar,
    commit_load,
    forget,
    forget_columns,
    is_unique,
    stage_load,
)
from polynya.lake.copy.reload import commit_reload, stage_reload
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.lake.table.suspension import BadRecordError, held_at, refuse_suspended
from polynya.observe import engine as events
from polynya.observe.events import StepProgress

#: How often the columns may turn out to differ from what was assumed.
_MOST_PLANS: Final = 5
#: How many files of a load are noted while they are planned.
_MOST_FILES_NOTED: Final = 1_000
#: Spark's messages about a task whose process has ended.
_DEAD_TASK_MESSAGES: Final = ("Python worker exited unexpectedly", "ExecutorLostFailure")


@dataclass(frozen=True, slots=True)
class LoadDecision:
    """Whether tasks read the files of a load, and why."""

    by_tasks: bool
    reason: str
    is_large: bool


def decide_load(discovery: Discovery, target: DatasetTable, limits: LoadLimits) -> LoadDecision:
    """Whether unread files are worth tasks of their own, and may go to Current unfolded."""
    size = sum(part.size for part in discovery.files)
    dataset = target.dataset
    refusals = (
        (not discovery.load, "the files are not a full load"),
        (size < limits.least_bytes, f"{size} bytes are one batch"),
        (dataset.kept.mode == "append_only", "an append-only table has no load"),
        (dataset.mapping.is_set, "its columns are mapped"),
        (not dataset.events.keys, "the keys are not known"),
        (dataset.landing.extracts is not None, "an extract is compared"),
        (dataset.events.apply_as_truncates is not None, "a truncate may be among the records"),
        (target.state.apply.applies > 0, "changes were applied already"),
        (target.state.apply.horizon is not None, "records may be too old"),
        (target.state.copy.reloading is not None, "a reload is under way"),
        (target.has_pending, "changes are pending already"),
    )
    reason = next((why for holds, why in refusals if holds), None)
    is_large = discovery.load and size >= limits.least_bytes
    return LoadDecision(reason is None, reason or f"a first full load of {size} bytes", is_large)


def decide_changes(discovery: Discovery, target: DatasetTable, limits: LoadLimits) -> LoadDecision:
    """Whether unread change files are worth tasks, and their rows surely only append.

    What a batch would look at in its rows before it appends them must follow from the state of the
    table alone: no row is a truncate, is older than one or than the horizon, or carries values over
    from another key.
    """
    size, least = sum(part.size for part in discovery.files), limits.least_change_bytes
    dataset, state = target.dataset, target.state
    refusals = (
        (least is None, "Spark works in this process"),
        (least is not None and size < least, f"{size} bytes are a batch or two"),
        (dataset.kept.mode == "append_only", "the table is append-only"),
        (dataset.mapping.is_set, "its columns are mapped"),
        (not dataset.events.keys, "the keys are not known"),
        (not dataset.events.sequence_by, "their order is that of reading"),
        (dataset.landing.extracts is not None, "an extract is compared"),
        (not state.copy.columns.schema, "the columns are not known yet"),
        (dataset.truncates is not None, "a truncate may be among the records"),
        (bool(state.apply.truncates), "records may be older than a truncate"),
        (state.copy.columns.has_old_keys, "records may be older than a change of key"),
        (state.apply.horizon is not None, "records may be too old"),
        (state.copy.reloading is not None, "a reload is under way"),
    )
    reason = next((why for holds, why in refusals if holds), None)
    is_large = least is not None and size >= least
    return LoadDecision(reason is None, reason or f"change files of {size} bytes", is_large)


def decide_gathering(
    discovery: Discovery, target: DatasetTable, limits: LoadLimits
) -> LoadDecision:
    """Whether unread files of a reload are worth tasks, which gather its rows as they are."""
    size = sum(part.size for part in discovery.files)
    dataset = target.dataset
    refusals = (
        (size < limits.least_bytes, f"{size} bytes are one batch"),
        (dataset.mapping.is_set, "its columns are mapped"),
        (dataset.withholds, "its records are withheld"),
        (not dataset.events.keys, "the keys are not known"),
        (dataset.truncates is not None, "a truncate may be among the records"),
        (
            dataset.landing.extracts is not None and dataset.events.timestamp is not None,
            "its rows tell when they changed",
        ),
    )
    reason = next((why for holds, why in refusals if holds), None)
    is_large = size >= limits.least_bytes
    return LoadDecision(reason is None, reason or f"a full load of {size} bytes", is_large)


class LargeLoads:
    """Loads, reloads and large copies of the files of one task."""

    def __init__(self, loads: LoadFormat | None, limits: LoadLimits) -> None:
        self._loads = loads
        self._limits = limits
        #: By dataset, where the next load of its files continues.
        self._places: dict[str, Mapping[str, SplitBoundary]] = {}

    def copy_next(
        self,
        table: WorkingDataset,
        discovery: Discovery,
        live: Callable[[], Collection[str]],
        request: ReadRequest,
    ) -> bool:
        """Copy one commit's worth by tasks; False when the files must be read in batches.

        Raises what `copy_batch` raises.
        """
        clock = table.context.clock
        started, now = clock.monotonic(), clock.now()
        with table.table.changing:
            decision = self._decide(discovery, table.table)
            if self._loads is None or not decision.by_tasks:
                return decision.is_large and self._in_batches(table, decision.reason)
            refuse_suspended(table.table)
            enter(table.table)
        done = self._staged(self._loads, table, discovery, request, now)
        if isinstance(done, str):
            return self._in_batches(table, done)
        plan, staged = done
        if plan.load and not is_unique(table.table, plan, staged):
            forget(table.table, staged)
            return self._in_batches(table, "a key is there twice")
        try:
            with table.table.changing:
                # Changes are read while an apply works, which may have moved the horizon.
                still = decision if plan.load else self._decide(discovery, table.table)
                if not still.by_tasks:
                    forget(table.table, staged)
                    return self._in_batches(table, still.reason)
                result = commit_load(table.table, plan, staged, now=now, live_files=live())
        except BadRecordError as bad:
            forget(table.table, staged)
            return self._before_a_bad_file(table, discovery, live, request, bad)
        self._places[table.name] = plan.places_after(staged.reports)
        table.publish(settle=True)
        seconds = clock.monotonic() - started
        table.tell_copied(result, len(plan.progress), seconds)
        progress = events.LoadProgress(
            subject=table.name,
            reason=decision.reason,
            rows=result.rows_in,
            seconds=round(seconds, 3),
            read_bytes=sum(split.size for split in plan.splits),
            left_bytes=_left_bytes(discovery, plan),
        )
        table.tell(progress)
        return True

    def gather_next(
        self, table: WorkingDataset, discovery: Discovery, request: ReadRequest
    ) -> CopyResult | None:
        """Gather one commit's worth of a reload; None when the files must be read in batches.

        Raises what `lake.copy.reload.load` raises.
        """
        now = table.context.clock.now()
        decision = decide_gathering(discovery, table.table, self._limits)
        if self._loads is None or not decision.by_tasks:
            if decision.is_large:
                self._tell_batches(table, decision.reason)
            return None
        done = self._staged_reload(self._loads, table, discovery, request, now)
        if isinstance(done, str):
            self._tell_batches(table, done)
            return None
        plan, staged = done
        result = commit_reload(table.table, plan, staged, now=now)
        self._places[table.name] = plan.places_after(staged.reports)
        return result

    def _staged_reload(
        self,
        loads: LoadFormat,
        table: WorkingDataset,
        discovery: Discovery,
        request: ReadRequest,
        now: datetime,
    ) -> tuple[SplitPlan, StagedRows] | str:
        """Let tasks read a part of a reload; else why the files must be read in batches.

        Only batches carry out what the policies say of columns that differ from the table's.
        """
        damaged: dict[str, str] = {}
        places = self._places.get(table.name, {})

        def replan() -> SplitPlan | str:
            return loads.plan(request, self._limits, damaged, places)

        with table.context.begun.loading(part.path for part in request.files[:_MOST_FILES_NOTED]):
            plan = replan()
        for _ in range(_MOST_PLANS):
            if isinstance(plan, str):
                return plan
            if not plan.splits:
                return "no record can be read"
            dataset = table.table.dataset
            named = plan.met or frozenset(set(plan.schema) - set(dataset.events.columns))
            of_load = dataset.landing.extracts is None
            columns = BatchColumns(named, list(plan.progress), of_load=of_load)
            refuse_unknown_columns(table.context, table.table, columns)
            if plan.declared is not None and not set(table.columns) <= set(plan.declared):
                return "the files lack columns of the table"
            if types_that_need_a_rewrite(table.columns, plan.schema):
                return "a column gets another type"
            tell = _progress_reporter(table, discovery, plan)
            with _noting_files(table.context.begun, plan):
                staged = stage_reload(table.table, plan, now=now, tell=tell)
            following = _corrected_plan(loads, plan, staged, damaged, replan)
            if following is None:
                return plan, staged
            forget(table.table, staged)
            if isinstance(following, SplitPlan) and (
                not following.splits or following.schema != plan.schema
            ):
                forget_columns(table.table)
                return "its records have other columns than its first ones"
            plan = following
        return "the files cannot be settled"

    def _staged(
        self,
        loads: LoadFormat,
        table: WorkingDataset,
        discovery: Discovery,
        request: ReadRequest,
        now: datetime,
    ) -> tuple[SplitPlan, StagedLoad] | str:
        """Let tasks read what one commit takes; else why the files must be read in batches."""
        if not table.progress:
            request = _from_scratch(request)
        damaged: dict[str, str] = {}
        places = self._places.get(table.name, {})

        def replan() -> SplitPlan | str:
            return loads.plan(request, self._limits, damaged, places)

        with table.context.begun.loading(part.path for part in request.files[:_MOST_FILES_NOTED]):
            plan = replan()
        for _ in range(_MOST_PLANS):
            if isinstance(plan, str):
                return plan
            if not plan.splits:
                return "no record can be read"
            columns = BatchColumns(plan.met, list(plan.progress), of_load=plan.load)
            refuse_unknown_columns(table.context, table.table, columns)
            if plan.load and table.progress:
                table.retype(types_that_need_a_rewrite(table.columns, plan.schema))
            tell = _progress_reporter(table, discovery, plan)
            with _noting_files(table.context.begun, plan):
                staged = stage_load(table.table, plan, now=now, tell=tell)
            following = _corrected_plan(loads, plan, staged, damaged, replan)
            if following is None:
                return plan, staged
            forget(table.table, staged)
            plan = following
        return "the columns cannot be settled"

    def _decide(self, discovery: Discovery, target: DatasetTable) -> LoadDecision:
        decide = decide_load if discovery.load else decide_changes
        return decide(discovery, target, self._limits)

    def _before_a_bad_file(
        self,
        table: WorkingDataset,
        discovery: Discovery,
        live: Callable[[], Collection[str]],
        request: ReadRequest,
        bad: BadRecordError,
    ) -> bool:
        """Copy the files before a file with a bad record, then apply its policy.

        False when the files must be read in batches, which do the same.
        """
        earlier = before_file(discovery.files, bad.file)
        if earlier:
            less, first = replace(discovery, files=earlier), replace(request, files=earlier)
            if not self.copy_next(table, less, live, first):
                return False
        raise held_at(table.table, bad)

    def _in_batches(self, table: WorkingDataset, reason: str) -> bool:
        if table.table.owned:
            forget_columns(table.table)
        self._tell_batches(table, reason)
        return False

    def _tell_batches(self, table: WorkingDataset, reason: str) -> None:
        if table.context.is_news(f"{table.name} is loaded in batches", reason):
            table.tell(events.LoadInBatches(subject=table.name, reason=reason))


def _corrected_plan(
    loads: LoadFormat,
    plan: SplitPlan,
    staged: StagedRows,
    damaged: dict[str, str],
    replan: Callable[[], SplitPlan | str],
) -> SplitPlan | str | None:
    """What to do instead of committing the staged rows; None when they are right.

    `damaged` gets the files that turned out to be so.
    """
    broken = {
        split.file: why
        for split in plan.splits
        if (why := staged.reports[split.number].damaged) is not None
    }
    if broken:
        damaged.update(broken)
        return replan()
    settled = loads.settled(plan, staged.reports)
    return None if settled is plan else settled


@contextmanager
def _noting_files(begun: Begun, plan: SplitPlan) -> Iterator[None]:
    """Note which files tasks read, and count a load whose tasks died."""
    try:
        with begun.loading(plan.progress):
            yield
    except Exception as error:
        if any(sign in str(error) for sign in _DEAD_TASK_MESSAGES):
            begun.load_in_vain(plan.progress)
        raise


def _from_scratch(request: ReadRequest) -> ReadRequest:
    """The request for an empty table, without the columns that an earlier attempt assumed."""
    known = request.table
    return replace(request, tables={known.source: replace(known, schema={})})


def _progress_reporter(table: WorkingDataset, discovery: Discovery, plan: SplitPlan) -> TellSoFar:
    """Reports the progress of a plan's tasks, with the time left for them and later ones."""
    clock = table.context.clock
    began = clock.monotonic()
    later = [part for part in discovery.files if part.path not in plan.progress]
    later_bytes = _left_bytes(discovery, plan)

    def tell(so_far: SoFar) -> None:
        seconds, left_bytes = clock.monotonic() - began, so_far.left_bytes + later_bytes
        progress = StepProgress(
            subject=table.name,
            step="loading",
            seconds=seconds,
            rows=so_far.rows,
            files_left=so_far.left_files + len(later),
            left_bytes=left_bytes,
            left_seconds=seconds * left_bytes / so_far.read_bytes if so_far.read_bytes else None,
        )
        table.tell(progress)

    return tell


def _left_bytes(discovery: Discovery, plan: SplitPlan) -> int:
    """Bytes of the files of a load that wait after the commit of a plan."""
    left = 0
    for part in discovery.files:
        done = plan.progress.get(part.path)
        if done is None:
            left += part.size
        elif not done.complete:
            ends = (s.before + s.size for s in plan.splits if s.file == part.path)
            left += max(part.size - max(ends, default=0), 0)
    return left
