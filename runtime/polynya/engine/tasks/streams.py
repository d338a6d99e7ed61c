"""Landing of streams: one unit per landed table, with its backlog, backpressure and expiry.

The landing zone alone holds what has landed, and how far. So a unit may be killed between any two
steps, and two processes may land one table: of two batches with one number only one is written.

Landing waits while tables have not copied too many landed bytes (`max_uncopied`). A run that ends
by itself does not wait: it lands what the source had at its start, which is finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias, cast

from polynya.engine.backlog import LandedReader, first_unread_of, tables_without
from polynya.engine.context import EngineContext
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice, Unit
from polynya.formats.landed import batch_number
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.errors import PolynyaError
from polynya.model.headers import StreamSource
from polynya.observe.events import Event
from polynya.observe.streams import (
    StreamExpired,
    StreamIgnored,
    StreamKept,
    StreamLanded,
    StreamLost,
    StreamWaiting,
)
from polynya.store.object_store import ObjectInfo
from polynya.streams.landed_status import Expiry, behind_seconds, described
from polynya.streams.landing import (
    Judged,
    LandedBatch,
    LandedLog,
    StreamLander,
    judge,
    landed_tables,
    waits,
)
from polynya.streams.registry import source_of
from polynya.streams.source import BEHIND_UNITS, MessageSource, Position

#: Seconds between two checks for landed batches that are too old.
EXPIRY_CHECK_SECONDS: Final = 300.0
#: Seconds between two checks of what was copied while landing waits.
UNCOPIED_CHECK_SECONDS: Final = 5.0
#: Seconds between two listings of the streams.
STREAM_LISTING_SECONDS: Final = 30.0
#: A step that reads at least this many records counts as long.
LONG_STEP_RECORDS: Final = 50_000
#: The tables that read a folder of landed batches; None where they are unknown.
Readers: TypeAlias = Callable[[], tuple[LandedReader, ...] | None]


@dataclass(slots=True)
class _StreamsFound:
    """The streams of a landing: those that it lands, and those that it ever landed."""

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known: frozenset[str] | None = None
    looked_at: float | None = None
    refused: PolynyaError | None = None


class LandingTask:
    """Finds the streams of one task. Each landed table is a unit of work."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        source: MessageSource | None = None,
    ) -> None:
        self._context, self._task = context, task
        self._source = source or source_of(
            context.spark, task, context.access, context.clock, context.landing
        )
        self._seen = _StreamsFound()
        self._logs: dict[str, LandedLog] = {}
        self._units: dict[str, Unit] = {}

    def step(self, time_slice: TimeSlice) -> StepResult:
        """List the streams; each table is landed by a unit of its own."""
        now, last = self._context.clock.monotonic(), self._seen.looked_at
        if not time_slice.at_once and last is not None and now < last + STREAM_LISTING_SECONDS:
            return StepResult(refused=self._seen.refused)
        self._find()
        self._seen.looked_at = now
        # In a run that ends, what depends on the records of a table begins when that has ended.
        later = self._dependents(*self._seen.tables) if time_slice.at_once else ()
        ready = [self._units[table] for table in sorted(self._seen.tables)]
        return StepResult(
            ready_units=tuple(unit for unit in ready if unit not in later),
            refused=self._seen.refused,
        )

    def _dependents(self, *tables: str) -> tuple[Unit, ...]:
        """The units that read what depends on the records of some tables."""
        names = {name for table in tables for name in self._task.dependents(table)}
        return tuple(self._units[name] for name in sorted(names) if name in self._units)

    def _find(self) -> None:
        streams_found = self._source.find()
        known_streams = (
            self._known(streams_found.tables) if self._seen.known is None else self._seen.known
        )
        policy = self._task.on_new_topic
        judged = judge(streams_found.tables, known_streams, policy, self._source.is_asked_for)
        if known_streams is None and policy != "apply":
            self._write_down(judged)
        self._tell_left_out(judged)
        waiting = waits(judged, policy, f"task {self._task.name}")
        taken = frozenset(stream for streams in judged.tables.values() for stream in streams)
        self._seen.known = taken | (known_streams or frozenset())
        for table in self._units.keys() - judged.tables.keys():
            # Nobody lands it now, so its backlog is not work.
            name, now = self._units[table].name, self._context.clock.monotonic()
            self._context.backlog.beyond(name, 0, now)
        self._seen.tables = judged.tables
        self._seen.refused = waiting or streams_found.refused
        for table in judged.tables:
            if table not in self._units:
                name = f"{self._task.name}/{table}"
                step = partial(self._step, table, self._landed(table, name))
                self._units[table] = Unit(name, self._task.name, step)
        if waiting is not None and policy == "stop":
            raise waiting

    def _known(self, tables: Mapping[str, tuple[str, ...]]) -> frozenset[str] | None:
        """The streams that were landed before this process; None when no process has listed them.

        The first listing records all its streams before anything is read, so it is not finished as
        long as no table has a second batch.
        """
        landed = landed_tables(self._context.landing, self._task.place)
        if max(landed.values(), default=0) < 2:
            return None
        streams: frozenset[str] = frozenset()
        for table in tables:
            newest = self._log(table).newest() if table in landed else None
            streams |= frozenset() if newest is None else self._source.known(newest.end)
        return streams

    def _write_down(self, judged: Judged) -> None:
        """Land a batch without records for each table: later streams are new ones."""
        for table, streams in judged.tables.items():
            self._lander(table).write_down(streams, self._context.clock.now())

    def _tell_left_out(self, judged: Judged) -> None:
        for stream in judged.ignored:
            if self._context.is_news(f"left out {self._task.name} {stream}", "ignored"):
                event = StreamIgnored(subject=self._task.name, task=self._task.name, stream=stream)
                self._context.sink(event)

    def _log(self, table: str) -> LandedLog:
        open_log = self._logs.get(table)
        if open_log is None:
            log = LandedLog(self._context.landing, self._task.place, table)
            open_log = self._logs[table] = log
        return open_log

    def _lander(self, table: str) -> StreamLander:
        return StreamLander(self._task, self._source, self._log(table))

    def _landed(self, table: str, name: str) -> LandedTable:
        lander, log = self._lander(table), self._log(table)
        return LandedTable(self._context, self._task, name, lander, log)

    def _step(self, table: str, landed: LandedTable, time_slice: TimeSlice) -> StepResult:
        result = landed.step(self._seen.tables.get(table, ()), time_slice)
        if result.more if time_slice.at_once else not result.landed:
            return result
        return replace(result, ready_units=(*result.ready_units, *self._dependents(table)))


class LandedTable:
    """Lands one table: a batch in each interval, and at once while the source has more."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        lander: StreamLander,
        log: LandedLog,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._lander = lander
        readers = partial(context.landed_readers.of, log.folder)
        self._expiry = LandedExpiry(context, task, name, log, readers)
        self._room = LandingBackpressure(context, task, name, log, readers)
        self._due: float | None = None
        self._backlog = StreamBacklog(context, task, name)

    def step(self, streams: tuple[str, ...], time_slice: TimeSlice) -> StepResult:
        """Land the next batch, if it is due."""
        began = self._context.clock.monotonic()
        if not time_slice.at_once and self._due is not None and began < self._due:
            return StepResult(wait_seconds=self._due - began)
        if not time_slice.at_once and self._room.is_full(began):
            return self._wait(began, time_slice)
        wanted = self._lander.decide(streams, once=time_slice.at_once)
        self._backlog.decided(wanted.records, wanted.behind, began)
        if wanted.is_nothing:
            self._backlog.read_to(wanted.end, began)
            return self._wait(began, time_slice)
        if wanted.records >= LONG_STEP_RECORDS and not time_slice.long:
            return TOO_LONG
        landed = self._lander.land(wanted, self._context.clock.now())
        if landed is None:
            # Another process landed this batch: continue after it.
            return replace(time_slice.more, landed=True)
        put_at = self._context.clock.monotonic()
        counts = landed.footer.counts
        self._room.landed(landed.object_bytes)
        read = StreamBatch(counts.records, counts.bytes, landed.footer.end, landed.behind)
        self._backlog.done(read, began, put_at)
        self._tell(landed, put_at - began)
        result = (
            time_slice.more
            if time_slice.at_once or landed.behind
            else self._wait(began, time_slice)
        )
        return replace(result, landed=True)

    def _wait(self, began: float, time_slice: TimeSlice) -> StepResult:
        """Nothing is left for now: the next batch is due an interval after this one began."""
        self._expiry.remove_expired(began)
        if time_slice.at_once:
            return IDLE
        interval = self._task.interval.total_seconds()
        self._due = began + interval
        return StepResult(wait_seconds=max(0.0, self._due - self._context.clock.monotonic()))

    def _tell(self, landed: LandedBatch, seconds: float) -> None:
        footer = landed.footer
        for lost in footer.lost:
            self._send(
                StreamLost(
                    subject=self._name, task=self._task.name, at=lost.at, begin=lost.begin,
                    end=lost.end, reason=lost.why,
                )
            )  # fmt: skip
        self._send(
            StreamLanded(
                subject=self._name,
                task=self._task.name,
                number=footer.number,
                records=footer.counts.records,
                bytes=footer.counts.bytes,
                object_bytes=landed.object_bytes,
                lost_records=footer.counts.lost,
                behind=landed.behind,
                unit=BEHIND_UNITS[footer.source],
                seconds=seconds,
            )
        )

    def _send(self, event: Event) -> None:
        self._context.sink(event)


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A batch that was read: its records and bytes, the position after it, and what is beyond."""

    records: int
    size_bytes: int
    end: Position
    behind: int


class StreamBacklog:
    """Updated at each step of a landed table, or of a table that reads its stream directly.

    Kafka counts its records. Other sources report only that there is more: at least a batch.
    """

    def __init__(self, context: EngineContext, landing: StreamingLanding, name: str) -> None:
        self._backlog, self._name, self._clock = context.backlog, name, context.clock
        self._kind: StreamSource = cast("StreamSource", landing.source.chosen[0])
        self._counts = landing.source.kafka is not None
        self._batch_records = 0

    def decided(self, records: int, behind: int, now: float) -> None:
        """`records` are read next, and `behind` come after them; `now` in seconds."""
        self._beyond(records, behind, now, None)

    def read_to(self, position: Position, now: float) -> None:
        """The source had nothing beyond a position when it was asked, at or after `now`."""
        self._backlog.read_to(self._name, position, now)

    def done(self, read: StreamBatch, began: float, now: float) -> None:
        """A batch was read, in the time from `began` to `now`, both monotonic."""
        self._batch_records = read.records
        self._backlog.landed(self._name, read.records, read.size_bytes, now - began)
        position = described(self._kind, read.end)
        self._beyond(0, read.behind, now, behind_seconds(position, self._clock.now()))
        if not read.behind:
            self.read_to(read.end, began)

    def _beyond(self, records: int, behind: int, now: float, seconds: float | None) -> None:
        more = behind if self._counts else (behind > 0) * self._batch_records
        self._backlog.beyond(self._name, records + more, now, seconds)


@dataclass(frozen=True, slots=True)
class UncopiedBytes:
    """Bytes of landed batches that some table has not copied, and the tables that lack the first.

    Where the tables are unknown, or none reads the stream, nothing is uncopied, so there is nothing
    to wait for.
    """

    size_bytes: int = 0
    tables: tuple[str, ...] = ()


def uncopied(
    readers: tuple[LandedReader, ...] | None, batches: Iterable[ObjectInfo]
) -> UncopiedBytes:
    """What tables have not copied of the batches of a folder."""
    first = None if readers is None else first_unread_of(readers)
    if first is None:
        return UncopiedBytes()
    size = sum(batch.size for batch in batches if (batch_number(batch.path) or 0) >= first)
    return UncopiedBytes(size, tables_without(readers, first))


def why_landing_waits(lacking: UncopiedBytes, most: int) -> str | None:
    """Why landing waits, None when it continues; sizes in bytes."""
    if lacking.size_bytes < most:
        return None
    return f"{lacking.size_bytes:,} landed bytes that they lack reached {most:,}"


class LandingBackpressure:
    """Decides whether landing waits; reads the tables only when the limit may be reached."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        log: LandedLog,
        readers: Readers,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._log, self._readers = log, readers
        #: Upper bound of the uncopied bytes; unknown for batches that landed before this process.
        self._at_most = math.inf
        self._full = False
        self._listed_at: float | None = None

    def landed(self, size_bytes: int) -> None:
        """A batch was written."""
        self._at_most += size_bytes

    def is_full(self, now: float) -> bool:
        """Whether landing waits; `now` in monotonic seconds. The reason is reported once."""
        most, last = self._task.max_uncopied, self._listed_at
        if most == "any" or self._at_most < most:
            return False
        if self._full and last is not None and now < last + UNCOPIED_CHECK_SECONDS:
            return True
        self._listed_at = now
        batches = list(self._log.batches())
        self._at_most = sum(batch.size for batch in batches)
        lacking = UncopiedBytes()
        if self._at_most >= most:
            # Otherwise no table can lack this much, and none is read.
            lacking = uncopied(self._readers(), batches)
            self._at_most = lacking.size_bytes
        why = why_landing_waits(lacking, most)
        self._full = why is not None
        if self._context.is_news(f"{self._name} has room", "no" if why else "yes") and why:
            self._context.sink(
                StreamWaiting(
                    subject=self._name,
                    task=self._task.name,
                    uncopied_bytes=lacking.size_bytes,
                    reason=why,
                    tables=lacking.tables,
                )
            )
        return self._full


class LandedExpiry:
    """Removes landed batches by `folder_retention` of the task, at intervals."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        log: LandedLog,
        readers: Readers,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._readers = readers
        keep, unread = task.folder_retention.keep, task.folder_retention.keep_unread
        self._expiry = None if keep == "keep" else Expiry(log, keep, unread)
        self._listed_at: float | None = None

    def remove_expired(self, began: float) -> None:
        """Remove expired batches, if it is time; `began` in monotonic seconds."""
        last = self._listed_at
        if self._expiry is None or (last is not None and began < last + EXPIRY_CHECK_SECONDS):
            return
        self._listed_at = began
        looked_up: list[tuple[LandedReader, ...] | None] = []

        def first_unread() -> int | None:
            looked_up.append(self._readers())
            return first_unread_of(looked_up[0])

        expired = self._expiry.expire(self._context.clock.now(), first_unread)
        if expired.batches:
            self._context.sink(
                StreamExpired(
                    subject=self._name,
                    task=self._task.name,
                    files=expired.batches,
                    unread_files=expired.unread,
                )
            )
        self._tell_kept(expired.kept, looked_up[0] if looked_up else ())

    def _tell_kept(self, number: int | None, readers: tuple[LandedReader, ...] | None) -> None:
        """Report once that batches stay because tables have not copied them."""
        late = () if number is None else tables_without(readers, number)
        report = "nothing" if number is None else f"kept {' '.join(late)}"
        if self._context.is_news(f"{self._name} keeps", report) and number is not None:
            event = StreamKept(subject=self._name, task=self._task.name, number=number, tables=late)
            self._context.sink(event)
