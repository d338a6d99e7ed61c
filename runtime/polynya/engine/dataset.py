"""A dataset at work: its open table, each step on it, and the event of each step.

`OpenTables` holds the tables and the ledger of one unit of work. Nobody else changes a table before
taking it over, so each table is opened once. After a failure nothing that is known of the tables
counts as valid, and all are opened again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TypeAlias

from polynya.engine.context import EngineContext
from polynya.engine.evolution import (
    apply_schema_changes,
    batch_columns,
    refuse_unknown_columns,
    suspension,
    types_that_need_a_rewrite,
)
from polynya.engine.ledger import ledger_dataset
from polynya.engine.mask_keys import mask_key
from polynya.engine.pending import apply_decision, pending_facts, reason_to_apply
from polynya.engine.policy import PendingFacts
from polynya.engine.scheduler import run_in_threads
from polynya.engine.unit import AGAIN_SOON, IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.formats.base import KnownTable
from polynya.formats.batch import DatasetBatch, FileProgress
from polynya.formats.files import Discovery
from polynya.lake.apply.apply import ApplyResult
from polynya.lake.copy.copy import CopyResult, copy_batch, missing
from polynya.lake.copy.mapping import Before, mapped_batch
from polynya.lake.copy.masks import withheld
from polynya.lake.fold.shape import Shape
from polynya.lake.read.catalog_views import publish_views
from polynya.lake.spark.catalog import views_stay
from polynya.lake.table.dataset import BeingAppliedError, DatasetTable
from polynya.lake.table.ownership import enter
from polynya.lake.table.retyping import retype
from polynya.lake.table.state import Reloading
from polynya.lake.table.suspension import (
    BadRecordError,
    Replayed,
    held_at,
    refuse_later_file,
    refuse_suspended,
    suspend,
)
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.evolution import SchemaChange
from polynya.model.config.settings import ApplyPolicy
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError, SuspendedError, TaskStoppedError
from polynya.model.types import DataType
from polynya.observe import engine as events
from polynya.observe.events import Event, StepProgress, under_way
from polynya.observe.streams import StreamLost
from polynya.observe.trace import span
from polynya.transform.rules import with_rules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkingDataset:
    """The table of one dataset in the hands of this process."""

    context: EngineContext
    table: DatasetTable

    @classmethod
    def open(cls, context: EngineContext, dataset: ResolvedDataset) -> WorkingDataset:
        """Open the table of a dataset, created when it does not exist. Takes nothing over yet."""
        table = DatasetTable.open(
            context.spark,
            dataset,
            context.owner,
            granted=context.epoch,
            may_create=context.hooks.may_create,
        )
        return cls.of(context, table)

    @classmethod
    def existing(cls, context: EngineContext, dataset: ResolvedDataset) -> WorkingDataset:
        """Open a table that exists."""
        table = DatasetTable.existing(context.spark, dataset, context.owner, granted=context.epoch)
        return cls.of(context, table)

    @classmethod
    def of(cls, context: EngineContext, table: DatasetTable) -> WorkingDataset:
        """An open table whose views follow its commits."""
        working = cls(context, table)
        table.before_pending = working._unsettle
        return working

    def copy_and_apply(
        self, policy: ApplyPolicy, time_slice: TimeSlice, copy_next: Callable[[], StepResult]
    ) -> StepResult:
        """Take one step: copy what has landed or, when all is copied, apply what is worth it.

        A dataset that is suspended, or that `copy_next` suspends, is still applied as far as it was
        copied; its SuspendedError is what is refused.
        """
        return self.apply_when_copied(self.copy_if_allowed(copy_next), policy, time_slice)

    def copy_if_allowed(self, copy_next: Callable[[], StepResult]) -> StepResult:
        """How a copy of landed files ended; a suspension, or a running apply, may prevent it."""
        if self.table.is_awaited:
            return AGAIN_SOON
        try:
            refuse_suspended(self.table)
            return copy_next()
        except SuspendedError as error:
            return StepResult(refused=error)
        except BeingAppliedError:
            # What was read is reread after the apply.
            return AGAIN_SOON

    @span("copy", dataset=attrgetter("name"))
    def copy(
        self,
        batch: DatasetBatch,
        *,
        began: float | None = None,
        live_files: Iterable[str] | None = None,
        replayed: Replayed | None = None,
        before: Callable[[str], DatasetBatch | None] | None = None,
        policy: ApplyPolicy | None = None,
    ) -> CopyResult:
        """Commit one batch and bring the views up to date; see `copy_batch`.

        Nothing else waits to be copied where `policy` is given: if it says that the table should be
        applied then, and that is a small step, one commit does both.

        `began` is when its first byte was read, in monotonic seconds; without it, now. Where a bad
        record holds the dataset up, what `before` reads of the files before that of the record is
        copied first.

        Raises SuspendedError or TaskStoppedError when a policy says that it may not be copied, and
        BeingAppliedError when it has to wait for the end of an apply.
        """
        try:
            return self._copy(batch, began, live_files, replayed, policy)
        except BadRecordError as bad:
            earlier = before(bad.file) if before is not None else None
            if earlier is not None:
                self.copy(earlier, began=began, live_files=live_files, before=before)
            with self.table.changing:
                raise held_at(self.table, bad) from None

    def _copy(
        self,
        batch: DatasetBatch,
        began: float | None,
        live_files: Iterable[str] | None,
        replayed: Replayed | None,
        policy: ApplyPolicy | None,
    ) -> CopyResult:
        clock = self.context.clock
        started = clock.monotonic() if began is None else began
        batch = self.map_columns(batch)
        if replayed is None:
            # Before the table gets any column of files that must wait.
            refuse_later_file(self.table, batch, clock.now())
        # Nothing that an apply commits meanwhile may come between what is decided here.
        with self.table.changing, self.views_following():
            was_pending = self.table.has_pending
            refuse_suspended(self.table)
            enter(self.table)
            batch = self.apply_schema_changes(batch)
            lost = missing(self.table.state.copy.position, batch)
            result = copy_batch(
                self.table,
                batch,
                self.context.applier,
                now=clock.now(),
                live_files=live_files,
                replayed=replayed,
                reason_to_apply=partial(self._reason_to_apply, policy),
            )
        # Where batches wait for an apply again and again, a settled text would last for one batch.
        self.publish(settle=not was_pending)
        folder = "" if batch.landed is None else batch.landed.folder
        for loss in lost:
            self.tell(StreamLost.of_landing(self.name, folder, loss))
        self.tell_copied(result, len(batch.files), clock.monotonic() - started)
        if result.applied is not None:
            self.tell_applied(result.applied)
        return result

    def _reason_to_apply(
        self, policy: ApplyPolicy | None, rows: int, size_bytes: int
    ) -> str | None:
        if policy is None or self.context.stop.is_set():
            return None
        return reason_to_apply(self.context, self.table, policy, rows, size_bytes)

    def map_columns(self, batch: DatasetBatch) -> DatasetBatch:
        """A batch as it was read with the columns of the table; see `mapped_batch`."""
        if self.table.dataset.withholds:
            batch = withheld(batch)
        if not self.table.dataset.mapping.is_set:
            return batch
        return mapped_batch(batch, self.reading, self._before, lambda: self.context.spark, mask_key)

    def apply_schema_changes(self, batch: DatasetBatch) -> DatasetBatch:
        """Apply the schema changes of a batch to the dataset; returns the batch in the new shape.

        Raises SuspendedError or TaskStoppedError when a policy says that nothing of it may be
        copied, and ConfigError when the settings name a column that no record has had.
        """
        refuse_unknown_columns(self.context, self.table, batch_columns(batch, self.table.dataset))
        batch, reshapes = apply_schema_changes(self.context, self.table, batch)
        if reshapes:
            self.publish()
        self.retype(types_that_need_a_rewrite(self.columns, batch.schema))
        return batch

    def retype(self, types: Mapping[str, DataType]) -> None:
        """Rewrite columns to types that the table cannot give them in place; see `retype`."""
        if not types:
            return
        before, began = self.columns, self.context.clock.monotonic()
        done = retype(self.table, types, self._publish)
        self.publish()
        seconds = round(self.context.clock.monotonic() - began, 3)
        self.tell(
            events.ColumnsRewritten(
                subject=self.name,
                columns={name: f"{before[name]} → {kind}" for name, kind in types.items()},
                rows=done.rows,
                size_bytes=done.size_bytes,
                seconds=seconds,
            )
        )

    @contextmanager
    def views_following(self) -> Iterator[None]:
        """Bring the views up to date after a step that changed columns, also if it is refused then.

        A view whose columns have other types than the table has cannot be read.
        """
        before = self.table.table.columns()
        refused: Exception | None = None
        try:
            yield
        except (BadRecordError, SuspendedError, TaskStoppedError) as error:
            refused = error
        if self.table.table.columns() != before:
            self.publish()
        if refused is not None:
            raise refused

    def suspend_new(self, source: str) -> None:
        """Suspend the dataset of a new source table until a decision."""
        change = SchemaChange("new_dataset", source, "suspend")
        suspend(self.table, suspension(change, source, self.context.clock.now()))

    def apply_when_copied(
        self, result: StepResult, policy: ApplyPolicy, time_slice: TimeSlice
    ) -> StepResult:
        """Apply if it is worth it when all is copied; `ended` is how copying ended."""
        if result.more:
            return result
        applied = IDLE if self.context.stop.is_set() else self.apply_if_worth_it(policy, time_slice)
        if applied is TOO_LONG:
            return TOO_LONG
        return replace(result, wait_seconds=applied.wait_seconds or result.wait_seconds)

    def apply_if_worth_it(self, policy: ApplyPolicy, time_slice: TimeSlice) -> StepResult:
        """Apply pending changes if the policy says so; `TOO_LONG` if it needs a long time slice."""
        decision = apply_decision(self.context, self.table, policy)
        if not decision.apply:
            return IDLE
        facts = pending_facts(self.table, self.context.clock.now())
        if time_slice.must_wait_for(facts.work_bytes):
            return TOO_LONG
        self.tell_applied(self._apply_timed(facts, decision.reason))
        self.publish(settle=True)
        return AGAIN_SOON

    def _apply_timed(self, facts: PendingFacts, reason: str) -> ApplyResult:
        """Apply, and report meanwhile how long that takes as far as it is known."""
        speeds, clock = self.context.memory.apply_speeds, self.context.clock
        progress = StepProgress(
            subject=self.name,
            step="applying",
            rows_left=facts.rows,
            left_seconds=speeds.seconds_for(self.name, facts.work_bytes),
        )
        with under_way(self.context.sink, progress):
            began = clock.monotonic()
            result = self.apply(reason)
            speeds.took(self.name, facts.work_bytes, clock.monotonic() - began)
            return result

    @span("apply", dataset=attrgetter("name"))
    def apply(self, reason: str, *, rebuild: bool = False) -> ApplyResult:
        """Apply all pending changes; see `Applier.apply`."""
        now = self.context.clock.now()
        return self.context.applier.apply(self.table, reason=reason, now=now, rebuild=rebuild)

    @span("publish", dataset=attrgetter("name"))
    def publish(self, *, settle: bool = False) -> None:
        """Create the changed views. In a new session all views count as changed.

        `settle`: they get their settled texts, if nothing is pending. Views for other engines are a
        copy that any later start can make. A failure to publish them is reported once and stops no
        data.
        """
        # A change that is copied meanwhile would not show in a settled text.
        with self.table.changing:
            may_settle = settle and self.table.owned and views_stay(self.context.spark)
            settled = False if self.table.has_pending else may_settle or None
            self._publish(self.table.shape(), settled=settled)

    def _unsettle(self, shape: Shape) -> None:
        """Give the views the texts that show pending changes."""
        if self.table.views_of is None or self.table.views_settled is not False:
            self._publish(shape)

    def _publish(self, shape: Shape, *, settled: bool | None = False) -> None:
        if not set(shape.data) - shape.hidden:
            # Of a stream only header columns are known so far: its first batch had no record.
            return
        others = self.context.hooks.other_dialects
        changed = publish_views(self.table, shape, others, settled=settled)
        if self.context.hooks.publish_views is None or not changed:
            return
        try:
            names = self.context.hooks.publish_views(self.table.dataset, shape)
        except PolynyaError as error:
            if self.context.is_news(f"{self.name} has views", error.message):
                self.tell(events.ViewsFailed(subject=self.name, error=error))
            return
        if names:
            self.tell(events.ViewsPublished(subject=self.name, views=tuple(names)))

    @property
    def name(self) -> str:
        """`schema.view`, as events and messages call it."""
        return self.table.dataset.relations.current

    @property
    def reading(self) -> ResolvedDataset:
        """The dataset as its next batch is read."""
        return self.table.reading

    @property
    def columns(self) -> dict[str, DataType]:
        """Every source column seen so far, with its type."""
        return self.table.known_schema()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the table was made with."""
        return self.table.known_keys()

    @property
    def known_table(self) -> KnownTable:
        """The facts that reading its files needs."""
        reading, schema = self.reading, self.columns
        if reading.mapping.is_set:
            schema = dict(self._before.source)
            reading = with_rules(reading, schema)
        return KnownTable(
            dataset=of_source(reading),
            schema=schema,
            keys=reading.mapping.of_source(self.keys),
            done={path: progress.records for path, progress in self.progress.items()},
            called=self.table.state.copy.membership.called,
            key_names=[tuple(names) for names in self.table.state.copy.columns.key_names],
            eras=self.table.state.copy.position.eras,
        )

    @property
    def _before(self) -> Before:
        return Before.of(self.reading, self.table.state.copy.columns)

    @property
    def progress(self) -> dict[str, FileProgress]:
        """How far each landed file was read."""
        return self.table.state.copy.position.files

    @property
    def is_suspended(self) -> bool:
        """Whether it waits for a decision."""
        return self.table.state.copy.decisions.suspended is not None

    @property
    def reloading(self) -> Reloading | None:
        """The reload that is under way."""
        return self.table.state.copy.reloading

    @property
    def is_behind(self) -> bool:
        """Whether the files of its task were read without it."""
        return self.table.state.copy.position.behind

    def report_discovery(self, discovery: Discovery) -> None:
        """Report what waits, and which files changed after they were copied.

        The new content of these is not read.
        """
        now = self.context.clock.monotonic()
        self.context.backlog.listed(self.name, discovery.files, now)
        for file in discovery.changed:
            # A lasting state is reported once.
            if self.context.is_news(f"{self.name} copied {file.path}", f"{file.size} {file.stamp}"):
                self.tell(
                    events.FileChanged(
                        subject=self.name,
                        file=file.path,
                        size_bytes=file.size,
                        copied_bytes=file.was,
                    )
                )

    def copying(self, discovery: Discovery) -> AbstractContextManager[None]:
        """Report during the block that files are read and copied, and how much is left."""
        paths = ", ".join(part.path for part in discovery.files[:20])
        log.debug("%s reads %d files: %s", self.name, len(discovery.files), paths)
        progress = StepProgress(
            subject=self.name,
            step="copying",
            files_left=len(discovery.files),
            left_bytes=discovery.size_bytes,
            left_seconds=self.context.backlog.seconds_left(self.name),
        )
        return under_way(self.context.sink, progress)

    def tell(self, event: Event) -> None:
        """Emit an event of this dataset."""
        self.context.sink(event)

    def tell_copied(self, result: CopyResult, files: int, seconds: float) -> None:
        """Report the commit of a batch of files, with its counts."""
        clock, newest = self.context.clock, self.table.state.copy.position.newest_event
        waited = self.context.backlog.waited(self.name, clock.monotonic())
        age = None
        # A batch without events, or with older ones only, tells nothing of the delay.
        if newest is not None and self.context.is_news(f"newest event {self.name}", newest):
            age = (clock.now() - datetime.fromisoformat(newest)).total_seconds()
        self.tell(
            events.BatchCopied(
                subject=self.name,
                rows_in=result.rows_in,
                rows_out=result.rows_out,
                rows_filtered=result.rows_filtered,
                rows_quarantined=result.rows_quarantined,
                files=files,
                seconds=round(seconds, 3),
                waited_seconds=None if waited is None else round(waited, 3),
                event_age_seconds=None if age is None else round(age, 3),
            )
        )

    def tell_applied(self, result: ApplyResult) -> None:
        """Report the commit of an apply, and what it did."""
        self.tell(
            events.DatasetApplied(
                subject=self.name,
                reason=result.reason,
                seconds=result.seconds,
                rows=result.figures.counts(),
            )
        )


#: Does the work of one source table, or refuses to, or notes that it cannot be done.
Attempt: TypeAlias = Callable[[str, Callable[[], None]], object]


def _always(_source: str, work: Callable[[], None]) -> None:
    work()


class OpenTables:
    """The open tables of a native dataset, or of a task that finds its datasets in the data."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._open: dict[str, WorkingDataset] = {}
        self._untrusted: frozenset[str] = frozenset()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """One round of work. After a failure these tables are no longer trusted.

        At its start, a suspended dataset is opened again, since an operator may have resumed it; so
        is one whose apply failed.
        """
        try:
            for name, table in self._open.items():
                if name in self._untrusted and table.table.is_applied:
                    # To open it again would take it from the apply that is at work.
                    with table.table.changing:
                        table.table.reload()
                elif name in self._untrusted or _must_be_reopened(table):
                    self._open[name] = self._opened(table.table.dataset)
            self._untrusted = frozenset()
            yield
        except BaseException:
            self._open = {
                name: table for name, table in self._open.items() if table.table.is_applied
            }
            self._untrusted = frozenset(self._open)
            raise

    def of(self, dataset: ResolvedDataset) -> WorkingDataset:
        """The table of a dataset.

        Raises ConflictError while the process that took the table over still commits to it.
        """
        name = dataset.relations.internal
        if name not in self._open:
            self._open[name] = self._opened(dataset)
        return self._open[name]

    @property
    def ledger(self) -> WorkingDataset:
        """The position of the whole task."""
        return self.of(ledger_dataset(self._task))

    @property
    def by_source(self) -> dict[str, WorkingDataset]:
        """The open tables of datasets, by source table."""
        tables = ((table.table.dataset.landing.source, table) for table in self._open.values())
        return {source: table for source, table in tables if source is not None}

    def open_new(
        self,
        routes: Mapping[str, ResolvedDataset],
        suspended: Collection[str] = (),
        attempt: Attempt = _always,
    ) -> list[WorkingDataset]:
        """Open the tables of source tables that are new, and return them.

        `suspended` are those that wait for a decision from their first moment on. `attempt` opens
        one, unless it may not or cannot be opened.
        """

        def opened(source: str) -> None:
            attempt(
                source, lambda: self._open_and_suspend(routes[source], suspends=source in suspended)
            )

        new = sorted(set(routes) - set(self.by_source))
        run_in_threads(opened, new)
        tables = self.by_source
        return [tables[source] for source in new if source in tables]

    def _open_and_suspend(self, dataset: ResolvedDataset, *, suspends: bool) -> None:
        table = self.of(dataset)
        source = table.table.dataset.landing.source
        if suspends and source is not None:
            table.suspend_new(source)

    def drop(self, source: str) -> None:
        """Forget one table; it is opened again when it is needed again."""
        self._open = {
            name: table
            for name, table in self._open.items()
            if table.table.dataset.landing.source != source
        }

    def remember(
        self,
        sources: Iterable[str],
        unrouted: DatasetBatch,
        live_files: Iterable[str],
        refused: Iterable[str] | None = None,
    ) -> None:
        """Commit to the ledger which tables there are, and what was read that belongs to none.

        `refused` are the tables without which the files were read; None: those of before.
        """
        table = self.ledger.table
        before = table.state.copy
        after = before.with_members({*before.membership.members, *sources}, refused)
        if after.membership == before.membership and not unrouted.files:
            return
        table.state = replace(table.state, copy=after)
        self.ledger.copy(unrouted, live_files=live_files)

    def _opened(self, dataset: ResolvedDataset) -> WorkingDataset:
        """Open a table, with the views that it should have.

        The process before may have been killed between a commit and its views. If it was killed
        between a change of columns and the commit of the state, the next batch makes both.
        """
        working = WorkingDataset.open(self._context, dataset)
        if self._context.epoch is None:
            # With a grant a table is this owner's, or opening it has just failed.
            self._context.memory.takeover_backoff.wait_for_quiet(
                working.table, self._context.clock.monotonic()
            )
        if set(working.table.shape().data) <= working.table.table.column_names():
            working.publish()
        return working


def _must_be_reopened(working: WorkingDataset) -> bool:
    return working.table.distrusted or (working.is_suspended and not working.table.is_applied)
