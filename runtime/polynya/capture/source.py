"""The protocol of a captured database, and the registry of databases by connection type.

A database returns rows as the lines that the Debezium reader takes, so loaded and streamed rows
have one form. It raises `DependencyError` for problems that may pass (refused, reset, restarting),
and `OperationError` for those that an operator has to fix.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, runtime_checkable

from polynya.model.error_catalogue.capture import DATABASE_TYPE_NOT_CAPTURED
from polynya.model.errors import PolynyaError

Key: TypeAlias = tuple[Any, ...]
"""Values of a row by which a table is read in order, as JSON has them."""

Offset: TypeAlias = Mapping[str, Any]
"""A place in a database's stream, as Debezium's connector writes it."""

SeenTransactions: TypeAlias = Mapping[str, Any]
"""Which transactions a view has, as `polynya.capture.landing.stream` reads it; JSON."""

ROW_NUMBER: Final = "polynya_row"
"""The column that is the key of rows without one, in loads without changes."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a capture reaches a database. Never shown as a whole: it has the password.

    Attributes:
        type: `postgresql`, `mariadb` and so on, as the connection says.
        tls: `verify` (the certificate and the name in it), `require` (some certificate) or
            `disable`.
        ca: path of the authorities' certificates; None: those of the machine.
        task: name of the landing, from which default names are made.
        slot: name of the replication slot, where there are slots; None: made from `task`.
        publication: likewise.
        rows: condition in the database's SQL by table: only rows that meet it are captured.
        follows: changes are captured; False: tables are only loaded, which needs less.
        jars: files and folders with the connector and the driver of the database, where they are
            the user's.
        properties: further settings of the connector, likewise.
        keys: columns that identify the rows of views and of tables without key, by name.
    """

    type: str
    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: str = "verify"
    ca: str | None = None
    task: str = "capture"
    slot: str | None = None
    publication: str | None = None
    rows: Mapping[str, str] = field(default_factory=dict)
    follows: bool = True
    jars: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GrowingColumn:
    """A column that grows with each insert and update, by which new rows are found.

    Attributes:
        name: of the column.
        kind: of its values.
        overlap: how far before the last value the next extraction begins: of a number the
            difference, of times microseconds.
        mark: the greatest value of former extractions, as the database writes it; None: all rows
            are read.
    """

    name: str
    kind: Literal["number", "time"]
    overlap: int
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column, and the Kafka Connect schema of its values in the envelope (JSON of Connect).

    `inexact` has the words of `polynya.capture.inexact` for values that have no exact form.
    """

    name: str
    type_name: str
    nullable: bool
    connect: Mapping[str, Any]
    inexact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table: `public.orders` in PostgreSQL, `shop.orders` in MariaDB.

    Attributes:
        key: columns of its primary key, () without one.
        rows_estimate: as the database's statistics have it.
        bytes_estimate: likewise.
        identity: of a table that was dropped and made again, or swapped for another one, it is
            another; None: unknown.
        columns_made: how many columns it has had since it was made, 0 where nobody counts.
        columns_filled: which of them, counted so, was the last that has a default: rows that were
            there when it was added got that, and the stream says nothing of it.
        is_followed: the stream has its changes. Of a table that was loaded it is false when
            somebody took it out of the stream.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    rows_estimate: int | None = None
    bytes_estimate: int | None = None
    identity: str | None = None
    columns_made: int = 0
    columns_filled: int = 0
    is_followed: bool = True

    @property
    def lacks_key(self) -> bool:
        """No row of it has a key. Where its columns are not known, Debezium tells with each row."""
        return bool(self.columns) and not self.key


@dataclass(frozen=True, slots=True)
class ConnectionFinding:
    """One line of a connection's test: whether it is well, what was looked at, what helps."""

    ok: bool
    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a table, read in one go.

    Attributes:
        lines: event lines for the Debezium reader, each with its end of line.
        rows: how many.
        last: where the next chunk continues; None when `rows` is 0.
        is_last: nothing comes after it.
    """

    lines: bytes
    rows: int
    last: Key | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the stream is behind; None is not known.

    Attributes:
        notes: sentences for an operator, such as the danger to the database's disk.
        log_bytes: of the log that the server keeps for this stream alone.
        log_limit_bytes: with more of it the server gives the stream up; None: it has no limit.
    """

    bytes: int | None
    seconds: float | None
    notes: tuple[str, ...] = ()
    log_bytes: int | None = None
    log_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class WholeTable:
    """All rows of a table as they were at one moment.

    Attributes:
        seen: what that moment has of the stream.
        chunks: the rows, to be taken once and one after the other.
    """

    seen: SeenTransactions
    chunks: Iterator[Chunk]


class SourceSnapshot(Protocol):
    """A consistent view of a database. Several threads read from it at a time."""

    @property
    def source(self) -> Mapping[str, Any]:
        """What its rows carry as `source`: their place in the order of all changes.

        Empty where Debezium loads the rows: then nothing is to be read here.
        """
        ...

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of the `value` of its rows of a table, as Debezium writes it."""
        ...

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table.

        Args:
            table: as `SourceDatabase.tables` has it.
            after: `last` of the chunk before it; None: from the beginning.
            rows: about so many; a table that cannot be read in parts comes whole.
            where: a condition in the database's SQL, of the user.
        """
        ...

    def whole(
        self, table: SourceTable, rows: int, where: str | None
    ) -> AbstractContextManager[WholeTable]:
        """All rows of a table without key, of one moment, exactly.

        Args:
            table: as `SourceDatabase.tables` has it.
            rows: about so many come at a time.
            where: as for `read`.

        Raises:
            OperationError: the database cannot say which events of the stream they have.
        """
        ...

    def close(self) -> None:
        """End its sessions."""
        ...


@runtime_checkable
class GrowingSnapshot(SourceSnapshot, Protocol):
    """A view whose rows can be found by a column that grows; each table by one thread at a time."""

    def newest(self, table: SourceTable, column: str) -> str | None:
        """The greatest value of a column as text; None: it has none. Infinity and NaN are none."""
        ...

    def read_grown(
        self,
        table: SourceTable,
        column: GrowingColumn,
        after: Key | None,
        rows: int,
        where: str | None,
    ) -> Chunk:
        """The next rows in the order of a column, from `overlap` before its mark on.

        Rows that have no value there, or infinity or NaN, are not among them. `last` of a chunk is
        the number of rows so far and the value of the last one.

        Args:
            table: as `SourceDatabase.tables` has it.
            column: the one that grows.
            after: `last` of the chunk before it. Of another view, rows with its value come again.
            rows: about so many.
            where: a condition in the database's SQL, of the user.
        """
        ...

    def lacks_index(self, table: SourceTable, column: str) -> str | None:
        """Why the database reads the whole table for each extraction; None: it has an index."""
        ...


@dataclass(frozen=True, slots=True)
class CaptureStart:
    """The first moment of a capture: the stream continues from `offset`, exactly after `snapshot`.

    `history` is what Debezium's history of schemas begins with, of databases whose stream has none.
    """

    offset: Offset
    snapshot: SourceSnapshot
    history: bytes = b""


class SourceDatabase(Protocol):
    """A database that is captured. It connects when it is first asked."""

    @property
    def connector(self) -> str:
        """Which connector of Debezium reads its stream: `postgresql`, `mariadb` or `mysql`."""
        ...

    def findings(self) -> tuple[ConnectionFinding, ...]:
        """What a test of the connection says. A wrong set-up is a finding, not an error."""
        ...

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        """The tables that there are now, by name; `%` and `*` in a pattern are any text."""
        ...

    def refused(self, include: Sequence[str]) -> Mapping[str, PolynyaError]:
        """The relations that patterns name and that are not captured so, by name, with why."""
        ...

    def begin(self, tables: Sequence[SourceTable]) -> CaptureStart:
        """Make what the stream needs (slot, publication), and the view that it begins at.

        What an earlier attempt has left that captured nothing is made again.
        """
        ...

    def resume(self, tables: Sequence[SourceTable]) -> SourceSnapshot:
        """A later view, for what is still to be loaded; new tables join the stream before it.

        Raises:
            TableError: one of the tables cannot be captured. Nothing of it was changed.
        """
        ...

    def look(self, tables: Sequence[SourceTable], beyond: Offset | None) -> CaptureStart:
        """A view from which everything is loaded, of a capture that follows no changes.

        It makes nothing in the database, and takes what has no changes: views, tables without key.

        Args:
            tables: what is loaded.
            beyond: the place of an earlier load; the rows of this one stand behind it.
        """
        ...

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Debezium's settings for its stream, those of the connector. They have the password.

        Args:
            tables: that there are.
            without: names of those among them whose changes are not to be read.
        """
        ...

    def lag(self, offset: Offset) -> Lag:
        """How far the database is beyond an offset."""
        ...

    def lost(self, offset: Offset) -> str | None:
        """Why the stream cannot continue from an offset; None: it can."""
        ...

    def drop(self) -> None:
        """Remove what `begin` made. Only when an operator asks for it."""
        ...

    def close(self) -> None:
        """End its sessions; of a closed database nothing is asked any more."""
        ...


# Modules are imported when they are needed: each brings a driver.
_IMPLEMENTATIONS: Final = {
    "postgresql": ("polynya.capture.postgresql.database", "PostgresDatabase"),
    "mariadb": ("polynya.capture.mysql.database", "MysqlDatabase"),
    "mysql": ("polynya.capture.mysql.database", "MysqlDatabase"),
    **dict.fromkeys(
        ("sqlserver", "oracle", "db2", "mongodb"),
        ("polynya.capture.generic", "GenericDatabase"),
    ),
}


def open_database(access: Access) -> SourceDatabase:
    """The database that an access leads to; nothing is connected yet.

    Raises:
        OperationError: POLYNYA-GTW-001, there is no such kind.
    """
    implementation = _IMPLEMENTATIONS.get(access.type)
    if implementation is None:
        supported = ", ".join(sorted(_IMPLEMENTATIONS))
        raise DATABASE_TYPE_NOT_CAPTURED(where=access.task, type=access.type, supported=supported)
    module, name = implementation
    return cast("SourceDatabase", getattr(import_module(module), name)(access))


_PEM: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL | re.ASCII
)


def certificates_of(pem: str) -> list[str]:
    """The certificates of a text in PEM, each as PEM; keys and comments are left out."""
    return [str(certificate) for certificate in _PEM.findall(pem)]


#: Name of the engine, and what topics and offsets are called after.
NAME: Final = "capture"
#: Topic of the ends of transactions.
TRANSACTIONS: Final = f"{NAME}.transaction"

# What the engine gives in one go is collected, and its queue has to hold more than that. Both are
# small: rows in Java take several times the memory of their lines, and what lives long in a heap
# that is full of short lives is copied again and again.
_BATCH_RECORDS: Final = 1_024
_QUEUE_RECORDS: Final = 2 * _BATCH_RECORDS
# A change waits so long in the engine at most before it is given.
_POLL_MILLIS: Final = 100

_EXACT: Final = {
    "tombstones.on.delete": "false",
    # Truncations are skipped by default.
    "skipped.operations": "none",
    "provide.transaction.metadata": "true",
    "decimal.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    "interval.handling.mode": "string",
    "binary.handling.mode": "bytes",
    "event.processing.failure.handling.mode": "fail",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "converter.schemas.enable": "false",
    # NULL in a column with a default stays NULL.
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
    "converter.replace.null.with.default": "false",
    # Whoever supervises the process starts it again, from what has landed.
    "errors.max.retries": "0",
}
_BINLOG: Final = {
    "bigint.unsigned.handling.mode": "precise",
    "include.schema.changes": "true",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
}


@dataclass(frozen=True, slots=True)
class Scratch:
    """Files of one run of the engine. All that matters of them is in the landed batches."""

    folder: Path

    @property
    def offsets(self) -> Path:
        """Where the engine begins."""
        return self.folder / "offsets.dat"

    @property
    def history(self) -> Path:
        """Schemas of the past, of connectors that read a binlog."""
        return self.folder / "history.jsonl"


def engine_settings(
    connector: str,
    own: Mapping[str, str],
    scratch: Scratch,
    *,
    roll_bytes: int,
    roll_seconds: float,
    has_history: bool = False,
    unsent: str = "",
) -> dict[str, str]:
    """All settings of an engine.

    Args:
        connector: `postgresql`, `mariadb` or `mysql`.
        own: those of the database, which win.
        scratch: files of this run.
        roll_bytes: so much waits in the engine at most.
        roll_seconds: so often what was read lands at most; records are asked for more often.
        has_history: schemas of the past are in the scratch folder.
        unsent: the text for a column that the source did not send; empty where it sends all.
    """
    millis = min(max(int(roll_seconds * 1000), 10), _POLL_MILLIS)
    settings = {
        "name": NAME,
        "topic.prefix": NAME,
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(scratch.offsets),
        # The connector confirms to the database after each landed batch, never before.
        "offset.flush.interval.ms": "0",
        "max.batch.size": str(_BATCH_RECORDS),
        "max.queue.size": str(_QUEUE_RECORDS),
        "max.queue.size.in.bytes": str(roll_bytes),
        "poll.interval.ms": str(millis),
        "heartbeat.interval.ms": "10000",
        **_EXACT,
    }
    if connector == "postgresql":
        settings["snapshot.mode"] = "no_data"
        settings["publication.autocreate.mode"] = "disabled"
    else:
        settings.update(_BINLOG)
        settings["schema.history.internal.file.filename"] = str(scratch.history)
        # Without a history the schemas of now are taken for those at the offset.
        settings["snapshot.mode"] = "no_data" if has_history else "recovery"
    if unsent:
        settings["unavailable.value.placeholder"] = unsent
    return {**settings, **own}


def heartbeats_move(settings: Mapping[str, str]) -> bool:
    """Whether the offset of a heartbeat is an exact position to continue from.

    Of a binlog it is, and where other tables change all the time nothing else would move it.
    """
    return "postgresql" not in settings["connector.class"]
