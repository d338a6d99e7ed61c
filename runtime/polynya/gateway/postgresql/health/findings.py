"""What a test of a connection says: each thing that a capture needs, and how to have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.gateway.postgresql.health.room import Room, room_findings
from polynya.gateway.postgresql.publication import read_publication
from polynya.gateway.postgresql.refusals import deadly_types, without_identity
from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.sql import identifier, qualified
from polynya.gateway.postgresql.tables import PgTable, read_tables
from polynya.gateway.source import Access, Finding
from polynya.model.errors import PolynyaError

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


def findings_of(access: Access, *, slot: str, publication: str) -> tuple[Finding, ...]:
    """All that there is to say; a server that cannot be reached is one finding."""
    try:
        with Session(access) as session:
            return tuple(_findings(session, access, slot, publication))
    except PolynyaError as error:
        told = f"{error.message}: {error.why}" if error.why else error.message
        return (Finding(ok=False, what=told, fix=error.fix or ""),)


def _findings(session: Session, access: Access, slot: str, publication: str) -> Iterator[Finding]:
    (facts,) = session.run(_FACTS)
    version, number, level, free, senders, limit, replicates, may_create, tls, timeout = facts[:-1]
    encrypted = {"verify": "TLS, verified", "require": "TLS, not verified"}.get(
        access.tls, "no TLS"
    )
    detail = f" ({tls})" if tls else ""
    yield Finding(ok=True, what=f"PostgreSQL {version} lets {access.user} in, {encrypted}{detail}")
    if facts[-1] and access.follows:
        yield Finding(
            ok=False, what="the server is a standby, of which changes cannot be captured",
            fix="capture from the primary; loads with `update_method: reload` may read here",
        )  # fmt: skip
        return
    yield Finding(
        ok=number >= _OLDEST, what=f"version {version}",
        fix="" if number >= _OLDEST else "use PostgreSQL 14 or newer",
    )  # fmt: skip
    if not access.follows:
        yield from _unread(session)
        return
    yield Finding(
        ok=level == "logical", what=f"wal_level is {level}",
        fix="" if level == "logical" else "set wal_level = logical, and restart the server",
    )  # fmt: skip
    yield Finding(
        ok=bool(replicates), what=f"{access.user} may {'' if replicates else 'not '}replicate",
        fix="" if replicates else f"ALTER ROLE {identifier(access.user)} REPLICATION",
    )  # fmt: skip
    yield from room_findings(session, slot, Room(free, senders, limit, timeout))
    yield _publication(session, publication, may_create=may_create)
    yield from _tables(session)
    types = deadly_types(session)
    if types:
        yield Finding(
            ok=False, what=f"the stream cannot be read with these types: {_some(types)}",
            fix="use the enum itself instead of a domain over it; drop enums without labels",
        )  # fmt: skip


def _publication(session: Session, name: str, *, may_create: bool) -> Finding:
    there = read_publication(session, name)
    if there is None:
        return Finding(
            ok=may_create,
            what=f"publication {name} is not there, and this user may "
            f"{'' if may_create else 'not '}make one",
            fix="" if may_create else "let the owner of the tables run: CREATE PUBLICATION "
            f"{identifier(name)} FOR TABLE … WITH (publish_via_partition_root = true)",
        )  # fmt: skip
    well = there.by_root and not there.lacks
    return Finding(
        ok=well, what=f"publication {name} has {len(there.tables)} tables",
        fix="" if well else f"ALTER PUBLICATION {identifier(name)} SET (publish = 'insert, "
        "update, delete, truncate', publish_via_partition_root = true)",
    )  # fmt: skip


def _unread(session: Session) -> Iterator[Finding]:
    unreadable = [row[0] for row in session.run(_UNREADABLE)]
    if unreadable:
        yield Finding(
            ok=True, what=f"{len(unreadable)} tables cannot be read: {_some(unreadable)}",
            fix="GRANT USAGE ON SCHEMA … and GRANT SELECT ON … for what is to be captured",
        )  # fmt: skip


def _tables(session: Session) -> Iterator[Finding]:
    yield from _unread(session)
    tables = read_tables(session)
    bare = without_identity(tables)
    if bare:
        first = qualified(bare[0].schema, bare[0].relation)
        yield Finding(
            ok=True,
            what=f"{len(bare)} tables have no replica identity: {_some([t.name for t in bare])}",
            fix=f"exclude them, or ALTER TABLE {first} REPLICA IDENTITY FULL",
        )  # fmt: skip
    yield from _left_out(tables)


def _left_out(tables: tuple[PgTable, ...]) -> Iterator[Finding]:
    columns = [f"{one.name}.{name} ({why})" for one in tables for name, why in one.left_out]
    if columns:
        yield Finding(ok=True, what=f"{len(columns)} columns are left out: {_some(columns)}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
