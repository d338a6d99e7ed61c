"""A storage task whose datasets share their files: one file feeds many tables.

A file is read once for all datasets. Each dataset's commit holds its own position in the file, and
the ledger is committed last. After a crash in between, the file is read again, and each dataset
skips what it already has.

No dataset blocks another. Reading continues without a dataset that is suspended or refused; once
it may be copied again, it reads the skipped files by itself.

`RefusedTables` holds each error that concerns one table alone, with the pause before the next try:
an error of its settings, keys or columns, or a bug in our code. An error that may pass by itself, a
takeover by another owner and a policy that stops the task concern the whole task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from polynya.engine.context import EngineContext
from polynya.engine.dataset import OpenTables, WorkingDataset
from polynya.engine.errors import as_polynya
from polynya.engine.landing import TaskLanding, discovered, listing_of, reader_of
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.policy import read_whole
from polynya.engine.scheduler import longer_pause, run_in_threads
from polynya.engine.tasks.scheduled_loads import copy_or_gather, finish_gathered
from polynya.engine.tasks.storage import policy_for_new
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.formats.base import ReadBatch
from polynya.formats.batch import DatasetBatch, FilePart, FileProgress
from polynya.formats.files import Discovery, before_file
from polynya.formats.landed import gone_between
from polynya.lake.table.state import Membership
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import datasets_of_members
from polynya.model.config.task import StorageTask
from polynya.model.errors import (
    ConfigError,
    ConfigErrors,
    PolynyaError,
    SuspendedError,
    TaskStoppedError,
)
from polynya.model.positions import Gone
from polynya.observe.engine import UnitFailed
from polynya.observe.streams import StreamLost


class SharedFilesTask:
    """Brings all datasets of one task up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._landing = TaskLanding(context, task)
        self._listed = reader_of(context, listing_of(context, task, reused_seconds=0.0))
        self._tables = OpenTables(context, task)
        self._refused = RefusedTables(context)
        self._without: frozenset[str] = frozenset()
        self._maintenance: dict[str, MaintenanceUnit] = {}

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Copy the next batch of all datasets; when all is copied apply what is worth it."""
        with self._tables.in_use():
            return self._step(time_slice)

    def _step(self, time_slice: TimeSlice) -> StepResult:
        ledger = self._tables.ledger
        routes, errors = self._routes(ledger.table.state.copy.membership)
        self._meet(routes)
        self._catch_up_renamed(ledger)
        self._readmit_refused(ledger)
        waiting = [table for table in self._tables.by_source.values() if _must_catch_up(table)]
        if waiting and not time_slice.long:
            return TOO_LONG
        while waiting:
            waiting += filter(_must_catch_up, self._catch_up(waiting.pop(0)))
        result = self._copy_next(ledger, time_slice)
        if result.more:
            return result
        self._settle()
        if self._context.stop.is_set():
            return result
        tables = self._tables.by_source.values()
        applied = run_in_threads(lambda table: self._apply(table, time_slice), tables)
        self._reopen_later(
            table for table in list(self._tables.by_source) if not self._refused.accepts(table)
        )
        if TOO_LONG in applied:
            return TOO_LONG
        self._refused.forget(self._tables.by_source)
        problems: list[PolynyaError] = [ConfigErrors(errors)] if errors else []
        problems += [
            *self._refused.errors,
            *(result.refused for result in applied if result.refused),
        ]
        refused = self._refused.first_of(problems, self._task.name)
        return self._maintained(replace(result, refused=refused))

    def _routes(
        self, membership: Membership, sources: Collection[str] = ()
    ) -> tuple[dict[str, ResolvedDataset], list[ConfigError]]:
        """The datasets of the tables that the task knows, and of others; why some have none."""
        return datasets_of_members(self._task, membership.members, membership.refused, sources)

    def _meet(
        self, routes: Mapping[str, ResolvedDataset], suspended: Collection[str] = ()
    ) -> list[WorkingDataset]:
        return self._tables.open_new(routes, suspended, self._refused.attempt)

    def _reopen_later(self, sources: Iterable[str]) -> None:
        """Let these tables be opened again before their next use."""
        for source in sources:
            self._tables.drop(source)

    def _maintained(self, result: StepResult) -> StepResult:
        """The result, with the maintenance of each table that may have some."""
        for source, table in self._tables.by_source.items():
            units = self._maintenance
            beside = units.get(source) or units.setdefault(
                source, MaintenanceUnit(table.table.dataset)
            )
            result = beside.request_if_due(table, result)
        return result

    def _copy_next(self, ledger: WorkingDataset, time_slice: TimeSlice) -> StepResult:
        """Copy the next batch of the shared files, unless it should wait for more."""
        landing = self._landing
        discovery = discovered(
            self._listed, time_slice, lambda files: landing.unread(ledger, files)
        )
        ledger.report_discovery(discovery)
        if not discovery.files:
            return IDLE
        began = self._context.clock.monotonic()
        decision = landing.pace.decide(discovery, time_slice, began)
        if not decision.copy:
            return StepResult(wait_seconds=decision.wait)
        if time_slice.must_wait_for(discovery.size_bytes):
            return TOO_LONG
        with ledger.copying(discovery):
            files = self._copy(discovery)
        landing.pace.copied(discovery, files, began)
        return time_slice.more

    def _settle(self) -> None:
        """Remember that the tables of the first run are known; there may be many batches of it."""
        ledger = self._tables.ledger.table
        state = ledger.state.copy
        membership = state.membership
        if membership.members and not membership.settled and not self._context.stop.is_set():
            ledger.take_over()
            settled = replace(state, membership=replace(membership, settled=True))
            ledger.commit_copy_state(settled, "settled")

    def _copy(self, discovery: Discovery) -> Mapping[str, FileProgress]:
        """Copy one batch of the files; how far each was read."""
        parts = discovery.files
        began = self._context.clock.monotonic()
        batch = self._read(parts)
        before = self._tables.ledger.table.state.copy.membership
        known_sources = {*before.members, *before.refused, *self._tables.by_source}
        known_sources = known_sources if before.settled else set()
        new = policy_for_new(self._task, known_sources, batch.datasets)
        if new.ignored:
            self._without |= new.ignored
            batch = self._read(parts)
        routes, _ = self._routes(before, batch.datasets)
        if any(met.progress for met in self._meet(routes, new.suspended)):
            # A table that this task had already fed before a crash: skip what it has.
            batch = self._read(parts)
        assert batch.unrouted is not None, "what has no table is accounted for"
        policy = self._task.apply if read_whole(discovery, batch.unrouted.files) else None
        live = self._landing.paths()
        tables = self._tables.by_source
        refused = {*before.refused, *(set(batch.datasets) - set(tables))}
        good = sorted(set(batch.datasets) - refused)
        good = [source for source in good if not tables[source].is_behind]

        def copied(source: str) -> bool:
            def copy() -> None:
                # If that suspends a table, reading continues without it.
                with suppress(SuspendedError):
                    copy_or_gather(
                        tables[source], batch.datasets[source], began=began, live_files=live,
                        before=partial(self._read_earlier, source, parts), policy=policy,
                    )  # fmt: skip

            return self._refused.attempt(source, copy)

        results = run_in_threads(copied, good)
        failed = {source for source, done in zip(good, results, strict=True) if not done}
        done = self._tables.ledger.progress
        self._tables.remember(tables, batch.unrouted, live, refused | failed)
        self._reopen_later(failed)
        self._tell_lost(gone_between(done, batch.unrouted.files))
        return batch.unrouted.files

    def _tell_lost(self, lost: Mapping[str, Sequence[Gone]]) -> None:
        """Report landed batches that were removed before they were copied."""
        for folder, missing in lost.items():
            for gap in missing:
                event = StreamLost.of_landing(self._task.name, folder, gap)
                self._context.sink(replace(event, task=self._task.name))

    def _apply(self, table: WorkingDataset, time_slice: TimeSlice) -> StepResult:
        """Apply one table, whose files were read for all of them."""
        result = [IDLE]

        def apply() -> None:
            # The run may have ended after the last chunk of a load.
            finish_gathered(table)
            result[0] = table.copy_and_apply(self._task.apply, time_slice, lambda: IDLE)

        self._refused.attempt(_source_of(table), apply)
        return result[0]

    def _catch_up_renamed(self, ledger: WorkingDataset) -> None:
        """Let a dataset with a new name read what the files had for its source before.

        The ledger counts these files as read, since the dataset of the old name did so.
        """
        for source in ledger.table.state.copy.membership.members:
            table = self._tables.by_source.get(source)
            if table is not None and ledger.progress and _is_unfed(table):
                _set_behind(table, "begins", behind=True)

    def _readmit_refused(self, ledger: WorkingDataset) -> None:
        """Let tables that were refused before read what the files had for them."""
        membership, tables = ledger.table.state.copy.membership, self._tables.by_source
        taken = [
            source
            for source in membership.refused
            if source in tables
            and self._refused.attempt(
                source, partial(_set_behind, tables[source], "begins", behind=True)
            )
        ]
        if taken:
            self._remember_members("begins", set(membership.refused) - set(taken))

    def _catch_up(self, table: WorkingDataset) -> list[WorkingDataset]:
        """Copy the files that were read without a table while it was suspended or refused.

        Returns tables that split off from it, which have to catch up, too.
        """
        source, split_off = _source_of(table), list[WorkingDataset]()
        if not self._refused.attempt(source, lambda: self._follow(table, source, split_off)):
            self._tables.drop(source)
        return split_off

    def _follow(self, table: WorkingDataset, source: str, split_off: list[WorkingDataset]) -> None:
        while not self._context.stop.is_set():
            discovery = self._landing.unread(table, self._landing.files())
            if not discovery.files:
                _set_behind(table, "caught-up", behind=False)
                break
            began = self._context.clock.monotonic()
            batch = self._read(discovery.files, only=source)
            live = self._landing.paths()
            split_off += self._split_off(batch.left)
            try:
                before = partial(self._read_earlier, source, discovery.files)
                part = batch.datasets[source]
                copy_or_gather(table, part, began=began, live_files=live, before=before)
            except SuspendedError:
                break

    def _read_earlier(
        self, source: str, parts: Sequence[FilePart], file: str
    ) -> DatasetBatch | None:
        """The batch of a table in the files before one; None if there are none."""
        earlier = before_file(parts, file)
        return self._read(earlier, only=source).datasets[source] if earlier else None

    def _split_off(self, sources: Collection[str]) -> list[WorkingDataset]:
        """Treat the new names of a renamed table as tables of their own, read from the start.

        They are recorded before the table that they split from is copied: after a crash in between
        nothing else would look for their events, which the ledger counts as read.
        """
        if not sources:
            return []
        membership = self._tables.ledger.table.state.copy.membership
        self._meet(self._routes(membership, sources)[0])
        tables = self._tables.by_source
        split_off = [tables[source] for source in sources if source in tables]
        for table in split_off:
            _set_behind(table, "parted", behind=True)
        self._remember_members("parted", {*membership.refused, *(set(sources) - set(tables))})
        return split_off

    def _remember_members(self, step: str, refused: Collection[str]) -> None:
        """Commit to the ledger which tables there are, and nothing that was read."""
        ledger = self._tables.ledger.table
        before = ledger.state.copy
        after = before.with_members({*before.membership.members, *self._tables.by_source}, refused)
        if after.membership != before.membership:
            ledger.take_over()
            ledger.commit_copy_state(after, step)

    def _read(self, parts: Sequence[FilePart], *, only: str | None = None) -> ReadBatch:
        tables = self._tables.by_source
        return self._landing.read_shared(tables, parts, only=only, without=self._without)


def _source_of(table: WorkingDataset) -> str:
    """The source table of a table of a capture."""
    source = table.table.dataset.landing.source
    assert source is not None, "the source of a table of a capture is known"
    return source


def _set_behind(table: WorkingDataset, step: str, *, behind: bool) -> None:
    """Commit whether a table has to catch up with the ledger."""
    table.table.take_over()
    state = table.table.state.copy.with_behind(behind=behind)
    if not behind:
        state = replace(state, membership=replace(state.membership, task=table.table.dataset.task))
    table.table.commit_copy_state(state, step)


def _is_unfed(table: WorkingDataset) -> bool:
    """Whether nothing was ever read for a table."""
    state = table.table.state.copy
    return state.membership.task is None and not table.is_behind and not state.books.totals


def _must_catch_up(table: WorkingDataset) -> bool:
    """Whether reading continued without a table that may be copied again."""
    return table.is_behind and not table.is_suspended


@dataclass(frozen=True, slots=True)
class _RefusedTable:
    """Why a table is refused, and until when; times in monotonic seconds."""

    error: PolynyaError
    again: float
    pause: float


class RefusedTables:
    """The tables that this process could not open or copy, by source table."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._refusals: dict[str, _RefusedTable] = {}

    def attempt(self, source: str, work: Callable[[], None]) -> bool:
        """Do the work of one table, unless it was refused just now; returns whether it was done.

        Raises what does not concern this table alone.
        """
        before = self._refusals.get(source)
        now = self._context.clock.monotonic()
        if before is not None and now < before.again:
            return False
        try:
            work()
        except Exception as error:
            failure = as_polynya(error)
            if (
                failure.retryable
                or isinstance(failure, TaskStoppedError)
                or not self._context.hooks.is_alive()
            ):
                raise
            pause = longer_pause(0.0 if before is None else before.pause)
            self._refusals[source] = _RefusedTable(
                self._context.explained(failure), now + pause, pause
            )
            return False
        return True

    def forget(self, sources: Collection[str]) -> None:
        """Forget the refusals of tables that were opened, copied and applied."""
        self._refusals = {
            name: refusal for name, refusal in self._refusals.items() if name not in sources
        }

    def accepts(self, source: str) -> bool:
        """Whether a table is not refused."""
        return source not in self._refusals

    @property
    def errors(self) -> list[PolynyaError]:
        """Why tables are refused, in the order of their names."""
        return [self._refusals[source].error for source in sorted(self._refusals)]

    def first_of(self, problems: Iterable[PolynyaError], subject: str) -> PolynyaError | None:
        """The first of several problems, for the unit; the others are reported here, once."""
        errors = list(problems)
        for number, error in enumerate(errors[1:], start=2):
            if self._context.is_news(f"{subject} trouble {number}", str(error)):
                self._context.sink(UnitFailed(subject=error.where or subject, error=error))
        return errors[0] if errors else None
