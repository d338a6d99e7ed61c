"""A streaming landing: finds its streams, and lands each table by a unit of its own.

What was landed, and how far, is in the landing zone alone. So a unit may be killed between any two
steps, and two processes may land one table: of two batches with one number one is put.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from polynya.engine.tasks.landed_expiry import LandedExpiry
from polynya.engine.tasks.landed_room import LandedRoom
from polynya.engine.tasks.stream_backlog import ReadBatch, StreamBacklog
from polynya.engine.work.context import EngineContext
from polynya.engine.work.turns.unit import IDLE, TOO_LONG, Ended, Turn, Unit
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.errors import PolynyaError
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded, StreamLeftOut, StreamLost
from polynya.streaming.landing.arrivals import Judged, judge, waits
from polynya.streaming.landing.log import LandedLog, landed_tables
from polynya.streaming.landing.step import Landed, Lander
from polynya.streaming.registry import source_of
from polynya.streaming.source import BEHIND_UNITS, Source

#: Seconds between two looks which streams there are.
LOOK_SECONDS: Final = 30.0
#: A step that reads at least so many records counts as long.
LONG_RECORDS: Final = 50_000


@dataclass(slots=True)
class _Seen:
    """What a landing knows of its streams: those that it takes, and those that it ever took."""

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
        source: Source | None = None,
    ) -> None:
        self._context, self._task = context, task
        self._source = source or source_of(context.spark, task, context.access, context.clock)
        self._seen = _Seen()
        self._logs: dict[str, LandedLog] = {}
        self._units: dict[str, Unit] = {}

    def step(self, turn: Turn) -> Ended:
        """Look which streams there are; each table is landed by a unit of its own."""
        now, last = self._context.clock.monotonic(), self._seen.looked_at
        if not turn.at_once and last is not None and now < last + LOOK_SECONDS:
            return Ended(refused=self._seen.refused)
        self._find()
        self._seen.looked_at = now
        return Ended(
            found=tuple(self._units[table] for table in sorted(self._seen.tables)),
            refused=self._seen.refused,
        )

    def _find(self) -> None:
        found = self._source.find()
        known = self._known(found.tables) if self._seen.known is None else self._seen.known
        policy = self._task.on_new_topic
        judged = judge(found.tables, known, policy, self._source.is_asked_for)
        if known is None and policy != "apply":
            self._write_down(judged)
        self._tell_left_out(judged)
        waiting = waits(judged, policy, f"task {self._task.name}")
        taken = frozenset(one for streams in judged.tables.values() for one in streams)
        self._seen.known = taken | (known or frozenset())
        for table in self._units.keys() - judged.tables.keys():
            # Nobody lands it now: what it had is no work.
            name, now = self._units[table].name, self._context.clock.monotonic()
            self._context.backlog.beyond(name, 0, now)
        self._seen.tables = judged.tables
        self._seen.refused = waiting or found.refused
        for table in judged.tables:
            if table not in self._units:
                name = f"{self._task.name}/{table}"
                step = partial(self._step, table, self._landed(table, name))
                self._units[table] = Unit(name, self._task.name, step)
        if waiting is not None and policy == "stop":
            raise waiting

    def _known(self, found: Mapping[str, tuple[str, ...]]) -> frozenset[str] | None:
        """The streams that were landed before this process; None when its first look is the first.

        A first look writes down all its streams before anything is read, so it was not finished as
        long as no table has a second batch.
        """
        landed = landed_tables(self._context.landing, self._task.place)
        if max(landed.values(), default=0) < 2:
            return None
        known: frozenset[str] = frozenset()
        for table in found:
            newest = self._log(table).newest() if table in landed else None
            known |= frozenset() if newest is None else self._source.known(newest.end)
        return known

    def _write_down(self, judged: Judged) -> None:
        """Land a batch without records for each table: later streams are new ones."""
        for table, streams in judged.tables.items():
            self._lander(table).write_down(streams, self._context.clock.now())

    def _tell_left_out(self, judged: Judged) -> None:
        for stream in judged.ignored:
            if self._context.is_news(f"left out {self._task.name} {stream}", "ignored"):
                event = StreamLeftOut(subject=self._task.name, task=self._task.name, stream=stream)
                self._context.sink(event)

    def _log(self, table: str) -> LandedLog:
        known = self._logs.get(table)
        if known is None:
            log = LandedLog(self._context.landing, self._task.place, table)
            known = self._logs[table] = log
        return known

    def _lander(self, table: str) -> Lander:
        return Lander(self._task, self._source, self._log(table))

    def _landed(self, table: str, name: str) -> LandedTable:
        lander, log = self._lander(table), self._log(table)
        return LandedTable(self._context, self._task, name, lander, log)

    def _step(self, table: str, landed: LandedTable, turn: Turn) -> Ended:
        return landed.step(self._seen.tables.get(table, ()), turn)


class LandedTable:
    """Lands one table: a batch in each interval, and at once while the source has more."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        lander: Lander,
        log: LandedLog,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._lander = lander
        readers = partial(context.landed_readers.of, log.folder)
        self._expiry = LandedExpiry(context, task, name, log, readers)
        self._room = LandedRoom(context, task, name, log, readers)
        self._due: float | None = None
        self._backlog = StreamBacklog(context, task, name)

    def step(self, streams: tuple[str, ...], turn: Turn) -> Ended:
        """Land the next batch, when it is time."""
        began = self._context.clock.monotonic()
        if not turn.at_once and self._due is not None and began < self._due:
            return Ended(look_again=self._due - began)
        if not turn.at_once and self._room.is_full(began):
            return self._wait(began, turn)
        wanted = self._lander.decide(streams, once=turn.at_once)
        self._backlog.decided(wanted.records, wanted.behind, began)
        if wanted.is_nothing:
            return self._wait(began, turn)
        if wanted.records >= LONG_RECORDS and not turn.long:
            return TOO_LONG
        landed = self._lander.land(wanted, self._context.clock.now())
        if landed is None:
            # Another process landed this batch: go on after it.
            return replace(turn.more, landed=True)
        put_at = self._context.clock.monotonic()
        counts = landed.footer.counts
        self._room.landed(landed.object_bytes)
        read = ReadBatch(counts.records, counts.bytes, landed.footer.end, landed.behind)
        self._backlog.done(read, began, put_at)
        self._tell(landed, put_at - began)
        ended = turn.more if turn.at_once or landed.behind else self._wait(began, turn)
        return replace(ended, landed=True)

    def _wait(self, began: float, turn: Turn) -> Ended:
        """Nothing is left for now: the next batch is due an interval after this one began."""
        self._expiry.look(began)
        if turn.at_once:
            return IDLE
        interval = self._task.interval.total_seconds()
        self._due = began + interval
        return Ended(look_again=max(0.0, self._due - self._context.clock.monotonic()))

    def _tell(self, landed: Landed, seconds: float) -> None:
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
