"""Debezium's settings for the stream of a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from polynya.gateway.postgresql.sql import literal
from polynya.gateway.postgresql.tables import PgColumn, PgTable
from polynya.gateway.source import Access

#: Together these decide the text of every value: `types/` writes rows of loads the same way.
_FIXED: Final = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "disabled",
    "slot.drop.on.stop": "false",
    "snapshot.mode": "no_data",
    "decimal.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    "interval.handling.mode": "string",
    "binary.handling.mode": "bytes",
    "hstore.handling.mode": "map",
    "money.fraction.digits": "2",
    "include.unknown.datatypes": "true",
}
#: Where other tables keep the log growing, a message of our own lets the slot move: each time the
#: engine gives a sign of life, and only when that much of the log is not confirmed.
_QUIET_BYTES: Final = 16 << 20
_MOVE_ON: Final = (
    "SELECT pg_logical_emit_message(true, 'polynya', 'alive') FROM pg_replication_slots "
    "WHERE slot_name = {slot} "
    "AND pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) > {bytes}"
)
#: Lists in whose shape Debezium can say that they were not sent
#: (`UnchangedToastedReplicationMessageColumn`, 3.5). Any other one cannot be converted then.
_LISTS_WITH_MARK: Final = frozenset({
    "text[]", "character varying[]", "character[]", "json[]", "jsonb[]", "bytea[]", "integer[]",
    "date[]", "bigint[]", "uuid[]",
})  # fmt: skip
#: A pattern that no name meets: an empty list is a list of all tables.
_NONE: Final = "(?!)"
_TLS_MODES: Final = {"verify": "verify-full", "require": "require", "disable": "disable"}


def properties_of(
    access: Access,
    *,
    slot: str,
    publication: str,
    tables: Sequence[PgTable],
    trusted: str | None = None,
) -> dict[str, str]:
    """The settings; they have the password.

    `trusted` is a file that has certificates of authorities and nothing else, by which the server
    is proven; None: those of Java.
    """
    given = {
        **_FIXED,
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password,
        "database.dbname": access.database,
        "slot.name": slot,
        "publication.name": publication,
        "heartbeat.action.query": _MOVE_ON.format(slot=literal(slot), bytes=_QUIET_BYTES),
        "table.include.list": _patterns(table.name for table in tables) or _NONE,
        **_tls(access, trusted),
        "event.converting.failure.handling.mode": _where_it_fails(tables),
    }
    left_out = [f"{table.name}.{name}" for table in tables for name, _ in table.left_out]
    if left_out:
        given["column.exclude.list"] = _patterns(left_out)
    keys = [
        f"{_escaped(table.name)}:{','.join(map(_escaped, table.key))}"
        for table in tables
        if table.key and not table.key_is_primary
    ]
    if keys:
        given["message.key.columns"] = ";".join(keys)
    return given


def _where_it_fails(tables: Sequence[PgTable]) -> str:
    """What becomes of a value that Debezium cannot convert.

    With `fail` it names table and column. With `warn` the value is NULL, and a column that may not
    be NULL ends the stream without a name. Lists whose elements may not be NULL by their schema,
    but are by the database, need that: there is no other way to have them at all. `warn` must not
    be used where an unsent list could become NULL that way.
    """
    lists = [
        (table, one)
        for table in tables
        for one in table.columns
        if one.nullable and one.written.schema["type"] == "array"
    ]
    optional = {id(one): one.written.schema["items"]["optional"] for _, one in lists}
    is_risky = any(
        optional[id(one)] and table.identity != "f" and not _has_mark(one) for table, one in lists
    )
    return "fail" if is_risky or all(optional.values()) else "warn"


def _has_mark(column: PgColumn) -> bool:
    """Whether Debezium can say of a list that it was not sent."""
    return re.sub(r"\([^)]*\)", "", column.type_name) in _LISTS_WITH_MARK


def _tls(access: Access, trusted: str | None) -> dict[str, str]:
    given = {"database.sslmode": _TLS_MODES[access.tls]}
    if access.tls != "verify":
        return given
    if trusted is None:
        return {**given, "database.sslfactory": "org.postgresql.ssl.DefaultJavaSSLFactory"}
    return {**given, "database.sslrootcert": trusted}


def _patterns(names: Iterable[str]) -> str:
    return ",".join(map(_escaped, names))


def _escaped(name: str) -> str:
    """A name as a pattern of Java, without commas: they would part a list of patterns."""
    return re.sub(r"[^\w]", lambda found: f"\\x{{{ord(found[0]):x}}}", name)
