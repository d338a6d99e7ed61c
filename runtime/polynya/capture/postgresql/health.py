"""Findings of a connection test, slot capacity, and the lag and cost of a slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from polynya.capture.postgresql.session import PostgresSession, identifier, literal, qualified
from polynya.capture.postgresql.slots import PLUGIN, ReplicationSlot, read_publication, read_slot
from polynya.capture.postgresql.tables import PgTable, deadly_types, read_tables, without_identity
from polynya.capture.source import Access, ConnectionFinding, Lag, Offset
from polynya.model.errors import PolynyaError

#: From here on the log that is kept for us is worth a word.
_MUCH: Final = 10 << 30
#: So near to its end a slot is in danger.
_NEAR: Final = 1 << 30
_GIB: Final = 1 << 30


def lsn_of(offset: Offset) -> int | None:
    """Up to which position of the log an offset of Debezium has everything; None: it has none."""
    value: Any = offset.get("lsn_commit") or offset.get("lsn") or offset.get("lsn_proc")
    return int(value) if value is not None else None


def lag_of(slot: ReplicationSlot | None, offset: Offset, *, now: float) -> Lag:
    """What is still to come, of the log and of time, with what an operator should know.

    Args:
        slot: None: it is not there.
        offset: up to where the stream has landed.
        now: seconds since 1970.
    """
    if slot is None:
        return Lag(None, None, ("the replication slot is not there",))
    lsn = lsn_of(offset)
    behind = None if lsn is None else max(0, slot.end - lsn)
    kept, safe = slot.kept_bytes, slot.safe_bytes
    limit = None if kept is None or safe is None else max(kept + safe, 0)
    return Lag(behind, _seconds(slot, offset, behind, now), _notes(slot), kept, limit)


def lost_of(name: str, database: str, slot: ReplicationSlot | None, offset: Offset) -> str | None:
    """Why the stream cannot continue from an offset; None: it can."""
    lsn = lsn_of(offset)
    if slot is None:
        return f"replication slot {name} is not there: changes since the last batch are lost"
    if slot.wal_status == "lost":
        return (
            f"replication slot {name} is lost: the server removed log that it still needed "
            f"({slot.reason or 'max_slot_wal_keep_size'})"
        )
    if slot.plugin != PLUGIN or slot.database != database:
        return f"replication slot {name} is of {slot.plugin} for database {slot.database}"
    if lsn is not None and lsn > slot.end:
        return (
            "the log of the server ends before what has landed: it was restored from a backup, or "
            "is another server"
        )
    if lsn is not None and slot.confirmed is not None and slot.confirmed > lsn:
        return (
            f"replication slot {name} starts after the landed data: it was created again, or "
            "somebody else read from it"
        )
    return None


def _seconds(slot: ReplicationSlot, offset: Offset, behind: int | None, now: float) -> float | None:
    if behind == 0:
        return 0.0
    if slot.flush_seconds is not None:
        return slot.flush_seconds
    if slot.reader is not None:
        # The server tells no delay once everything that concerns this reader was confirmed.
        return 0.0
    stamp = offset.get("ts_usec")
    return max(0.0, now - int(stamp) / 1e6) if stamp else None


def _notes(slot: ReplicationSlot) -> tuple[str, ...]:
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
            "nobody reads the slot: the server keeps its log until the capture continues or the "
            "slot is dropped"
        )
    return tuple(notes)


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


def room_findings(session: PostgresSession, name: str, room: Room) -> Iterator[ConnectionFinding]:
    """What there is to say; `name` is that of the capture's own slot."""
    there = read_slot(session, name)
    for what, left, most, setting in (
        ("replication slots", room.slots, _SLOTS, "max_replication_slots"),
        ("WAL senders", room.senders, _SENDERS, "max_wal_senders"),
    ):
        needed = most - (there is not None)
        enough = left >= needed
        yield ConnectionFinding(
            ok=enough, what=f"{left} {what} are free, {needed} are needed",
            fix="" if enough else f"raise {setting}, or drop slots that nobody needs",
        )  # fmt: skip
    if there is not None:
        is_lost = there.wal_status == "lost"
        kept = f", the server keeps {(there.kept_bytes or 0) / _MIB:.0f} MiB of its log for it"
        why = f" ({there.reason})" if there.reason else ""
        yield ConnectionFinding(
            ok=not is_lost,
            what=f"slot {name} is there, its log is {there.wal_status}{why if is_lost else kept}",
            fix="reload all tables: `polynya landing reload`" if is_lost else "",
        )  # fmt: skip
    yield from _disk(session, name, room)


def _disk(session: PostgresSession, name: str, room: Room) -> Iterator[ConnectionFinding]:
    if room.limit == "-1":
        yield ConnectionFinding(
            ok=True, what="max_slot_wal_keep_size is not set: a stopped capture fills the disk",
            fix="set it to what the disk can spare; a slot that falls further back is lost, and "
            "the tables are loaded again",
        )  # fmt: skip
    if room.timeout is not None:
        yield ConnectionFinding(
            ok=True, what=f"a slot that nobody reads for {room.timeout} is lost",
            fix="idle_replication_slot_timeout should be longer than a capture may stand still",
        )  # fmt: skip
    for other, kept in session.run(_IDLE.format(name=literal(name), bytes=MUCH_BYTES)):
        yield ConnectionFinding(
            ok=True,
            what=f"slot {other}, which nobody reads, keeps {kept / _MIB:.0f} MiB of the log",
            fix=f"if nobody needs it: SELECT pg_drop_replication_slot({literal(other)})",
        )  # fmt: skip


_OLDEST: Final = 140000
_SHOWN: Final = 5
_FACTS: Final = """\
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
       current_setting('wal_level'),
       current_setting('max_replication_slots')::int
         - (SELECT count(*) FROM pg_replication_slots)::int,
       current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication)::int,
       current_setting('max_slot_wal_keep_size'),
       (SELECT r.rolreplication OR r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
         OR EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname = 'rds_replication'
                    AND pg_has_role(r.oid, 'USAGE')),
       has_database_privilege(current_database(), 'CREATE'),
       (SELECT s.version FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid()),
       nullif(current_setting('idle_replication_slot_timeout', true), '0'), pg_is_in_recovery()
"""
_UNREADABLE: Final = """\
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_'
  AND n.nspname <> 'information_schema'
  AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
ORDER BY 1
"""


def findings_of(access: Access, *, slot: str, publication: str) -> tuple[ConnectionFinding, ...]:
    """All that there is to say; a server that cannot be reached is one finding."""
    try:
        with PostgresSession(access) as session:
            return tuple(_findings(session, access, slot, publication))
    except PolynyaError as error:
        message = f"{error.message}: {error.why}" if error.why else error.message
        return (ConnectionFinding(ok=False, what=message, fix=error.fix or ""),)


def _findings(
    session: PostgresSession, access: Access, slot: str, publication: str
) -> Iterator[ConnectionFinding]:
    (facts,) = session.run(_FACTS)
    version, number, level, free, senders, limit, replicates, may_create, tls, timeout = facts[:-1]
    encrypted = {"verify": "TLS, verified", "require": "TLS, not verified"}.get(
        access.tls, "no TLS"
    )
    detail = f" ({tls})" if tls else ""
    yield ConnectionFinding(
        ok=True, what=f"PostgreSQL {version} lets {access.user} in, {encrypted}{detail}"
    )
    if facts[-1] and access.follows:
        yield ConnectionFinding(
            ok=False, what="the server is a standby, of which changes cannot be captured",
            fix="capture from the primary; loads with `update_method: reload` may read here",
        )  # fmt: skip
        return
    yield ConnectionFinding(
        ok=number >= _OLDEST, what=f"version {version}",
        fix="" if number >= _OLDEST else "use PostgreSQL 14 or newer",
    )  # fmt: skip
    if not access.follows:
        yield from _unread(session)
        return
    yield ConnectionFinding(
        ok=level == "logical", what=f"wal_level is {level}",
        fix="" if level == "logical" else "set wal_level = logical, and restart the server",
    )  # fmt: skip
    yield ConnectionFinding(
        ok=bool(replicates), what=f"{access.user} may {'' if replicates else 'not '}replicate",
        fix="" if replicates else f"ALTER ROLE {identifier(access.user)} REPLICATION",
    )  # fmt: skip
    yield from room_findings(session, slot, Room(free, senders, limit, timeout))
    yield _publication(session, publication, may_create=may_create)
    yield from _tables(session)
    types = deadly_types(session)
    if types:
        yield ConnectionFinding(
            ok=False, what=f"the stream cannot be read with these types: {_some(types)}",
            fix="use the enum itself instead of a domain over it; drop enums without labels",
        )  # fmt: skip


def _publication(session: PostgresSession, name: str, *, may_create: bool) -> ConnectionFinding:
    there = read_publication(session, name)
    if there is None:
        return ConnectionFinding(
            ok=may_create,
            what=f"publication {name} is not there, and this user may "
            f"{'' if may_create else 'not '}make one",
            fix="" if may_create else "let the owner of the tables run: CREATE PUBLICATION "
            f"{identifier(name)} FOR TABLE … WITH (publish_via_partition_root = true)",
        )  # fmt: skip
    well = there.by_root and not there.lacks
    return ConnectionFinding(
        ok=well, what=f"publication {name} has {len(there.tables)} tables",
        fix="" if well else f"ALTER PUBLICATION {identifier(name)} SET (publish = 'insert, "
        "update, delete, truncate', publish_via_partition_root = true)",
    )  # fmt: skip


def _unread(session: PostgresSession) -> Iterator[ConnectionFinding]:
    unreadable = [row[0] for row in session.run(_UNREADABLE)]
    if unreadable:
        yield ConnectionFinding(
            ok=True, what=f"{len(unreadable)} tables cannot be read: {_some(unreadable)}",
            fix="GRANT USAGE ON SCHEMA … and GRANT SELECT ON … for what is to be captured",
        )  # fmt: skip


def _tables(session: PostgresSession) -> Iterator[ConnectionFinding]:
    yield from _unread(session)
    tables = read_tables(session)
    bare = without_identity(tables)
    if bare:
        first = qualified(bare[0].schema, bare[0].relation)
        yield ConnectionFinding(
            ok=True,
            what=f"{len(bare)} tables have no replica identity: {_some([t.name for t in bare])}",
            fix=f"exclude them, or ALTER TABLE {first} REPLICA IDENTITY FULL",
        )  # fmt: skip
    yield from _left_out(tables)


def _left_out(tables: tuple[PgTable, ...]) -> Iterator[ConnectionFinding]:
    columns = [f"{table.name}.{name} ({why})" for table in tables for name, why in table.left_out]
    if columns:
        yield ConnectionFinding(
            ok=True, what=f"{len(columns)} columns are left out: {_some(columns)}"
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
