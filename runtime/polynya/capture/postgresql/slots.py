"""The replication slot and the publication of a capture: created, extended, dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.capture.conditions import condition
from polynya.capture.postgresql.session import (
    PostgresSession,
    identifier,
    literal,
    lsn_number,
    lsn_text,
    qualified,
)
from polynya.capture.postgresql.tables import PgTable
from polynya.capture.source import Access
from polynya.capture.wire import TableError
from polynya.model.error_catalogue.capture_databases import (
    POSTGRESQL_RIGHT_MISSING,
    POSTGRESQL_TABLE_CHANGED,
    PUBLICATION_UNUSABLE,
    ROW_FILTER_OUTSIDE_IDENTITY,
    SLOT_EXISTS,
)
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

#: So often a slot is made until no table was altered meanwhile.
_TRIES: Final = 5
_NEXT_NUMBER: Final = "SELECT txid_snapshot_xmax(txid_current_snapshot()) % 4294967296"
# Rows of the catalog that a transaction with this number or a later one has written, of tables with
# their partitions, their TOAST tables and what says how their rows are read and published.
_ALTERED: Final = """\
WITH r AS (SELECT c.oid, c.reltoastrelid FROM pg_class c WHERE c.oid IN ({oids}) OR c.oid IN
  (SELECT p.relid FROM unnest(ARRAY[{oids}]::oid[]) t, pg_partition_tree(t) p)),
w AS (SELECT xmin AS x FROM pg_class
    WHERE oid IN (SELECT oid FROM r UNION SELECT reltoastrelid FROM r)
  UNION ALL SELECT xmin FROM pg_attribute WHERE attrelid IN (SELECT oid FROM r)
  UNION ALL SELECT xmin FROM pg_index WHERE indrelid IN (SELECT oid FROM r)
  UNION ALL SELECT xmin FROM pg_publication_rel WHERE prrelid IN (SELECT oid FROM r)
  UNION ALL SELECT xmin FROM pg_enum)
SELECT EXISTS (SELECT 1 FROM w WHERE age(x) <= age('{first}'::xid))
"""


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
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
class ExportedSnapshot:
    """A view that other sessions take part in while `holder` is open: its place, and its name."""

    lsn: int
    view: str
    holder: PostgresSession


def read_slot(session: PostgresSession, name: str) -> ReplicationSlot | None:
    """The slot of a name; None: there is none."""
    rows = session.run(_LOOK.format(name=literal(name)))
    return _slot(rows[0]) if rows else None


def create(access: Access, name: str, *, is_temporary: bool) -> ExportedSnapshot:
    """Make a slot, and the view of the database at exactly that place of its log.

    It waits for the transactions that run now. Raises OperationError and DependencyError.
    """
    holder = PostgresSession(access, replicates=True)
    try:
        kind = " TEMPORARY" if is_temporary else ""
        # The older spelling of the options: all releases take it.
        rows = holder.run(
            f"CREATE_REPLICATION_SLOT {identifier(name)}{kind} LOGICAL {PLUGIN} EXPORT_SNAPSHOT"
        )
    except BaseException:
        holder.close()
        raise
    return ExportedSnapshot(lsn_number(str(rows[0][1])), str(rows[0][2]), holder)


def create_first(
    session: PostgresSession, access: Access, name: str, tables: Sequence[PgTable]
) -> ExportedSnapshot:
    """Make the slot of a stream, and the view at its place, while none of the tables is altered.

    While a server makes a slot it waits twice for running transactions, and during the first wait
    it does not note which transactions alter tables (all releases up to 18; pgsql-hackers, "Fix
    logical decoding not track transaction during SNAPBUILD_BUILDING_SNAPSHOT"). A transaction that
    begins during the second wait and commits after it is decoded with the tables as they were
    before: values of new columns are missing, or the stream ends there each time that it is read.
    Such a slot is dropped, and another one made.

    Args:
        session: no transaction is open.
        access: of the database.
        name: of the slot; there is none yet.
        tables: those of the stream.

    Raises:
        OperationError: as `create`.
        DependencyError: as `create`; POLYNYA-GTW-033, tables were altered each time.
    """
    oids = ", ".join(str(table.oid) for table in tables)
    for _ in range(_TRIES):
        first = session.run(_NEXT_NUMBER)[0][0]
        exported = create(access, name, is_temporary=False)
        try:
            if session.run(_ALTERED.format(oids=oids, first=first)) == [[False]]:
                return exported
        except BaseException:
            exported.holder.close()
            raise
        exported.holder.close()
        drop_slot(session, name)
    raise POSTGRESQL_TABLE_CHANGED(
        where=access.task, why=f"tables were altered while the slot {name} was created"
    )


def create_later(
    session: PostgresSession, access: Access, publication: str
) -> tuple[ExportedSnapshot, int]:
    """A view next to a stream, and the commit of the last transaction that is in both.

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


def make_room(session: PostgresSession, access: Access, name: str) -> None:
    """See that no slot has that name; one that nobody ever read goes.

    Raises:
        OperationError: POLYNYA-GTW-028, it is or was another capture's.
    """
    there = read_slot(session, name)
    if there is None:
        return
    if there.reader is not None or there.was_read or there.plugin != PLUGIN:
        reason = f"process {there.reader} reads it" if there.reader else "it was read before"
        statement = f"SELECT pg_drop_replication_slot({literal(name)})"
        raise SLOT_EXISTS(where=access.task, slot=name, reason=reason, statement=statement)
    drop_slot(session, name)


def drop_slot(session: PostgresSession, name: str) -> None:
    """Drop a slot if it is there; the server removes the log that it kept."""
    session.run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
        f"WHERE slot_name = {literal(name)}"
    )


def _slot(row: list[Any]) -> ReplicationSlot:
    plugin, database, reader, status, safe, restart, confirmed, kept, end, lag, was_read, reason = (
        row
    )
    return ReplicationSlot(
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
        "running": [int(number) for number in running.split(",") if number],
    }


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication as the catalog has it.

    Attributes:
        by_root: changes of partitions are published as those of the partitioned table.
        lacks: kinds of changes that it does not publish.
        tables: names of the tables of this database that it has.
    """

    by_root: bool
    lacks: tuple[str, ...]
    tables: frozenset[str]


def read_publication(session: PostgresSession, name: str) -> Publication | None:
    """What there is by that name; None: nothing."""
    rows = session.run(
        "SELECT pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication "
        f"WHERE pubname = {literal(name)}"
    )
    if not rows:
        return None
    by_root, *published = rows[0]
    kinds = ("insert", "update", "delete", "truncate")
    lacks = tuple(kind for kind, is_told in zip(kinds, published, strict=True) if not is_told)
    return Publication(by_root, lacks, tables_of(session, name))


def tables_of(session: PostgresSession, name: str) -> frozenset[str]:
    """The names of the tables whose changes a publication has; none when it is not there."""
    tables = session.run(
        "SELECT schemaname || '.' || tablename FROM pg_publication_tables "
        f"WHERE pubname = {literal(name)}"
    )
    return frozenset(row[0] for row in tables)


def creation(name: str, tables: Sequence[PgTable], access: Access) -> str:
    """The statement that makes a publication of tables, with conditions for rows by table."""
    return (
        f"CREATE PUBLICATION {identifier(name)} FOR TABLE {_listed(tables, access)} "
        "WITH (publish_via_partition_root = true)"
    )


def ensure(session: PostgresSession, access: Access, name: str, tables: Sequence[PgTable]) -> None:
    """Have a publication with these tables.

    One that somebody else made is used as it is when it has them all. Rows that are to be left out
    are a matter of the publication, so its conditions are checked when they are given.

    Raises:
        OperationError: POLYNYA-GTW-027, it cannot be made so; the message has the statement for
            somebody who may. POLYNYA-GTW-030, a condition uses columns that deletes do not have.
    """
    there = read_publication(session, name)
    if there is None:
        _run(session, access, name, creation(name, tables, access), tables)
        return
    if there.lacks or not there.by_root:
        missing = ", ".join(there.lacks) or "publish_via_partition_root"
        raise PUBLICATION_UNUSABLE(
            where=access.task, publication=name, reason=f"it lacks {missing}",
            statement=f"ALTER PUBLICATION {identifier(name)} SET (publish = 'insert, update, "
            "delete, truncate', publish_via_partition_root = true)",
        )  # fmt: skip
    absent = [table for table in tables if table.name not in there.tables]
    if absent:
        listed = _listed(absent, access)
        statement = f"ALTER PUBLICATION {identifier(name)} ADD TABLE {listed}"
        _run(session, access, name, statement, absent)


def grow(session: PostgresSession, access: Access, name: str, tables: Sequence[PgTable]) -> None:
    """Have a publication with these tables, of which some came later: each is added for itself.

    Raises:
        TableError: as `ensure` says, of the first table that cannot be added.
        OperationError: as `ensure`, where it is not of one table.
    """
    there = read_publication(session, name)
    published = [table for table in tables if there is not None and table.name in there.tables]
    ensure(session, access, name, published)
    for table in tables:
        if table not in published:
            try:
                ensure(session, access, name, [*published, table])
            except OperationError as error:
                raise TableError.of(table.name, error) from None


def drop_publication(session: PostgresSession, name: str) -> None:
    """Drop a publication that this user owns; one of somebody else stays."""
    owned = session.run(
        f"SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = {literal(name)}"
    )
    if owned and owned[0][0]:
        session.run(f"DROP PUBLICATION {identifier(name)}")


def _listed(tables: Sequence[PgTable], access: Access) -> str:
    parts = []
    for table in tables:
        text = access.rows.get(table.name)
        where = f" WHERE {condition(text, access, table.name)}" if text else ""
        only = "ONLY " if table.kind == "r" else ""
        parts.append(f"{only}{qualified(table.schema, table.relation)}{where}")
    return ", ".join(parts)


def _run(
    session: PostgresSession, access: Access, name: str, statement: str, tables: Sequence[PgTable]
) -> None:
    """Run a statement in a transaction that is kept only if its conditions harm nobody."""
    session.run("BEGIN")
    try:
        try:
            session.run_alone(statement)
        except OperationError as error:
            if error.code != POSTGRESQL_RIGHT_MISSING.code:
                raise
            raise PUBLICATION_UNUSABLE(
                where=access.task, why=error.why, publication=name, statement=statement,
                reason="this user may not create or change it",
            ) from None  # fmt: skip
        _check_conditions(session, access, tables)
    except BaseException:
        session.run("ROLLBACK")
        raise
    session.run("COMMIT")


def _check_conditions(session: PostgresSession, access: Access, tables: Sequence[PgTable]) -> None:
    """A condition on a column that is not part of the identity makes the source's updates fail."""
    for table in tables:
        if table.name not in access.rows or table.identity == "f":
            continue
        used = session.run(
            "SELECT DISTINCT a.attname FROM pg_publication_rel r JOIN pg_depend d "
            "ON d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid "
            "AND d.refobjsubid > 0 JOIN pg_attribute a ON a.attrelid = d.refobjid "
            f"AND a.attnum = d.refobjsubid WHERE r.prrelid = {table.oid}"
        )
        outside = sorted({row[0] for row in used} - set(table.key))
        if outside:
            raise ROW_FILTER_OUTSIDE_IDENTITY(
                where=access.task, table=table.name, columns=", ".join(outside),
                relation=qualified(table.schema, table.relation),
            )  # fmt: skip
