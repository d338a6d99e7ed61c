"""The first load: a table in chunks, each with a view and a place in the binlog of its own.

Views cost nothing and take no lock, so none is held for longer than a chunk takes: the server keeps
no old rows for us, and nothing is lost by a kill. It is exact because the place of each row decides
between it and the changes of the stream, not the order in which they were read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from polynya.gateway.mysql.catalog import Table, read_tables
from polynya.gateway.mysql.keyset import beyond, key_kinds, key_values, order, up_to
from polynya.gateway.mysql.moments import MARIADB, end_view, has_transactions, open_view
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.rows import Place, envelope, line_of, select_list
from polynya.gateway.mysql.session import Session
from polynya.gateway.source import Access, Chunk, Key, SourceTable, Whole
from polynya.model.errors import DependencyError, OperationError


class MysqlSnapshot:
    """Views of a server, for several threads; each has a session of its own while it reads."""

    def __init__(self, access: Access, first: Place) -> None:
        """`first` is the moment at which the load begins."""
        self._access, self._first = access, first
        self._tables: dict[str, Table] = {}
        self._idle: list[Session] = []
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
        """The next rows of a table; one without a key that can be followed comes whole.

        Raises:
            DependencyError: what may pass; POLYNYA-GTW-045, the table changed meanwhile.
            OperationError: POLYNYA-GTW-047, its key is another one since `after` was read.
        """
        with self._session() as session:
            place = open_view(session, self._first.connector)
            known = self._look(session, table)
            kinds = key_kinds(known)
            if after is not None and len(after) != len(kinds or ()):
                raise self._another_key(table)
            conditions = [] if after is None else [beyond(known, kinds or (), after)]
            bound = None
            if kinds:
                bound = _bound(session, known, kinds, conditions, rows)
            if kinds and bound is not None:
                conditions.append(up_to(known, kinds, bound))
            lines = self._lines(session, known, place, conditions, where)
            end_view(session)
        return Chunk(b"".join(lines), len(lines), bound, bound is None)

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
            yield Whole(seen, self._chunks(session, known, place, rows, where))
            end_view(session)

    def _chunks(
        self, session: Session, table: Table, place: Place, rows: int, where: str | None
    ) -> Iterator[Chunk]:
        query, line = self._query(table, [], where), line_of(table, place)
        found = session.stream(query, f"reading {table.full_name}")
        while lines := [line(row) for row in islice(found, rows)]:
            yield Chunk(b"".join(lines), len(lines), None, is_last=False)
        yield Chunk(b"", 0, None, is_last=True)

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

    def _look(self, session: Session, table: SourceTable) -> Table:
        """The table as it is now: rows and their schema have to fit."""
        known = read_tables(session, only=table.name).get(table.name)
        if known is None:
            raise DependencyError(
                "POLYNYA-GTW-045", f"the table {table.name} is gone, or may not be read any more",
                where=self._access.task, state="what has landed of it stays",
                fix="nothing to do when it was dropped or renamed",
            )  # fmt: skip
        self._tables[table.name] = known
        return known

    def _lines(
        self, session: Session, table: Table, place: Place, conditions: list[str],
        where: str | None,
    ) -> list[bytes]:  # fmt: skip
        line = line_of(table, place)
        query = self._query(table, conditions, where)
        return [line(row) for row in session.stream(query, f"reading {table.full_name}")]

    def _query(self, table: Table, conditions: list[str], where: str | None) -> str:
        both = [f"({one})" for one in (*conditions, *([where] if where else []))]
        sql = f"SELECT {select_list(table)} FROM {quoted(table.database, table.name)}"
        sql += f" WHERE {' AND '.join(both)}" if both else ""
        return sql + (f" ORDER BY {order(table)}" if key_kinds(table) else "")

    def _another_key(self, table: SourceTable) -> OperationError:
        return OperationError(
            "POLYNYA-GTW-047", f"the key of {table.name} was changed while the table was loaded",
            where=self._access.task, state="what has landed of it stays",
            fix=f"load it again: `polynya landing resume {self._access.task} --reload "
            f"{table.name}`",
        )  # fmt: skip

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
    session: Session, table: Table, kinds: tuple[str, ...], conditions: list[str], rows: int
) -> Key | None:
    """The last key of a chunk, found in the index alone; None: the rest is not more than it."""
    where = f" WHERE {conditions[0]}" if conditions else ""
    row = session.one(
        f"SELECT {order(table)} FROM {quoted(table.database, table.name)}{where}"
        f" ORDER BY {order(table)} LIMIT {max(rows, 1) - 1}, 1",
        f"reading {table.full_name}",
    )
    return None if row is None else key_values(kinds, row)
