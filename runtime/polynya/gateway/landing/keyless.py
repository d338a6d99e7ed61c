"""Tables without key: what of their stream lands, so that nothing is lost and nothing comes twice.

No fold sorts their events out, so each row has to land once. Until such a table is loaded nothing
of it lands; its load lands whole, with all events that its view has not; and of the stream after
that only what the view has not. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polynya.gateway.landing.places import Place
from polynya.gateway.landing.position import Position, StreamPosition, TableProgress
from polynya.gateway.landing.seen import is_passed, is_seen, place_of_event
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.source import SourceTable


@dataclass(frozen=True, slots=True)
class Parted:
    """Events of tables without key.

    Attributes:
        landing: those that land now.
        kept: those of tables that are not loaded: they land with the load, or its view has them.
        left_out: the place of the last of these by table, where a view has to be behind it.
    """

    landing: Sequence[StreamEvent]
    kept: Sequence[StreamEvent]
    left_out: Mapping[str, Place]


def parted(connector: str, events: Sequence[StreamEvent], position: Position) -> Parted:
    """What becomes of events, whose `table` is there, at a position."""
    landing, kept = [], []
    left_out: dict[str, Place] = {}
    for event in events:
        table = str(event.table)
        progress = position.tables.get(table)
        if progress is None or progress.state != "loaded":
            kept.append(event)
            place = place_of_event(connector, event.line)
            if place is not None:
                left_out[table] = place
        elif progress.seen is None or not is_seen(connector, progress.seen, event.line):
            landing.append(event)
    return Parted(landing, kept, left_out)


def moved(
    connector: str, before: Position, stream: StreamPosition, left_out: Mapping[str, Place]
) -> Position:
    """After events of the stream; what a view has is forgotten when it has passed."""
    tables = {
        name: replace(one, seen=None)
        if one.seen is not None and is_passed(connector, one.seen, stream.offset)
        else one
        for name, one in before.tables.items()
    }
    return replace(before, stream=stream, tables=tables, left_out={**before.left_out, **left_out})


def is_settled(progress: TableProgress | None) -> bool:
    """Whether all that comes of a table without key lands from now on."""
    return progress is not None and progress.state == "loaded" and progress.seen is None


def would_come_twice(before: TableProgress | None, table: SourceTable) -> bool:
    """Whether rows of a table have landed that another load would bring once more."""
    if not table.lacks_key or before is None:
        return False
    return before.chunks > 0 and not before.is_another(table)
