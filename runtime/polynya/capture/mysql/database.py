"""MariaDB and MySQL as captured databases, with Debezium's settings for their binlog.

Debezium reads rows of the binlog by the table definitions in its schema history. The initial
history is written here from the catalog. So Debezium looks at no table itself and takes no lock,
and types that it reads wrongly get other names.

Java has no setting for a PEM file, and not every machine has `keytool`. So trusted certificates are
written as a Java key store (JKS, version 2).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import ssl
import struct
import tempfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from polynya.capture.mysql.catalog import (
    MysqlColumn,
    MysqlTable,
    matching,
    read_tables,
    refusal,
    refuse_later,
    refuse_unfollowed,
    refuse_unnumbered,
    refuse_unread,
)
from polynya.capture.mysql.health import binlog_settings, findings_of, lag_of, lost_of, of_binlog
from polynya.capture.mysql.rows import NAME
from polynya.capture.mysql.session import MysqlSession, quoted
from polynya.capture.mysql.snapshot import (
    MysqlReloadSnapshot,
    MysqlSnapshot,
    end_view,
    offset_at,
    open_view,
    position_of_load,
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
from polynya.model.error_catalogue.capture_databases import (
    BINLOG_INCOMPLETE,
    MYSQL_TABLE_CHANGED,
    MYSQL_TLS_FAILED,
)
from polynya.model.errors import PolynyaError
from polynya.model.patterns import joined


def history_of(tables: Iterable[MysqlTable], offset: Mapping[str, Any]) -> bytes:
    """The initial schema history: a line for each table, at the place of an offset.

    Views are not in it, since no row of the log is of one.
    """
    return b"".join(
        json.dumps(
            {
                "source": {"server": NAME}, "position": dict(offset), "ts_ms": 0,
                "databaseName": table.database, "ddl": definition(table), "tableChanges": [],
            },
            ensure_ascii=False,
        ).encode() + b"\n"
        for table in tables
        if not table.is_view
    )  # fmt: skip


def definition(table: MysqlTable) -> str:
    """The statement that makes a table with the columns and the key of another one."""
    parts = [_column(column) for column in table.columns]
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(quoted(name) for name in table.key)})")
    return f"CREATE TABLE {quoted(table.database, table.name)} ({', '.join(parts)})"


def _column(column: MysqlColumn) -> str:
    facts = column.facts
    kind = (column.coding.history if column.coding else "longblob") or facts.plain
    charset = f" CHARACTER SET {facts.charset}" if facts.charset else ""
    return f"{quoted(facts.name)} {kind}{charset} {'NULL' if facts.nullable else 'NOT NULL'}"


_CLASSES: Final = {
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
}
_TLS: Final = {
    "mariadb": {"verify": "verify-full", "require": "trust", "disable": "disable"},
    "mysql": {"verify": "verify_identity", "require": "required", "disable": "disabled"},
}
#: Numbers below are those of real servers.
_FIRST_SERVER: Final = 1_000_000_000


def properties(
    access: Access,
    include: Sequence[str],
    exclude: Sequence[str],
    *,
    without: Collection[str] = (),
) -> dict[str, str]:
    """All settings of the connector, but for a store of certificates. They have the password.

    Args:
        access: how the server is reached.
        include: patterns of the tables' names; tables that come later are captured at once.
        exclude: likewise.
        without: names of tables that are not read either.
    """
    return {
        "connector.class": _CLASSES[access.type],
        "database.hostname": access.host,
        "database.port": str(access.port),
        "database.user": access.user,
        "database.password": access.password,
        "database.server.id": str(server_number(access.task)),
        "database.ssl.mode": _TLS[access.type][access.tls],
        "table.include.list": java_pattern(include, exclude, without),
        # The years 0 to 99 are themselves.
        "enable.time.adjuster": "false",
        # A NULL stays NULL where the column has a default.
        "converter.replace.null.with.default": "false",
        "inconsistent.schema.handling.mode": "fail",
        "snapshot.locking.mode": "none",
    }


def server_number(task: str) -> int:
    """By which the server knows the reader: of two with one number the server ends the older."""
    return _FIRST_SERVER + zlib.crc32(task.encode()) % _FIRST_SERVER


def java_pattern(
    include: Sequence[str], exclude: Sequence[str], without: Collection[str] = ()
) -> str:
    """Patterns of names as one regular expression of Java, in which there is no comma.

    `without` has names that are not patterns.
    """
    wanted = "|".join(_java(pattern) for pattern in include)
    refused = [
        *(_java(pattern) for pattern in exclude),
        *(_exactly(pattern) for pattern in sorted(without)),
    ]
    if not refused:
        return f"(?:{wanted})"
    return f"(?!(?:{'|'.join(refused)})$)(?:{wanted})"


def _java(pattern: str) -> str:
    return joined([_exactly(part) for part in re.split("[%*]", pattern)])


def _exactly(name: str) -> str:
    return "".join(c if re.fullmatch(r"\w", c, re.ASCII) else f"\\x{{{ord(c):x}}}" for c in name)


_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED: Final = 2
_SALT: Final = b"Mighty Aphrodite"


def java_trust_store(pem: str, password: str) -> bytes:
    """A Java key store with the certificates; the password only guards it against damage.

    Raises ValueError for a bad PEM.
    """
    certificates = [ssl.PEM_cert_to_DER_cert(certificate) for certificate in certificates_of(pem)]
    if not certificates:
        raise ValueError("there is no certificate in it")
    store = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        store += struct.pack(">I", _TRUSTED) + _text(f"authority-{number}") + struct.pack(">Q", 0)
        store += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return store + hashlib.sha1(password.encode("utf-16-be") + _SALT + store).digest()  # noqa: S324


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


#: So often the definitions of tables are read again when they change while a capture begins.
_ATTEMPTS: Final = 20


class MysqlDatabase:
    """A server. It connects when it is first asked, and again after a failure."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._open: MysqlSession | None = None
        self._include: Sequence[str] = ()
        self._exclude: Sequence[str] = ()
        self._scratch: Path | None = None

    @property
    def connector(self) -> str:
        """`mariadb` or `mysql`."""
        return self._access.type

    def findings(self) -> tuple[ConnectionFinding, ...]:
        """What a test of the connection says."""
        return findings_of(self._access)

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        """The tables that patterns choose; a view only where its own name is written.

        The stream follows the same patterns.
        """
        self._include, self._exclude = tuple(include), tuple(exclude)
        catalog = self._tables()
        names = sorted(
            name
            for name in matching(catalog, include, exclude)
            if not catalog[name].is_view or name in include
        )
        return tuple(catalog[name].source_table() for name in names)

    def refused(self, include: Sequence[str]) -> Mapping[str, PolynyaError]:
        """Views, and tables of which the stream or a load has not all as it is."""
        catalog = self._tables()
        named = {name: catalog[name] for name in sorted(matching(catalog, include, ()))}
        found = {name: refusal(self._access, table) for name, table in named.items()}
        return {name: error for name, error in found.items() if error is not None}

    def begin(self, tables: Sequence[SourceTable]) -> CaptureStart:
        """The moment at which the capture begins; nothing is made on the server.

        Raises:
            OperationError: POLYNYA-GTW-048, what would not be captured as it is.
            DependencyError: POLYNYA-GTW-045, definitions change without end; what may pass.
        """
        session = self._session()
        self._refuse_incomplete(session)
        before = self._tables()
        refuse_unfollowed(self._access, _of(tables, before))
        for _ in range(_ATTEMPTS):
            try:
                position = open_view(session, self.connector)
                offset = offset_at(session, self._access, position)
            finally:
                end_view(session)
            after = self._tables()
            if _definitions(before) == _definitions(after):
                history = history_of(after.values(), offset)
                return CaptureStart(offset, MysqlSnapshot(self._access, position), history)
            before = after
        raise MYSQL_TABLE_CHANGED(
            where=self._access.task, activity="the start of the capture",
            reason=f"definitions changed in {_ATTEMPTS} attempts", state="nothing was captured",
        )  # fmt: skip

    def resume(self, tables: Sequence[SourceTable]) -> MysqlSnapshot:
        """Views for what is still to be loaded.

        Raises:
            TableError: POLYNYA-GTW-048, a table would not be captured as it is.
        """
        session = self._session()
        refuse_later(self._access, _of(tables, self._tables()))
        position = open_view(session, self.connector)
        end_view(session)
        return MysqlSnapshot(self._access, position)

    def look(self, tables: Sequence[SourceTable], beyond: Offset | None) -> CaptureStart:
        """Views without a binlog, by whoever may read. Each table is of a moment of its own.

        Raises:
            OperationError: POLYNYA-GTW-048, what would not be captured as it is.
        """
        chosen = _of(tables, self._tables())
        refuse_unread(self._access, chosen)
        refuse_unnumbered(self._access, chosen)
        position = position_of_load(self._session(), self.connector, beyond)
        offset = {"file": position.file, "pos": position.position}
        return CaptureStart(offset, MysqlReloadSnapshot(self._access, position))

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Debezium's settings; a store with the authority's certificate is made for it.

        Raises:
            OperationError: POLYNYA-GTW-050, the binlog would not have all changes as whole rows.
        """
        self._refuse_incomplete(self._session())
        include = self._include or tuple(table.name for table in tables)
        given = properties(self._access, include, self._exclude, without=without)
        if self._access.tls == "verify" and self._access.ca:
            given |= self._trust(self._access.ca)
        return given

    def lag(self, offset: Offset) -> Lag:
        """How far the binlog is beyond an offset. Raises POLYNYA-GTW-050, as it is asked often."""
        session = self._session()
        self._refuse_incomplete(session)
        return lag_of(session, offset)

    def lost(self, offset: Offset) -> str | None:
        """Why the binlog does not continue from an offset; for any thread, by its own session."""
        session = MysqlSession(self._access)
        try:
            return lost_of(session, self.connector, offset)
        finally:
            session.close()

    def drop(self) -> None:
        """Nothing: a reader leaves nothing on the server."""

    def close(self) -> None:
        """End the session."""
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _tables(self) -> dict[str, MysqlTable]:
        keys = self._access.keys
        return {
            name: table.with_key(keys.get(name, ()))
            for name, table in read_tables(self._session()).items()
        }

    def _session(self) -> MysqlSession:
        """The session, or a new one when it does not answer any more."""
        if self._open is not None:
            with suppress(PolynyaError):
                self._open.run("DO 1")
                return self._open
            self._open.close()
        self._open = MysqlSession(self._access)
        return self._open

    def _refuse_incomplete(self, session: MysqlSession) -> None:
        wrong = [finding.what for finding in of_binlog(binlog_settings(session)) if not finding.ok]
        if wrong:
            raise BINLOG_INCOMPLETE(where=self._access.task, reason=", ".join(wrong))

    def _trust(self, pem: str) -> dict[str, str]:
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix="polynya-trust-"))
        store, password = self._scratch / "authorities.jks", secrets.token_hex(8)
        try:
            store.write_bytes(java_trust_store(Path(pem).read_text("utf-8"), password))
        except (OSError, ValueError) as error:
            reason = f"the certificates of `tls.ca` cannot be used: {error}"
            raise MYSQL_TLS_FAILED(where=pem, reason=reason) from error
        return {
            "database.ssl.truststore": str(store),
            "database.ssl.truststore.password": password,
        }


def _of(tables: Sequence[SourceTable], catalog: Mapping[str, MysqlTable]) -> list[MysqlTable]:
    """Those that are still there."""
    return [catalog[table.name] for table in tables if table.name in catalog]


def _definitions(tables: Mapping[str, MysqlTable]) -> dict[str, object]:
    return {name: (table.columns, table.key) for name, table in tables.items()}
