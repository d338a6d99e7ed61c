"""What was read of a stream and has not landed: bounded, and when it lands. Pure.

A batch that is landed costs the landing zone an object and each table a file to read, so a stream
that never rests lands about once in `seconds`. What comes after a rest lands at once: nobody waits
for a clock while nothing else happens. Time counts from the end of the put before, so that a slow
landing zone gets larger batches instead of a queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polynya.formats.debezium.captured.batch import Shape
from polynya.gateway.landing.places import Place
from polynya.gateway.landing.position import StreamPosition
from polynya.gateway.landing.statements import filled_by, replaced_by
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.source import Offset


@dataclass(frozen=True, slots=True)
class Roll:
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
        told: of what the database may be told when they have landed; None: of nothing yet.
        counts: events by table.
        is_awaited: somebody waits for the position, so that it lands like an event.
        read_to: a place in a binlog up to which all is in this batch or before it.
        replaced: tables whose rows were exchanged without events, and the places at which.
        filled: tables whose rows got a value for a column without events, likewise.
    """

    size: int = 0
    events: int = 0
    apart: list[StreamEvent] = field(default_factory=list)
    position: StreamPosition | None = None
    told: StreamEvent | None = None
    counts: Counter[str] = field(default_factory=Counter)
    is_awaited: bool = False
    read_to: Offset | None = None
    replaced: dict[str, Place] = field(default_factory=dict)
    filled: dict[str, Place] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    _shapes: dict[str, list[Shape]] = field(default_factory=dict)

    @property
    def lines(self) -> bytes:
        """The lines, one after the other."""
        return b"".join(self._lines)

    @property
    def shapes(self) -> Mapping[str, Sequence[Shape]]:
        """The schemas of the lines, by table."""
        return self._shapes

    def set_apart(self, events: Iterable[StreamEvent]) -> None:
        """Take events whose landing is decided later."""
        for event in events:
            self.apart.append(replace(event, offset=_not_kept, origin=None))
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
            shapes.append(Shape(number, shape))


def _not_kept() -> Offset:
    """Offsets are asked before events wait."""
    return {}
