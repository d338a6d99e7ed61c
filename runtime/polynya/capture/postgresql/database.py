"""PostgreSQL as a captured database, with Debezium's settings for its stream."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from polynya.capture.postgresql import health, slots
from polynya.capture.postgresql.health import lag_of, lost_of, lsn_of
from polynya.capture.postgresql.session import PostgresSession, authorities, literal
from polynya.capture.postgresql.snapshot import (
    PostgresReloadSnapshot,
    PostgresSnapshot,
    export,
    source_of,
)
from polynya.capture.postgresql.tables import (
    PgColumn,
    PgTable,
    chosen,
    is_named,
    read_tables,
    refusal,
    refuse,
    refuse_later,
)
from polynya.capture.source import (
    Access,
    CaptureStart,
    ConnectionFinding,
    Lag,
    Offset,
    SourceTable,
    certificates_of,
)
from polynya.model.config.capture import slot_name_of
from polynya.model.error_catalogue.capture_databases import POSTGRESQL_TABLE_MISSING
from polynya.model.errors import PolynyaError

#: These settings decide the text of every value; `types.py` writes rows of loads the same way.
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
        (table, column)
        for table in tables
        for column in table.columns
        if column.nullable and column.written.schema["type"] == "array"
    ]
    optional = {id(column): column.written.schema["items"]["optional"] for _, column in lists}
    is_risky = any(
        optional[id(column)] and table.identity != "f" and not _has_mark(column)
        for table, column in lists
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
    return re.sub(r"[^\w]", lambda match: f"\\x{{{ord(match[0]):x}}}", name)


#: What rows and events call the capture (Debezium's `topic.prefix`).
PREFIX: Final = "capture"
#: What rows of loads name as the version of their connector.
_VERSION: Final = "polynya"
_NOW: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8"
_Answer = TypeVar("_Answer")


class PostgresDatabase:
    """It connects when it is first asked; several threads may ask."""

    connector: Final = "postgresql"

    def __init__(self, access: Access) -> None:
        self._access = access
        name = slot_name_of(access.task)
        self._slot, self._publication = access.slot or name, access.publication or name
        self._tables: Mapping[str, PgTable] = {}
        self._session: PostgresSession | None = None
        self._scratch: Path | None = None
        self._lock = threading.Lock()

    def findings(self) -> tuple[ConnectionFinding, ...]:
        """What a test of the connection says."""
        return health.findings_of(self._access, slot=self._slot, publication=self._publication)

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        """The tables that patterns choose; a view only where its own name is written."""
        keys = self._access.keys
        catalog = {
            table.name: table.with_key(keys.get(table.name, ()))
            for table in self._asked(read_tables)
        }
        names = {
            name
            for name in chosen(catalog, include, exclude)
            if not catalog[name].not_captured or is_named(name, include)
        }
        self._tables = {**self._tables, **{name: catalog[name] for name in names}}
        followed = self._asked(lambda session: slots.tables_of(session, self._publication))
        return tuple(
            catalog[name].as_source(is_followed=name in followed) for name in sorted(names)
        )

    def refused(self, include: Sequence[str]) -> Mapping[str, PolynyaError]:
        """Views and the like, and of a capture that follows changes tables that would break it."""
        catalog = {table.name: table for table in self._asked(read_tables)}
        named = (catalog[name] for name in sorted(chosen(catalog, include, ())))
        found = {table.name: refusal(self._access, table) for table in named}
        return {name: error for name, error in found.items() if error is not None}

    def begin(self, tables: Sequence[SourceTable]) -> CaptureStart:
        """Make publication and slot; the view is that of the very place where the slot begins.

        Raises:
            OperationError: POLYNYA-GTW-025 to -030, something cannot be captured so.
            DependencyError: POLYNYA-GTW-020 or -033, and with it nothing or a slot that the next
                try takes.
        """
        chosen_tables = self._of(tables)
        with PostgresSession(self._access) as session:
            refuse(session, self._access, chosen_tables)
            slots.ensure(session, self._access, self._publication, chosen_tables)
            slots.make_room(session, self._access, self._slot)
            exported = slots.create_first(session, self._access, self._slot, chosen_tables)
            view = self._view(exported, exported.lsn)
        return CaptureStart(_offset(exported.lsn, view.source), view)

    def resume(self, tables: Sequence[SourceTable]) -> PostgresSnapshot:
        """A later view, next to the stream. Its rows stand behind the last transaction that it has.

        Raises:
            TableError: POLYNYA-GTW-025, -027, -030 or -035, a table cannot be captured.
        """
        chosen_tables = self._of(tables)
        with PostgresSession(self._access) as session:
            published = [table for table in chosen_tables if not table.not_captured]
            refuse_later(session, self._access, published)
            slots.grow(session, self._access, self._publication, published)
            exported, commit = slots.create_later(session, self._access, self._publication)
        return self._view(exported, commit)

    def look(self, tables: Sequence[SourceTable], beyond: Offset | None) -> CaptureStart:
        """A view without slot, publication or the right to replicate. What was made stays.

        Its place is behind an earlier load, also on a server whose log ends before that.
        """
        self._of(tables)
        exported, before = export(self._access), lsn_of(beyond or {})
        # The event that empties a table stands between the rows of both loads.
        lsn = exported.lsn if before is None else max(exported.lsn, before + 2)
        source = self._source(exported, lsn)
        return CaptureStart(
            _offset(lsn, source),
            PostgresReloadSnapshot(self._access, exported, self._tables, source),
        )

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Debezium's settings for the stream; they have the password."""
        read = self._of([table for table in tables if table.name not in without])
        return properties_of(
            self._access, slot=self._slot, publication=self._publication, tables=read,
            trusted=self._trusted(),
        )  # fmt: skip

    def lag(self, offset: Offset) -> Lag:
        """How far the database is beyond an offset, and what its slot costs it."""
        slot = self._asked(lambda session: slots.read_slot(session, self._slot))
        return lag_of(slot, offset, now=time.time())

    def lost(self, offset: Offset) -> str | None:
        """Why the stream cannot continue from an offset; None: it can."""
        slot, published = self._asked(
            lambda session: (
                slots.read_slot(session, self._slot),
                slots.read_publication(session, self._publication),
            )
        )
        if published is None:
            # What was written while there was none cannot be decoded any more.
            return f"publication {self._publication} is not there"
        return lost_of(self._slot, self._access.database, slot, offset)

    def drop(self) -> None:
        """Remove the slot, and the publication where this user owns it. Only when asked for."""
        with PostgresSession(self._access) as session:
            slots.drop_slot(session, self._slot)
            slots.drop_publication(session, self._publication)

    def close(self) -> None:
        """End the session; views are closed by themselves."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _trusted(self) -> str | None:
        """A file for Debezium with the authorities' certificates; None: those of Java."""
        given = authorities(self._access)
        if given is None or self._access.tls != "verify":
            return None
        self._scratch = self._scratch or Path(tempfile.mkdtemp(prefix="polynya-trust-"))
        made = self._scratch / "authorities.pem"
        # Java stops at anything else that such a file may have.
        made.write_text("\n".join(certificates_of(Path(given).read_text("utf-8"))) + "\n")
        return str(made)

    def _view(self, exported: slots.ExportedSnapshot, lsn: int) -> PostgresSnapshot:
        return PostgresSnapshot(self._access, exported, self._tables, self._source(exported, lsn))

    def _source(self, exported: slots.ExportedSnapshot, lsn: int) -> Mapping[str, Any]:
        """What rows of a view carry; a view of which it cannot be told is closed."""
        try:
            micros = int(self._asked(lambda session: session.run(_NOW))[0][0])
        except BaseException:
            exported.holder.close()
            raise
        return source_of(
            database=self._access.database, prefix=PREFIX, lsn=lsn, micros=micros, version=_VERSION
        )

    def _of(self, tables: Sequence[SourceTable]) -> list[PgTable]:
        missing = [table for table in tables if table.name not in self._tables]
        if missing:
            names = [table.name for table in missing]
            self.tables(names, ())
        gone = [table.name for table in tables if table.name not in self._tables]
        if gone:
            raise POSTGRESQL_TABLE_MISSING(where=self._access.task, tables=", ".join(gone))
        return [self._tables[table.name] for table in tables]

    def _asked(self, question: Callable[[PostgresSession], _Answer]) -> _Answer:
        """The answer in a session that is kept; one that failed is not used again."""
        with self._lock:
            if self._session is None:
                self._session = PostgresSession(self._access)
            try:
                return question(self._session)
            except BaseException:
                self._session.close()
                self._session = None
                raise


def _offset(lsn: int, source: Mapping[str, Any]) -> Offset:
    """A place as Debezium's connector writes it."""
    return {
        "lsn": lsn, "lsn_proc": lsn, "lsn_commit": lsn, "messageType": None, "txId": None,
        "ts_usec": int(source["ts_us"]),
    }  # fmt: skip
