"""Replication slots: made with a consistent view, looked at, dropped on purpose only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.sql import identifier, literal, lsn_number, lsn_text
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
_OWN_TRANSACTION: Final = "SELECT pg_logical_emit_message(true, 'polynya', 'load')"
# A message that begins with a C is a commit. Its place is the end of the commit in the log, by
# which the stream names the transaction, too. Debezium asks for messages from version 14 on, which
# decides whether a transaction without rows is there at all.
_LAST_COMMIT: Final = """\
SELECT lsn::text FROM pg_logical_slot_peek_binary_changes({slot}, {end}, NULL,
  VARIADIC ARRAY['proto_version', '1', 'publication_names', {publication}]
    || CASE WHEN current_setting('server_version_num')::int >= 140000
       THEN ARRAY['messages', 'true'] ELSE ARRAY[]::text[] END)
WHERE get_byte(data, 0) = ascii('C') AND lsn <= {end} ORDER BY lsn DESC LIMIT 1
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


def create_later(session: Session, access: Access, publication: str) -> tuple[Exported, int]:
    """A view beside a stream, and the commit of the last transaction that is in both.

    An event of the stream has the commit of the transaction before it. So rows with the commit of
    the last transaction in the view stand behind all that the view has, and before all that it has
    not. A slot that begins before the view tells that commit: the server decodes for it what it
    decodes for the stream. Both slots are temporary. A transaction of our own after the beginning
    of the first sees to it that there is one; another one behind the view lets a stream that is
    quiet reach it.

    Args:
        session: has the first slot; no transaction is open.
        access: of the database.
        publication: of the stream.

    Raises OperationError and DependencyError.
    """
    number = session.run("SELECT pg_backend_pid()")[0][0]
    name = literal(f"polynya_commits_{number}")
    session.run(f"SELECT pg_create_logical_replication_slot({name}, '{PLUGIN}', true)")
    session.run(_OWN_TRANSACTION)
    exported = create(access, f"polynya_load_{number}", is_temporary=True)
    try:
        question = _LAST_COMMIT.format(
            slot=name,
            end=literal(lsn_text(exported.lsn)),
            publication=literal(identifier(publication)),
        )
        commit = lsn_number(session.run(question)[0][0])
        session.run(f"SELECT pg_drop_replication_slot({name})")
        session.run(_OWN_TRANSACTION)
    except BaseException:
        exported.holder.close()
        raise
    return exported, commit


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
