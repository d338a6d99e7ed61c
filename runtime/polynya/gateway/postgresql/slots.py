"""Replication slots: made with a consistent view, looked at, dropped on purpose only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.sql import identifier, literal, lsn_number
from polynya.gateway.source import Access
from polynya.model.errors import OperationError

PLUGIN: Final = "pgoutput"
_LOOK: Final = """\
SELECT s.plugin, s.database, s.active_pid, s.wal_status, s.safe_wal_size::float8,
       s.restart_lsn::text, s.confirmed_flush_lsn::text,
       pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::float8,
       pg_current_wal_lsn()::text, extract(epoch FROM r.flush_lag)::float8,
       coalesce((SELECT p.total_bytes > 0 FROM pg_stat_replication_slots p
                 WHERE p.slot_name = s.slot_name), false),
       to_jsonb(s) ->> 'invalidation_reason'
FROM pg_replication_slots s LEFT JOIN pg_stat_replication r ON r.pid = s.active_pid
WHERE s.slot_name = {name}
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot as the server shows it.

    Attributes:
        reader: number of the process that reads it; None: nobody does.
        wal_status: `reserved`, `extended`, `unreserved` or `lost`.
        safe_bytes: of the log that may still be written until the slot is lost; None: no limit.
        confirmed: up to here its reader has everything.
        kept_bytes: of the log that the server keeps for it.
        end: of the log now.
        flush_seconds: how long its reader takes to confirm; None when the server does not say.
        reason: why it is lost, where the server says it (from version 17 on).
        was_read: something was decoded for a reader since the statistics began.
    """

    plugin: str
    database: str
    reader: int | None
    wal_status: str | None
    safe_bytes: int | None
    restart: int | None
    confirmed: int | None
    kept_bytes: int | None
    end: int
    flush_seconds: float | None
    was_read: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """A view that other sessions take part in while `holder` is open: its place, and its name."""

    lsn: int
    view: str
    holder: Session


def read_slot(session: Session, name: str) -> Slot | None:
    """The slot of a name; None: there is none."""
    found = session.run(_LOOK.format(name=literal(name)))
    return _slot(found[0]) if found else None


def create(access: Access, name: str, *, is_temporary: bool) -> Exported:
    """Make a slot, and the view of the database at exactly that place of its log.

    It waits for the transactions that run now. Raises OperationError and DependencyError.
    """
    holder = Session(access, replicates=True)
    try:
        kind = " TEMPORARY" if is_temporary else ""
        # The older spelling of the options: all releases take it.
        rows = holder.run(
            f"CREATE_REPLICATION_SLOT {identifier(name)}{kind} LOGICAL {PLUGIN} EXPORT_SNAPSHOT"
        )
    except BaseException:
        holder.close()
        raise
    return Exported(lsn_number(str(rows[0][1])), str(rows[0][2]), holder)


def make_room(session: Session, access: Access, name: str) -> None:
    """See that no slot has that name; one that nobody ever read goes.

    Raises:
        OperationError: POLYNYA-GTW-028, it is or was another capture's.
    """
    there = read_slot(session, name)
    if there is None:
        return
    if there.reader is not None or there.was_read or there.plugin != PLUGIN:
        told = f"process {there.reader} reads it" if there.reader else "it was read before"
        raise OperationError(
            "POLYNYA-GTW-028",
            f"there is a replication slot {name} already: {told}",
            where=access.task,
            state="nothing was changed; nothing of this task has landed",
            fix="give the task another `slot`, or, if no capture needs this one any more: "
            f"SELECT pg_drop_replication_slot({literal(name)})",
        )
    drop(session, name)


def drop(session: Session, name: str) -> None:
    """Drop a slot if it is there; the server removes the log that it kept."""
    session.run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        f"WHERE slot_name = {literal(name)}"
    )


def _slot(row: list[Any]) -> Slot:
    plugin, database, reader, status, safe, restart, confirmed, kept, end, lag, was_read, reason = (
        row
    )
    return Slot(
        plugin=plugin or "", database=database or "", reader=reader, wal_status=status,
        safe_bytes=None if safe is None else int(safe),
        restart=None if restart is None else lsn_number(restart),
        confirmed=None if confirmed is None else lsn_number(confirmed),
        kept_bytes=None if kept is None else int(kept), end=lsn_number(end),
        flush_seconds=lag, was_read=was_read, reason=reason,
    )  # fmt: skip


def transactions_seen(lsn: int, numbers: str) -> dict[str, Any]:
    """What a view of PostgreSQL has.

    Args:
        lsn: of the end of its last transaction.
        numbers: `txid_current_snapshot()` in it: `xmin:xmax:running,…`.
    """
    first, end, running = numbers.split(":")
    return {
        "lsn": lsn,
        "first": int(first),
        "end": int(end),
        "running": [int(one) for one in running.split(",") if one],
    }
