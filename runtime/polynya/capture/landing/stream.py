"""From records of a stream to the events that land, and the position after them. Pure.

A connector restarts exactly only at certain places. Debezium's for PostgreSQL does so at the end of
a transaction: from an offset inside one it counts the order of its events from the start again, and
skips all events with the LSN of the offset, such as the rows of one COPY. So the position is the
end of the last whole transaction, plus the LSN up to which the next one has landed; the events of
one LSN land together.

A landed batch costs the landing zone an object and each table a file to read, so a busy stream
lands about once in `seconds`. The first events after a pause land at once. Time counts from the end
of the previous put, so a slow landing zone gets larger batches instead of a queue.

The fold cannot drop repeated events of a table without key, so each of its rows has to land exactly
once. Until such a table is loaded, none of its events land. Its load lands as a whole, with all
events missing from its view, and afterwards only events missing from the view land. The
transactions in a view are the first ones of the stream, up to a point. PostgreSQL identifies them
by their numbers, which each event carries, and by the end of the last of them in the log. A binlog
has them in the order of their positions.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from polynya.capture.landing.position import (
    CapturePosition,
    LogPosition,
    Passed,
    ResumePoint,
    TableProgress,
    position_of_offset,
    position_of_rows,
)
from polynya.capture.landing.statements import filled_by, replaced_by
from polynya.capture.source import Offset, SeenTransactions, SourceTable
from polynya.formats.debezium.captured import EventSchema

Kind: TypeAlias = Literal["row", "statement", "end"]


def _no_record() -> None:
    """Of an event that nobody confirms."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """A record of the stream.

    Attributes:
        kind: a change of a `row` (or the truncation of a table), a `statement` that changed a
            table, or the `end` of a transaction, which does not land.
        line: as it lands, with its end.
        offset: the connector's offset after it. It costs something: few are asked.
        table: of a row.
        shape: schema of a row's envelope; one object for all events that have it.
        record: what the engine needs to confirm it to the database. It costs something, too.
        is_awaited: of an end: somebody waits until it is known how far the stream was read.
    """

    kind: Kind
    line: bytes
    offset: Callable[[], Offset]
    table: str | None = None
    shape: Mapping[str, Any] | None = None
    record: Callable[[], Any] = _no_record
    is_awaited: bool = False


TakeEvents: TypeAlias = Callable[[Sequence[StreamEvent]], Any]
"""Lands events; returns the record whose offset may be confirmed to the database, or None."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What lands of the records so far, and the position after it.

    `last` is the record whose offset may be confirmed to the connector, None: none.
    """

    events: Sequence[StreamEvent]
    position: ResumePoint
    last: Any


#: Connectors that restart exactly at the ends of transactions only; others do at each event.
_BY_TRANSACTION: Final = frozenset({"postgresql"})


def cutter_of(connector: str, position: ResumePoint) -> Cutter:
    """What decides for a connector, from a position on."""
    if connector in _BY_TRANSACTION:
        return TransactionCutter(position)
    return Cutter(position)


@dataclass(slots=True)
class Cutter:
    """For connectors that restart exactly after each event."""

    position: ResumePoint

    def take(self, events: Sequence[StreamEvent]) -> Cut:
        """What lands after these have come too; the position moves with it."""
        if events:
            self.position = ResumePoint(events[-1].offset())
        landing = [event for event in events if event.kind != "end"]
        return Cut(landing, self.position, events[-1].record() if events else None)


@dataclass(slots=True)
class TransactionCutter(Cutter):
    """For connectors that restart exactly at the ends of transactions."""

    _held: list[StreamEvent] = field(default_factory=list)
    _repeated: Passed | None = None

    def __post_init__(self) -> None:
        self._repeated = self.position.passed

    def take(self, events: Sequence[StreamEvent]) -> Cut:
        """What lands; the last events of one LSN wait until it is known that they are all."""
        whole = self._whole([*self._held, *self._fresh(events)])
        end = max((i for i, event in enumerate(whole) if event.kind == "end"), default=-1)
        offset, passed = self.position.offset, self.position.passed
        last = None
        if end >= 0:
            last = whole[end].record()
            offset, passed = whole[end].offset(), None
        if end < len(whole) - 1:
            passed = passed_by(whole[-1].offset())
        self.position = ResumePoint(offset, passed)
        return Cut([event for event in whole if event.kind != "end"], self.position, last)

    def _fresh(self, events: Sequence[StreamEvent]) -> list[StreamEvent]:
        """Without the events that had landed before a restart, which brings them again.

        Places only grow, so that of a large transaction a few are looked at in each batch.
        """
        repeated = self._repeated
        if repeated is None:
            return list(events)
        fresh = bisect_left(events, True, key=lambda event: _is_beyond(event, repeated))  # noqa: FBT003
        if fresh < len(events):
            self._repeated = None
        return list(events[fresh:])

    def _whole(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Up to the last event whose LSN no later one can share; the rest is held."""
        split = len(events)
        if events and events[-1].kind != "end":
            last = passed_by(events[-1].offset())
            while split and events[split - 1].kind != "end":
                if passed_by(events[split - 1].offset()) != last:
                    break
                split -= 1
        self._held = events[split:]
        return events[:split]


def passed_by(offset: Offset) -> Passed:
    """The transaction and the LSN of an event, from PostgreSQL's offset after it."""
    return Passed(str(offset.get("txId")), int(offset["lsn"]))


def _is_beyond(event: StreamEvent, passed: Passed) -> bool:
    at = passed_by(event.offset())
    # The end of the transaction is beyond all of its events.
    return event.kind == "end" or at.transaction != passed.transaction or at.lsn > passed.lsn


@dataclass(frozen=True, slots=True)
class RollLimits:
    """When what is pending lands.

    Attributes:
        bytes: as soon as it is so large.
        seconds: and so long after the batch before it.
        idle_seconds: so long after it where only the place in the log has moved.
    """

    bytes: int = 32 * 2**20
    seconds: float = 2.0
    idle_seconds: float = 60.0

    def wait(self, pending: Pending, *, since_landed: float) -> float | None:
        """Seconds until it lands; 0: now, None: there is nothing.

        Args:
            pending: what there is.
            since_landed: seconds since the batch before it had landed.
        """
        if pending.size >= self.bytes:
            return 0.0
        if pending.events or pending.apart or pending.is_awaited:
            return max(0.0, self.seconds - since_landed)
        if pending.position is not None:
            return max(0.0, self.idle_seconds - since_landed)
        return None


@dataclass(slots=True)
class Pending:
    """Events that wait for their batch, as their lines only: nothing of the engine is held.

    Attributes:
        size: bytes of the lines.
        events: how many.
        apart: events that do not land as they are; what becomes of them is decided then.
        position: of the stream after them; None: it has not moved.
        confirmable: the record that may be confirmed once they have landed; None: none yet.
        counts: events by table.
        is_awaited: somebody waits for the position, so that it lands like an event.
        read_to: a place in a binlog up to which all is in this batch or before it.
        replaced: tables whose rows were exchanged without events, and the places at which.
        filled: tables whose rows got a value for a column without events, likewise.
    """

    size: int = 0
    events: int = 0
    apart: list[StreamEvent] = field(default_factory=list)
    position: ResumePoint | None = None
    confirmable: Any = None
    counts: Counter[str] = field(default_factory=Counter)
    is_awaited: bool = False
    read_to: Offset | None = None
    replaced: dict[str, LogPosition] = field(default_factory=dict)
    filled: dict[str, LogPosition] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    _shapes: dict[str, list[EventSchema]] = field(default_factory=dict)

    @property
    def lines(self) -> bytes:
        """The lines, one after the other."""
        return b"".join(self._lines)

    @property
    def shapes(self) -> Mapping[str, Sequence[EventSchema]]:
        """The schemas of the lines, by table."""
        return self._shapes

    def set_apart(self, events: Iterable[StreamEvent]) -> None:
        """Take events whose landing is decided later."""
        for event in events:
            self.apart.append(replace(event, offset=_not_kept, record=_no_record))
            self.size += len(event.line)

    def add(self, events: Sequence[StreamEvent]) -> None:
        """Take the lines of events, and the schemas where they change."""
        for number, event in enumerate(events, self.events + 1):
            if event.table is not None and event.shape is not None:
                self._note(event.table, number, event.shape)
            elif event.kind == "statement":
                self.replaced |= replaced_by(event.line)
                self.filled |= filled_by(event.line)
        block = b"".join([event.line for event in events])
        self._lines.append(block)
        self.size += len(block)
        self.events += len(events)
        self.counts.update(event.table for event in events if event.table is not None)

    def _note(self, table: str, number: int, shape: Mapping[str, Any]) -> None:
        shapes = self._shapes.setdefault(table, [])
        if not shapes or shapes[-1].schema is not shape:
            shapes.append(EventSchema(number, shape))


def _not_kept() -> Offset:
    """Offsets are asked before events wait."""
    return {}


@dataclass(frozen=True, slots=True)
class KeylessEvents:
    """Events of tables without key.

    Attributes:
        landing: those that land now.
        kept: those of tables that are not loaded: they land with the load, or its view has them.
        left_out: the place of the last of these by table, where a view has to be behind it.
    """

    landing: Sequence[StreamEvent]
    kept: Sequence[StreamEvent]
    left_out: Mapping[str, LogPosition]


def divide_keyless(
    connector: str, events: Sequence[StreamEvent], position: CapturePosition
) -> KeylessEvents:
    """What becomes of events, whose `table` is there, at a position."""
    landing, kept = [], []
    left_out: dict[str, LogPosition] = {}
    for event in events:
        table = str(event.table)
        progress = position.tables.get(table)
        if progress is None or progress.state != "loaded":
            kept.append(event)
            event_position = position_of_event(connector, event.line)
            if event_position is not None:
                left_out[table] = event_position
        elif progress.seen is None or not is_seen(connector, progress.seen, event.line):
            landing.append(event)
    return KeylessEvents(landing, kept, left_out)


def position_after(
    connector: str,
    before: CapturePosition,
    stream: ResumePoint,
    left_out: Mapping[str, LogPosition],
) -> CapturePosition:
    """The position after events; what a view has is dropped once the stream has passed it."""
    tables = {
        name: replace(table, seen=None)
        if table.seen is not None and is_passed(connector, table.seen, stream.offset)
        else table
        for name, table in before.tables.items()
    }
    return replace(before, stream=stream, tables=tables, left_out={**before.left_out, **left_out})


def lands_unchecked(progress: TableProgress | None) -> bool:
    """Whether all that comes of a table without key lands from now on."""
    return progress is not None and progress.state == "loaded" and progress.seen is None


def would_load_twice(before: TableProgress | None, table: SourceTable) -> bool:
    """Whether rows of a table have landed that another load would bring once more."""
    if not table.lacks_key or before is None:
        return False
    return before.chunks > 0 and not before.is_another(table)


_ORDERED_BY_TRANSACTION: Final = "postgresql"
#: Events have the last 32 bits of the number of their transaction.
_NUMBERS: Final = 1 << 32


def is_seen(connector: str, seen: SeenTransactions, line: bytes) -> bool:
    """Whether a view has what an event of the stream says. Raises ValueError or LookupError.

    Args:
        connector: of the database.
        seen: of the view.
        line: the event, as the engine brought it.
    """
    source = json.loads(line)["value"]["source"]
    if connector == _ORDERED_BY_TRANSACTION:
        return _has_transaction(seen, int(source["txId"]))
    return position_of_rows(connector, source) < position_of_rows(connector, seen)


def _has_transaction(seen: SeenTransactions, number: int) -> bool:
    end = int(seen["end"])
    # The one with these last bits that is nearest: the log is not that long.
    whole = end + (number - end + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
    if whole < int(seen["first"]):
        return True
    return whole < end and whole not in seen["running"]


def is_passed(connector: str, seen: SeenTransactions, offset: Offset) -> bool:
    """Whether a stream that continues from an offset brings nothing more that a view has."""
    return position_of_offset(connector, offset) >= position_of_rows(connector, seen)


def has_all(connector: str, seen: SeenTransactions, position: LogPosition) -> bool:
    """Whether a view has the event at a place, which was streamed before the view was taken.

    A binlog may be read a moment before the tables show what it says.
    """
    return position_of_rows(connector, seen) > position


def position_of_event(connector: str, line: bytes) -> LogPosition | None:
    """The place that a later view has to be behind; None: any later view is."""
    if connector == _ORDERED_BY_TRANSACTION:
        return None
    return position_of_rows(connector, json.loads(line)["value"]["source"])
