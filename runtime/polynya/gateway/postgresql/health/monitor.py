"""How far a stream is behind, what its slot costs, and whether it can go on: pure."""

from __future__ import annotations

from typing import Any, Final

from polynya.gateway.postgresql.slots import PLUGIN, Slot
from polynya.gateway.source import Lag, Offset

#: From here on the log that is kept for us is worth a word.
_MUCH: Final = 10 << 30
#: So near to its end a slot is in danger.
_NEAR: Final = 1 << 30
_GIB: Final = 1 << 30


def place_of(offset: Offset) -> int | None:
    """Up to which position of the log an offset of Debezium has everything; None: it has none."""
    value: Any = offset.get("lsn_commit") or offset.get("lsn") or offset.get("lsn_proc")
    return int(value) if value is not None else None


def lag_of(slot: Slot | None, offset: Offset, *, now: float) -> Lag:
    """What is still to come, of the log and of time, with what a person should know.

    Args:
        slot: None: it is not there.
        offset: up to where the stream has landed.
        now: seconds since 1970.
    """
    if slot is None:
        return Lag(None, None, ("the replication slot is not there",))
    place = place_of(offset)
    behind = None if place is None else max(0, slot.end - place)
    return Lag(behind, _seconds(slot, offset, behind, now), _notes(slot))


def lost_of(name: str, database: str, slot: Slot | None, offset: Offset) -> str | None:
    """Why the stream cannot go on from an offset; None: it can."""
    place = place_of(offset)
    if slot is None:
        return f"replication slot {name} is not there: changes since the last batch are lost"
    if slot.wal_status == "lost":
        return (
            f"replication slot {name} is lost: the server removed log that it still needed "
            f"({slot.reason or 'max_slot_wal_keep_size'})"
        )
    if slot.plugin != PLUGIN or slot.database != database:
        return f"replication slot {name} is of {slot.plugin} for database {slot.database}"
    if place is not None and place > slot.end:
        return (
            "the log of the server ends before what has landed: it was restored from a backup, or "
            "is another server"
        )
    if place is not None and slot.confirmed is not None and slot.confirmed > place:
        return (
            f"replication slot {name} begins after what has landed: it was made again, or somebody "
            "else read from it"
        )
    return None


def _seconds(slot: Slot, offset: Offset, behind: int | None, now: float) -> float | None:
    if behind == 0:
        return 0.0
    if slot.flush_seconds is not None:
        return slot.flush_seconds
    if slot.reader is not None:
        # The server tells no delay once everything that concerns this reader was confirmed.
        return 0.0
    stamp = offset.get("ts_usec")
    return max(0.0, now - int(stamp) / 1e6) if stamp else None


def _notes(slot: Slot) -> tuple[str, ...]:
    notes = []
    kept = slot.kept_bytes or 0
    if slot.wal_status == "lost":
        notes.append("the slot is lost: the log that it needed was removed")
    elif slot.wal_status == "unreserved":
        notes.append("the slot will be lost at the next checkpoint of the server")
    elif slot.safe_bytes is not None and slot.safe_bytes < _NEAR:
        notes.append(f"the slot is lost after {slot.safe_bytes / _GIB:.2f} GiB more of the log")
    if slot.safe_bytes is None and slot.wal_status != "lost" and kept > _MUCH:
        notes.append(
            f"the server keeps {kept / _GIB:.1f} GiB of its log for this slot and sets no limit "
            "(max_slot_wal_keep_size): its disk may fill up"
        )
    if slot.reader is None:
        notes.append(
            "nobody reads the slot: the server keeps its log until the capture goes on or the "
            "slot is dropped"
        )
    return tuple(notes)
