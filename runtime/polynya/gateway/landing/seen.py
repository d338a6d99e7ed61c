"""What of the stream a view has already: for tables without key, whose events no fold sorts. Pure.

The transactions that a view has are the first ones of the stream, up to a point. PostgreSQL tells
them by their numbers, of which each event has its own, and by the end of the last of them in the
log. A binlog has them in the order of their places.
"""

from __future__ import annotations

import json
from typing import Final

from polynya.gateway.landing.places import Place, place_of_offset, place_of_rows
from polynya.gateway.source import Offset, Seen

_BY_TRANSACTION: Final = "postgresql"
#: Events have the last 32 bits of the number of their transaction.
_NUMBERS: Final = 1 << 32


def is_seen(connector: str, seen: Seen, line: bytes) -> bool:
    """Whether a view has what an event of the stream says. Raises ValueError or LookupError.

    Args:
        connector: of the database.
        seen: of the view.
        line: the event, as the engine brought it.
    """
    source = json.loads(line)["value"]["source"]
    if connector == _BY_TRANSACTION:
        return _has_transaction(seen, int(source["txId"]))
    return place_of_rows(connector, source) < place_of_rows(connector, seen)


def is_passed(connector: str, seen: Seen, offset: Offset) -> bool:
    """Whether a stream that goes on from an offset brings nothing more that a view has."""
    return place_of_offset(connector, offset) >= place_of_rows(connector, seen)


def has_all(connector: str, seen: Seen, place: Place) -> bool:
    """Whether a view has the event at a place, which was streamed before the view was taken.

    A binlog may be read a moment before the tables show what it says.
    """
    return place_of_rows(connector, seen) > place


def place_of_event(connector: str, line: bytes) -> Place | None:
    """The place that a later view has to be behind; None: any later view is."""
    if connector == _BY_TRANSACTION:
        return None
    return place_of_rows(connector, json.loads(line)["value"]["source"])


def _has_transaction(seen: Seen, number: int) -> bool:
    end = int(seen["end"])
    # The one with these last bits that is nearest: the log is not that long.
    whole = end + (number - end + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2
    if whole < int(seen["first"]):
        return True
    return whole < end and whole not in seen["running"]
