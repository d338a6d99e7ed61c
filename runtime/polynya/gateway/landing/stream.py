"""From the records of a stream to what lands of them, and the position after it. Pure.

A connector restarts exactly only at certain places. Debezium's for PostgreSQL does at the end of a
transaction: from an offset inside of one it counts the order of its events anew, and passes over
all that share the offset's LSN, as the rows of one COPY do. So the position is the end of the last
whole transaction, and up to which LSN the next one has landed; the events of one LSN land together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from polynya.gateway.landing.position import Passed, StreamPosition
from polynya.gateway.source import Offset

Kind: TypeAlias = Literal["row", "statement", "end"]

#: Connectors that restart exactly at the ends of transactions only; others do at each event.
_BY_TRANSACTION: Final = frozenset({"postgresql"})


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
        origin: what the engine needs to tell the database that it has landed.
        is_awaited: of an end: somebody waits until it is known how far the stream was read.
    """

    kind: Kind
    line: bytes
    offset: Callable[[], Offset]
    table: str | None = None
    shape: Mapping[str, Any] | None = None
    origin: Any = None
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """What lands of the records so far, and the position after it.

    `last` is the record whose offset the connector may be told, None: none.
    """

    events: Sequence[StreamEvent]
    position: StreamPosition
    last: StreamEvent | None


def cutter_of(connector: str, position: StreamPosition) -> Cutter:
    """What decides for a connector, from a position on."""
    if connector in _BY_TRANSACTION:
        return TransactionCutter(position)
    return Cutter(position)


@dataclass(slots=True)
class Cutter:
    """For connectors that restart exactly after each event."""

    position: StreamPosition

    def take(self, events: Sequence[StreamEvent]) -> Cut:
        """What lands after these have come too; the position moves with it."""
        if events:
            self.position = StreamPosition(events[-1].offset())
        landing = [event for event in events if event.kind != "end"]
        return Cut(landing, self.position, events[-1] if events else None)


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
        told = None
        if end >= 0:
            told = whole[end]
            offset, passed = told.offset(), None
        if end < len(whole) - 1:
            passed = passed_by(whole[-1].offset())
        self.position = StreamPosition(offset, passed)
        return Cut([event for event in whole if event.kind != "end"], self.position, told)

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
