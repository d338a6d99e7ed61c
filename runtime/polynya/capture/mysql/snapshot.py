"""The first load of a MariaDB or MySQL table: chunks, each from a consistent view.

Views cost nothing and take no lock. For a table with a usable key, no view stays open for longer
than one chunk: the server keeps no old rows for the load, and a kill loses nothing. The load is
exact because the position of each row decides between it and the changes of the stream, not the
order of reading.

Loads without changes (`MysqlReloadSnapshot`) need no binlog and only the right to read. One query
reads each table as of one moment, including tables that a binlog cannot follow: views, tables
without key, engines without transactions. The rows of all tables have one position in the order of
events, so an event right before it can empty what an earlier load left.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from polynya.capture.mysql import growing
from polynya.capture.mysql.catalog import MysqlColumn, MysqlTable
from polynya.capture.mysql.rows import (
    BinlogPosition,
    Keyset,
    TableCursor,
    TableCursors,
    as_now,
    envelope,
    given,
    grown_query,
    keyset_of,
    line_of,
    query,
)
from polynya.capture.mysql.session import MysqlSession, literal, quoted, where_of
from polynya.capture.mysql.types import Coding, ColumnDefinition, whole
from polynya.capture.reading_order import KeyChangedError, another_key
from polynya.capture.source import (
    ROW_NUMBER,
    Access,
    Chunk,
    GrowingColumn,
    Key,
    Offset,
    SourceTable,
    WholeTable,
)
from polynya.model.error_catalogue.capture_databases import (
    BINLOG_INCOMPLETE,
    KEYLESS_LOAD_NOT_SEPARABLE,
    LOAD_NOT_CONTINUABLE,
    MYSQL_NOT_CAPTURED,
    MYSQL_UNREACHABLE,
)
from polynya.model.errors import OperationError

MARIADB: Final = "mariadb"


def open_view(session: MysqlSession, connector: str) -> BinlogPosition:
    """Begin a transaction that sees one moment; no lock is taken.

    MariaDB says where exactly that moment is in its binlog. MySQL does not: there it is a place
    shortly before, after which the stream repeats some changes that the view has already.

    Raises:
        DependencyError: POLYNYA-GTW-040, a transaction of MySQL does not end.
        OperationError: POLYNYA-GTW-050, the server has no binlog.
    """
    if connector != MARIADB:
        return _open_view_of_mysql(session, connector)
    begin_view(session)
    position = position_of_view(session)
    if position is None:
        raise BINLOG_INCOMPLETE(
            reason="the server has no binlog", state="nothing was read",
            fix="start the server with log_bin, or load without changes: `update_method: reload`",
        )  # fmt: skip
    return BinlogPosition(connector, *position, clock(session))


#: A transaction of MySQL that is in the binlog is visible after its fsync, or, with semisynchronous
#: replication, after the answer of a replica, for which the server waits 10 seconds by default.
_COMMIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.005
_OWNED: Final = re.compile(r"(?:([0-9a-f-]{36})(?::[a-z_]\w*)?)?:(\d+)#", re.IGNORECASE)


def _open_view_of_mysql(session: MysqlSession, connector: str) -> BinlogPosition:
    """Begin a view that has all transactions of the binlog up to its place.

    MySQL writes a transaction to the binlog before others see it. A server owns the GTID of a
    transaction from before it writes it until it is visible. So the view opens when all
    transactions that were in between at the end of the binlog are not any more.

    `gtids` are read first: each of them is at the place or before it.
    """
    gtids = gtids_executed(session)
    file, position = binlog_end(session)
    invisible, deadline = _owned_gtids(session), time.monotonic() + _COMMIT_SECONDS
    while invisible:
        if time.monotonic() > deadline:
            raise MYSQL_UNREACHABLE(
                activity="opening a view",
                reason=f"the transaction {':'.join(min(invisible))} does not end its commit",
            )
        time.sleep(_POLL_SECONDS)
        invisible &= _owned_gtids(session)
    begin_view(session)
    return BinlogPosition(connector, file, position, clock(session), gtids)


def gtids_executed(session: MysqlSession) -> str:
    """The transactions that a MySQL server has committed, as a set on one line."""
    (gtids,) = session.rows("SELECT @@GLOBAL.gtid_executed")[0]
    return "".join(str(gtids or "").split())


def _owned_gtids(session: MysqlSession) -> set[tuple[str, str]]:
    """The transactions that MySQL is committing, as server and number."""
    (owned,) = session.rows("SELECT @@GLOBAL.gtid_owned")[0]
    return owned_gtids(str(owned or ""))


def owned_gtids(text: str) -> set[tuple[str, str]]:
    """What `gtid_owned` says: `SERVER:NUMBER#THREAD:NUMBER#THREAD, SERVER:…`."""
    found, server = set[tuple[str, str]](), ""
    for match in _OWNED.finditer(text):
        server = match[1] or server
        found.add((server, match[2]))
    return found


def begin_view(session: MysqlSession) -> None:
    """Begin a transaction that sees one moment, wherever that is in a binlog."""
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def position_of_view(session: MysqlSession) -> tuple[str, int] | None:
    """Where the view of a session is in MariaDB's binlog; None: there is none."""
    rows = session.rows("SHOW STATUS LIKE 'Binlog_snapshot_%'")
    status = {str(name): str(value) for name, value in rows}
    file = status.get("Binlog_snapshot_file")
    return (file, int(status["Binlog_snapshot_position"])) if file else None


def clock(session: MysqlSession) -> int:
    """The server's clock, in milliseconds since 1970."""
    (millis,) = session.rows("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")[0]
    return int(millis or 0)


def end_view(session: MysqlSession) -> None:
    """End the transaction of a view."""
    session.run("ROLLBACK")


def has_transactions(session: MysqlSession, engine: str) -> bool:
    """Whether a view sees the tables of an engine as they were at its moment."""
    answer = session.rows(
        f"SELECT TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = {literal(engine)}"
    )
    return answer == [("YES",)]


def offset_at(session: MysqlSession, access: Access, position: BinlogPosition) -> dict[str, Any]:
    """A moment as Debezium's offset.

    Raises:
        OperationError: POLYNYA-GTW-048, the binlog is empty: without the number of a transaction
            to begin after, a kill within the first one would lose the rest of it.
    """
    offset: dict[str, Any] = {"file": position.file, "pos": position.position}
    if position.connector == MARIADB:
        gtids = gtids_at(session, position.file, position.position)
        if not gtids:
            raise MYSQL_NOT_CAPTURED(
                "the server's binlog has no transaction yet",
                where=where_of(access),
                fix="change a row, then start again",
            )
        return offset | {"gtids": gtids}
    if not position.gtids:
        raise MYSQL_NOT_CAPTURED(
            "the server has no transaction with a GTID yet",
            where=where_of(access),
            fix="change a row, then start again",
        )
    return offset | {"gtids": position.gtids}


def gtids_at(session: MysqlSession, file: str, position: int) -> str | None:
    """The last transactions before a place in MariaDB's binlog, one of each domain."""
    (gtids,) = session.rows(f"SELECT BINLOG_GTID_POS({literal(file)}, {position})")[0]
    return None if gtids is None else str(gtids)


def log_files(session: MysqlSession) -> list[tuple[str, int]]:
    """The files of the binlog that there are, oldest first, with their sizes in bytes."""
    rows = session.rows("SHOW BINARY LOGS", "listing the binlogs")
    return [(str(row[0]), int(row[1] or 0)) for row in rows]


def binlog_end(session: MysqlSession) -> tuple[str, int]:
    """The end of the binlog."""
    file, size = log_files(session)[-1]
    return file, size


#: The name of a file that no binlog has: nothing can be streamed from there on.
LOAD_FILE: Final = "polynya_load."
_FIRST: Final = (1, 4)
_NUMBER: Final = MysqlColumn(
    ColumnDefinition(ROW_NUMBER, "bigint", "bigint(20)", nullable=False),
    Coding({"type": "int64"}, whole),
)


def position_of_load(
    session: MysqlSession, connector: str, beyond: Offset | None
) -> BinlogPosition:
    """A place for the rows of a load: behind the binlog, if there is one, and behind `beyond`."""
    begin_view(session)
    view = position_of_view(session)
    end_view(session)
    candidates = [_FIRST]
    if view is not None:
        candidates.append(_numbers(*view))
    if beyond:
        number, position = _numbers(beyond["file"], beyond["pos"])
        # The event that empties a table stands between the rows of both loads.
        candidates.append((number, position + 2))
    number, position = max(candidates)
    return BinlogPosition(connector, f"{LOAD_FILE}{number:06d}", position, clock(session))


def _numbers(file: Any, position: Any) -> tuple[int, int]:
    """A place in a binlog as it is compared."""
    return int(str(file).rpartition(".")[2]), int(position)


class MysqlReloadSnapshot:
    """Views of a server for loads without changes, each of one table; for several threads."""

    def __init__(self, access: Access, position: BinlogPosition) -> None:
        """`place` is that of all rows."""
        self._access, self._position = access, position
        self._tables: dict[str, MysqlTable] = {}
        self._cursors = TableCursors()

    @property
    def source(self) -> Mapping[str, Any]:
        """What the rows carry."""
        return self._position.source()

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of the rows that were read last of a table."""
        return envelope(self._tables[table.name], self._position.connector)

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table; those without key have their number as key.

        Raises:
            DependencyError: what may pass.
            OperationError: POLYNYA-GTW-056, the view is gone that the rows before were of.
        """
        name = table.name
        if after is not None and not self._cursors.stands_at(name, after):
            raise self._cut(name, "the view that its first rows are of is gone")
        try:
            return self._cursors.read(name, after, rows, lambda: self._begun(name, where))
        except OperationError as error:
            if after is None:
                raise
            raise self._cut(name, error.message) from error

    def newest(self, table: SourceTable, column: str) -> str | None:
        """The greatest value of a column as text; None: it has none."""
        session = MysqlSession(self._access)
        try:
            return growing.newest(session, as_now(session, self._access, table.name), column)
        finally:
            session.close()

    def read_grown(
        self,
        table: SourceTable,
        column: GrowingColumn,
        after: Key | None,
        rows: int,
        where: str | None,
    ) -> Chunk:
        """The next rows in the order of a column, as `GrowingSnapshot` says."""
        conditions = [*given(where, self._access, table.name), *growing.conditions(column, after)]

        def begun() -> TableCursor:
            cursor = self._opened(
                table.name, lambda now: grown_query(now, column.name, conditions), has_value=True
            )
            # Another view continues behind rows of the one before.
            cursor.at = 0 if after is None else int(after[0])
            return cursor

        return self._cursors.read(table.name, after, rows, begun)

    def lacks_index(self, table: SourceTable, column: str) -> str | None:
        """Why the database reads the whole table for each extraction; None: it has an index."""
        session = MysqlSession(self._access)
        try:
            return growing.lacks_index(session, as_now(session, self._access, table.name), column)
        finally:
            session.close()

    def whole(
        self,
        table: SourceTable,
        rows: int,  # noqa: ARG002
        where: str | None,  # noqa: ARG002
    ) -> AbstractContextManager[WholeTable]:
        """Nothing to tell rows from changes by. Raises ValueError."""
        raise ValueError(f"{table.name}: a view without a place in the binlog")

    def close(self) -> None:
        """End the sessions."""
        self._cursors.close()

    def _begun(self, name: str, where: str | None) -> TableCursor:
        return self._opened(name, lambda now: query(now, given(where, self._access, name)))

    def _opened(
        self, name: str, sql: Callable[[MysqlTable], str], *, has_value: bool = False
    ) -> TableCursor:
        """A cursor for a query of a table as it is now, in a view of its own."""
        session = MysqlSession(self._access)
        try:
            begin_view(session)
            table = as_now(session, self._access, name)
            rows = session.stream(sql(table), f"reading {name}")
        except BaseException:
            session.close()
            raise
        if table.key:
            self._tables[name] = table
            line = line_of(table, self._position)
            return TableCursor(session, rows, lambda _, row: line(row), has_value=has_value)
        self._tables[name] = numbered = replace(
            table, columns=(_NUMBER, *table.columns), key=(ROW_NUMBER,)
        )
        of_number = line_of(numbered, self._position)
        return TableCursor(session, rows, lambda at, row: of_number((b"%d" % at, *row)))

    def _cut(self, name: str, why: str) -> OperationError:
        task = self._access.task
        return LOAD_NOT_CONTINUABLE(where=task, task=task, table=name, reason=why)


class MysqlSnapshot:
    """Views of a server, for several threads; each has a session of its own while it reads."""

    def __init__(self, access: Access, first: BinlogPosition) -> None:
        """`first` is the moment at which the load begins."""
        self._access, self._first = access, first
        self._tables: dict[str, MysqlTable] = {}
        self._idle: list[MysqlSession] = []
        self._cursors = TableCursors()
        self._lock = threading.Lock()

    @property
    def source(self) -> Mapping[str, Any]:
        """Where the load begins; each chunk says its own place, which is not before it."""
        return self._first.source()

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of the chunk that was read last of a table."""
        definition = self._tables.get(table.name)
        if definition is None:
            with self._session() as session:
                definition = self._look(session, table)
        return envelope(definition, self._first.connector)

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table, in the order of its key.

        With a key that cannot be followed they come by one query, from one view. When that has
        ended in the middle they come from the beginning again, which their keys make harmless.

        Raises:
            DependencyError: what may pass; POLYNYA-GTW-045, the table changed meanwhile.
            OperationError: POLYNYA-GTW-047, its key is another one since `after` was read.
        """
        chunk = None
        if after is None or not self._cursors.stands_at(table.name, after):
            chunk = self._page(table, after, rows, where)
        begin = partial(self._begun, table, where)
        return chunk or self._cursors.read(table.name, after, rows, begin)

    def _page(
        self, table: SourceTable, after: Key | None, rows: int, where: str | None
    ) -> Chunk | None:
        """The next rows in the order of the key; None: they are read in another way."""
        with self._session() as session:
            position = open_view(session, self._first.connector)
            definition = self._look(session, table)
            key = keyset_of(definition)
            values = self._values(table, key, after)
            chunk = None
            if key is not None:
                conditions = [] if values is None else [key.beyond(values)]
                bound = _bound(session, definition, key, conditions, rows)
                if bound is not None:
                    conditions.append(key.up_to(bound))
                line, sql = (
                    line_of(definition, position),
                    query(definition, [*conditions, *given(where, self._access, table.name)]),
                )
                lines = [line(row) for row in session.stream(sql, f"reading {table.name}")]
                last = None if bound is None else key.reading.place(bound)
                chunk = Chunk(b"".join(lines), len(lines), last, bound is None)
            end_view(session)
        return chunk

    def _begun(self, table: SourceTable, where: str | None) -> TableCursor:
        """A view of a table that stays open until all of it was read."""
        session = MysqlSession(self._access)
        try:
            position = open_view(session, self._first.connector)
            return self._cursor(session, self._look(session, table), position, where)
        except BaseException:
            session.close()
            raise

    def _cursor(
        self, session: MysqlSession, table: MysqlTable, position: BinlogPosition, where: str | None
    ) -> TableCursor:
        rows = session.stream(
            query(table, given(where, self._access, table.full_name)), f"reading {table.full_name}"
        )
        line = line_of(table, position)
        return TableCursor(session, rows, lambda _, row: line(row))

    @contextmanager
    def whole(self, table: SourceTable, rows: int, where: str | None) -> Iterator[WholeTable]:
        """All rows of a table, and the place in the binlog up to which they have all.

        Raises:
            OperationError: POLYNYA-GTW-051, the server does not report that position.
        """
        with self._session() as session:
            position = open_view(session, self._first.connector)
            definition = self._look(session, table)
            self._require_exact(session, definition)
            seen = {"file": position.file, "pos": position.position}
            yield WholeTable(seen, self._cursor(session, definition, position, where).chunks(rows))
            end_view(session)

    def _require_exact(self, session: MysqlSession, table: MysqlTable) -> None:
        """See that the rows of a view are those of its place in the binlog, and no others."""
        why = None
        if self._first.connector != MARIADB:
            why = "MySQL does not tell which changes a view of its tables has"
        elif not has_transactions(session, table.engine):
            why = f"its engine {table.engine} has no transactions"
        if why is not None:
            raise KEYLESS_LOAD_NOT_SEPARABLE(
                where=self._access.task, table=table.full_name, reason=why
            )

    def close(self) -> None:
        """End the sessions."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()
        self._cursors.close()

    def _look(self, session: MysqlSession, table: SourceTable) -> MysqlTable:
        """The table as it is now: rows and their schema have to fit."""
        definition = self._tables[table.name] = as_now(session, self._access, table.name)
        return definition

    def _values(
        self, table: SourceTable, key: Keyset | None, after: Key | None
    ) -> tuple[str, ...] | None:
        """The values of the key behind which it continues; None: from the beginning."""
        if key is None:
            by_number = after is None or (len(after) == 1 and isinstance(after[0], int))
            if not by_number:
                raise another_key(self._access, table.name)
            return None
        try:
            return key.reading.values(after)
        except KeyChangedError:
            raise another_key(self._access, table.name) from None

    @contextmanager
    def _session(self) -> Iterator[MysqlSession]:
        """A session; after an error it is not used again."""
        with self._lock:
            session = self._idle.pop() if self._idle else None
        session = session or MysqlSession(self._access)
        try:
            yield session
        except BaseException:
            session.close()
            raise
        with self._lock:
            self._idle.append(session)


def _bound(
    session: MysqlSession, table: MysqlTable, key: Keyset, conditions: list[str], rows: int
) -> tuple[str, ...] | None:
    """The last key of a chunk, found in the index alone; None: the rest is not more than it."""
    where = f" WHERE {conditions[0]}" if conditions else ""
    row = session.first(
        f"SELECT {key.selected} FROM {quoted(table.database, table.name)}{where}"
        f" ORDER BY {key.order} LIMIT {max(rows, 1) - 1}, 1",
        f"reading {table.full_name}",
    )
    return None if row is None else tuple(str(value) for value in row)
