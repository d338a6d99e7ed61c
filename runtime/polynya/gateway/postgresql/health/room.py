"""What a test of a connection says of slots: room for them, and what they cost the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.slots import read_slot
from polynya.gateway.postgresql.sql import literal
from polynya.gateway.source import Finding

#: The stream, and two more while the view of a later load is made.
_SLOTS: Final = 3
#: The stream, and one more while a table is loaded later.
_SENDERS: Final = 2
#: So much of the log makes a slot that nobody reads worth a word.
MUCH_BYTES: Final = 1 << 30
_MIB: Final = 1 << 20
_IDLE: Final = """\
SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8
FROM pg_replication_slots WHERE active_pid IS NULL AND restart_lsn IS NOT NULL
  AND slot_name <> {name} AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) >= {bytes}
ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Room:
    """Settings of a server for slots.

    Attributes:
        slots: that are free.
        senders: likewise.
        limit: `max_slot_wal_keep_size`, `-1` for none.
        timeout: `idle_replication_slot_timeout`; None: there is none.
    """

    slots: int
    senders: int
    limit: str
    timeout: str | None


def room_findings(session: Session, name: str, room: Room) -> Iterator[Finding]:
    """What there is to say; `name` is that of the capture's own slot."""
    there = read_slot(session, name)
    for what, left, most, setting in (
        ("replication slots", room.slots, _SLOTS, "max_replication_slots"),
        ("WAL senders", room.senders, _SENDERS, "max_wal_senders"),
    ):
        needed = most - (there is not None)
        enough = left >= needed
        yield Finding(
            ok=enough, what=f"{left} {what} are free, {needed} are needed",
            fix="" if enough else f"raise {setting}, or drop slots that nobody needs",
        )  # fmt: skip
    if there is not None:
        is_lost = there.wal_status == "lost"
        kept = f", the server keeps {(there.kept_bytes or 0) / _MIB:.0f} MiB of its log for it"
        why = f" ({there.reason})" if there.reason else ""
        yield Finding(
            ok=not is_lost,
            what=f"slot {name} is there, its log is {there.wal_status}{why if is_lost else kept}",
            fix="load all tables anew: `polynya landing reload`" if is_lost else "",
        )  # fmt: skip
    yield from _disk(session, name, room)


def _disk(session: Session, name: str, room: Room) -> Iterator[Finding]:
    if room.limit == "-1":
        yield Finding(
            ok=True, what="max_slot_wal_keep_size is not set: a stopped capture fills the disk",
            fix="set it to what the disk can spare; a slot that falls further back is lost, and "
            "the tables are loaded again",
        )  # fmt: skip
    if room.timeout is not None:
        yield Finding(
            ok=True, what=f"a slot that nobody reads for {room.timeout} is lost",
            fix="idle_replication_slot_timeout should be longer than a capture may stand still",
        )  # fmt: skip
    for other, kept in session.run(_IDLE.format(name=literal(name), bytes=MUCH_BYTES)):
        yield Finding(
            ok=True,
            what=f"slot {other}, which nobody reads, keeps {kept / _MIB:.0f} MiB of the log",
            fix=f"if nobody needs it: SELECT pg_drop_replication_slot({literal(other)})",
        )  # fmt: skip
