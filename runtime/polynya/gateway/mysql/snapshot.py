"""The first load: a table in chunks, each with a view and a place in the binlog of its own.

Views cost nothing and take no lock, and where the key can be followed none is held for longer than
a chunk takes: the server keeps no old rows for us, and nothing is lost by a kill. It is exact
because the place of each row decides between it and the changes of the stream, not the order in
which they were read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from polynya.gateway.mysql.catalog import Table
from polynya.gateway.mysql.keyset import Keyset, keyset_of
from polynya.gateway.mysql.moments import MARIADB, end_view, has_transactions, open_view
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.reading import Cursor, Cursors, as_now, given, query
from polynya.gateway.mysql.rows import Place, envelope, line_of
from polynya.gateway.mysql.session import Session
from polynya.gateway.reading_order import KeyChangedError, another_key
from polynya.gateway.source import Access, Chunk, Key, SourceTable, Whole
from polynya.model.errors import OperationError


class MysqlSnapshot:
    """Views of a server, for several threads; each has a session of its own while it reads."""

    def __init__(self, access: Access, first: Place) -> None:
        """`first` is the moment at which the load begins."""
        self._access, self._first = access, first
        self._tables: dict[str, Table] = {}
        self._idle: list[Session] = []
        self._cursors = Cursors()
        self._lock = threading.Lock()

    @property
    def source(self) -> Mapping[str, Any]:
        """Where the load begins; each chunk says its own place, which is not before it."""
        return self._first.source()

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of the chunk that was read last of a table."""
        known = self._tables.get(table.name)
        if known is None:
            with self._session() as session:
                known = self._look(session, table)
        return envelope(known, self._first.connector)

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
            place = open_view(session, self._first.connector)
            known = self._look(session, table)
            key = keyset_of(known)
            values = self._values(table, key, after)
            chunk = None
            if key is not None:
                conditions = [] if values is None else [key.beyond(values)]
                bound = _bound(session, known, key, conditions, rows)
                if bound is not None:
                    conditions.append(key.up_to(bound))
                line, sql = (
                    line_of(known, place),
                    query(known, [*conditions, *given(where, self._access, table.name)]),
                )
                lines = [line(row) for row in session.stream(sql, f"reading {table.name}")]
                last = None if bound is None else key.reading.place(bound)
                chunk = Chunk(b"".join(lines), len(lines), last, bound is None)
            end_view(session)
        return chunk

    def _begun(self, table: SourceTable, where: str | None) -> Cursor:
        """A view of a table that stays open until all of it was read."""
        session = Session(self._access)
        try:
            place = open_view(session, self._first.connector)
            return self._cursor(session, self._look(session, table), place, where)
        except BaseException:
            session.close()
            raise

    def _cursor(self, session: Session, table: Table, place: Place, where: str | None) -> Cursor:
        found = session.stream(
            query(table, given(where, self._access, table.full_name)), f"reading {table.full_name}"
        )
        line = line_of(table, place)
        return Cursor(session, found, lambda _, row: line(row))

    @contextmanager
    def whole(self, table: SourceTable, rows: int, where: str | None) -> Iterator[Whole]:
        """All rows of a table, and the place in the binlog up to which they have all.

        Raises:
            OperationError: POLYNYA-GTW-051, the server does not tell that place.
        """
        with self._session() as session:
            place = open_view(session, self._first.connector)
            known = self._look(session, table)
            self._require_exact(session, known)
            seen = {"file": place.file, "pos": place.position}
            yield Whole(seen, self._cursor(session, known, place, where).chunks(rows))
            end_view(session)

    def _require_exact(self, session: Session, table: Table) -> None:
        """See that the rows of a view are those of its place in the binlog, and no others."""
        why = None
        if self._first.connector != MARIADB:
            why = "MySQL does not tell which changes a view of its tables has"
        elif not has_transactions(session, table.engine):
            why = f"its engine {table.engine} has no transactions"
        if why is not None:
            raise OperationError(
                "POLYNYA-GTW-051",
                f"{table.full_name} has no key, and its load and its changes cannot be told "
                f"apart: {why}",
                where=self._access.task,
                state="nothing of the table has landed; the other tables go on",
                fix="give the table a primary key, or load it in a task of its own with "
                "`update_method: reload`",
            )

    def close(self) -> None:
        """End the sessions."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()
        self._cursors.close()

    def _look(self, session: Session, table: SourceTable) -> Table:
        """The table as it is now: rows and their schema have to fit."""
        known = self._tables[table.name] = as_now(session, self._access, table.name)
        return known

    def _values(
        self, table: SourceTable, key: Keyset | None, after: Key | None
    ) -> tuple[str, ...] | None:
        """The values of the key behind which it goes on; None: from the beginning."""
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
    def _session(self) -> Iterator[Session]:
        """A session; after an error it is not used again."""
        with self._lock:
            session = self._idle.pop() if self._idle else None
        session = session or Session(self._access)
        try:
            yield session
        except BaseException:
            session.close()
            raise
        with self._lock:
            self._idle.append(session)


def _bound(
    session: Session, table: Table, key: Keyset, conditions: list[str], rows: int
) -> tuple[str, ...] | None:
    """The last key of a chunk, found in the index alone; None: the rest is not more than it."""
    where = f" WHERE {conditions[0]}" if conditions else ""
    row = session.one(
        f"SELECT {key.selected} FROM {quoted(table.database, table.name)}{where}"
        f" ORDER BY {key.order} LIMIT {max(rows, 1) - 1}, 1",
        f"reading {table.full_name}",
    )
    return None if row is None else tuple(str(value) for value in row)
