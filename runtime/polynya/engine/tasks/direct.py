"""A table that reads its stream directly: rows and the source's position are one commit.

There is no landed batch in between. After a kill before the commit the same records are read again;
a kill after it leaves the position next to the rows. A second process takes the table over, and the
first one's commits are refused from then on.
"""

from __future__ import annotations

from typing import Final

from polynya.engine.context import EngineContext
from polynya.engine.dataset import OpenTables, WorkingDataset
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.tasks.storage import ApplyUnit
from polynya.engine.tasks.streams import (
    LONG_STEP_RECORDS,
    STREAM_LISTING_SECONDS,
    StreamBacklog,
    StreamBatch,
)
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.lake.table.ownership import enter, refuse_landed
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.stream_landing import DirectTask
from polynya.observe import engine as events
from polynya.observe.streams import StreamIgnored, StreamLost
from polynya.streams.direct import DirectBatch, DirectReader, FoundStreams, NextRead, streams_of
from polynya.streams.registry import source_of
from polynya.streams.source import MessageSource

_NO_STREAMS: Final = FoundStreams(())


class DirectUnit:
    """Brings one dataset up to date with its stream: a batch in each interval, more while behind.

    The interval is that of the landing, or `batch.freshness` where that is longer.
    """

    def __init__(
        self,
        context: EngineContext,
        task: DirectTask,
        dataset: ResolvedDataset,
        source: MessageSource | None = None,
    ) -> None:
        self._context, self._task, self._dataset = context, task, dataset
        self._source = source or source_of(context.spark, task.reads, context.access, context.clock)
        self._reader = DirectReader(task, self._source)
        self._tables = OpenTables(context, task)
        self._applies = ApplyUnit(task, dataset)
        self._maintenance = MaintenanceUnit(dataset)
        name = f"{task.reads.name}/{task.reads_table}"
        self._backlog = StreamBacklog(context, task.reads, name)
        self._streams = _NO_STREAMS
        self._listed_at: float | None = None
        self._due: float | None = None
        self._interval = max(task.reads.interval, task.batch.freshness).total_seconds()

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Copy the next batch; when all is copied apply if it is worth it."""
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            result = self._applies.copy_or_wait(
                table, time_slice, lambda: self._copy_next(table, time_slice)
            )
            return self._maintenance.request_if_due(
                table, self._applies.apply_or_request(table, time_slice, result)
            )

    def _copy_next(self, table: WorkingDataset, time_slice: TimeSlice) -> StepResult:
        began = self._context.clock.monotonic()
        if not time_slice.at_once and self._due is not None and began < self._due:
            return StepResult(wait_seconds=self._due - began, refused=self._streams.refused)
        refuse_landed(table.table)
        if table.reloading is not None:
            return self._wait_for_reload(table)
        with table.table.changing:
            # From here on no other process moves the position.
            enter(table.table)
        position = table.table.state.copy.position.stream
        self._reader.refuse_other(position)
        self._list_streams(table, began)
        if not self._streams.taken:
            # Nobody reads it now, so its backlog is not work.
            self._backlog.decided(0, 0, began)
            return self._wait(began, time_slice)
        wanted = self._reader.decide(self._streams.taken, position, once=time_slice.at_once)
        self._backlog.decided(wanted.next.records, wanted.next.behind, began)
        if wanted.is_nothing:
            self._backlog.read_to(wanted.next.end, began)
            return self._wait(began, time_slice)
        if wanted.next.records >= LONG_STEP_RECORDS and not time_slice.long:
            return TOO_LONG
        read = self._copy(table, wanted, began)
        return (
            time_slice.more if time_slice.at_once or read.behind else self._wait(began, time_slice)
        )

    def _copy(self, table: WorkingDataset, wanted: NextRead, began: float) -> DirectBatch:
        read = self._reader.read(wanted, table.known_table, self._context.clock.now())
        table.copy(read.batch, began=began)
        now = self._context.clock.monotonic()
        self._backlog.done(
            StreamBatch(read.records, read.size_bytes, read.end, read.behind), began, now
        )
        for lost in read.lost:
            table.tell(
                StreamLost(
                    subject=table.name, task=self._task.name, at=lost.at, begin=lost.begin,
                    end=lost.end, reason=lost.why,
                )
            )  # fmt: skip
        return read

    def _list_streams(self, table: WorkingDataset, now: float) -> None:
        """Look which streams there are, now and then."""
        if self._listed_at is not None and now < self._listed_at + STREAM_LISTING_SECONDS:
            return
        position = table.table.state.copy.position.stream
        self._streams = streams_of(self._task, self._source, position)
        self._listed_at = now
        for stream in self._streams.ignored:
            if self._context.is_news(f"left out {table.name} {stream}", "ignored"):
                event = StreamIgnored(subject=table.name, task=self._task.name, stream=stream)
                table.tell(event)

    def _wait(self, began: float, time_slice: TimeSlice) -> StepResult:
        """Nothing is left for now: the next batch is due an interval after this one began."""
        if time_slice.at_once:
            return StepResult(refused=self._streams.refused)
        self._due = began + self._interval
        left = max(0.0, self._due - self._context.clock.monotonic())
        return StepResult(wait_seconds=left, refused=self._streams.refused)

    def _wait_for_reload(self, table: WorkingDataset) -> StepResult:
        """Only the reload reads on, which takes the position with it."""
        if self._context.is_news(f"{table.name} leaves a load", "direct"):
            table.tell(events.ReloadWaiting(subject=table.name, files=0))
        return IDLE
