"""A consistent view that needs no slot and no right to replicate: for loads without changes.

It takes what has no changes in the log: views, foreign and unlogged tables, tables without key.
Those without key are read by a cursor, and the number of a row there is its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from polynya.gateway.postgresql import lines, paging
from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.slots import Exported
from polynya.gateway.postgresql.sql import identifier, lsn_number
from polynya.gateway.postgresql.tables import PgColumn, PgTable
from polynya.gateway.postgresql.types.known import ROW_NUMBER_TYPE
from polynya.gateway.postgresql.views import View
from polynya.gateway.source import ROW_NUMBER, Access, Chunk, Key, SourceTable

#: Rows that are read first of what has no statistics; then their length is known.
_FIRST_ROWS: Final = 1_000
_CURSOR: Final = "polynya_rows"
# A server that follows another one has only replayed what that one wrote.
_PLACE: Final = (
    "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
    "ELSE pg_current_wal_insert_lsn() END)::text"
)


def export(access: Access) -> Exported:
    """A view of what is there now. Raises OperationError and DependencyError."""
    holder = Session(access)
    try:
        holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        view = holder.run("SELECT pg_export_snapshot()")[0][0]
        place = holder.run(_PLACE)[0][0]
    except BaseException:
        holder.close()
        raise
    return Exported(lsn_number(str(place)), str(view), holder)


def numbered(table: PgTable) -> PgTable:
    """A table whose rows have their number as key."""
    column = PgColumn(ROW_NUMBER, "bigint", nullable=False, written=ROW_NUMBER_TYPE)
    return replace(table, columns=(column, *table.columns), key=(ROW_NUMBER,))


class Look(View):
    """What a database was at one moment. A table without key is read by one thread at a time."""

    def __init__(
        self,
        access: Access,
        exported: Exported,
        tables: Mapping[str, PgTable],
        source: Mapping[str, Any],
    ) -> None:
        """Take over a view that was exported; it is closed with this."""
        self._numbered = frozenset(name for name, one in tables.items() if not one.key)
        shown = {
            name: one if name not in self._numbered else numbered(one)
            for name, one in tables.items()
        }
        super().__init__(access, exported, shown, source)
        self._cursors: dict[str, tuple[Session, int]] = {}

    def read(self, table: SourceTable, after: Key | None, rows: int, where: str | None) -> Chunk:
        """The next rows of a table. Raises as a view does."""
        if table.name not in self._numbered:
            return super().read(table, after, rows, where)
        found, begin = self._tables[table.name], 0 if after is None else int(after[0])
        if table.name not in self._lengths:
            rows = min(rows, _FIRST_ROWS)
        rows = paging.affordable(found, rows, self._lengths.get(found.name))
        session = self._at(found, begin, self._conditions(found, where))
        try:
            chunk = self._fetched(session, found, begin, rows)
            self._refuse_rewritten(session, found)
        except BaseException:
            self._end(session)
            raise
        if chunk.is_last:
            self._end(session)
        else:
            self._cursors[found.name] = session, begin + chunk.rows
        return chunk

    def _at(self, table: PgTable, begin: int, conditions: Sequence[str]) -> Session:
        """A session with a cursor that stands before a row."""
        session, at = self._cursors.pop(table.name, (None, 0))
        if session is not None and at == begin:
            return session
        if session is not None:
            self._end(session)
        session = self._borrowed()
        try:
            self._open_cursor(session, table, begin, conditions)
        except BaseException:
            self._end(session)
            raise
        return session

    def _open_cursor(
        self, session: Session, table: PgTable, begin: int, conditions: Sequence[str]
    ) -> None:
        condition = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = (
            f"SELECT {lines.ROW}.*, row_number() OVER () AS {identifier(ROW_NUMBER)} "
            f"FROM {table.sql} {lines.ROW}{condition}"
        )
        # What stands behind a view may need any plan.
        session.run("SET LOCAL enable_seqscan TO on")
        session.run("SET LOCAL cursor_tuple_fraction TO 1")
        session.run_alone(
            f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR "
            f"SELECT {lines.line(table, self._source)} FROM ({rows}) {lines.ROW}"
        )
        if begin:
            session.run(f"MOVE FORWARD {begin} IN {_CURSOR}")

    def _fetched(self, session: Session, table: PgTable, begin: int, rows: int) -> Chunk:
        found = session.run(f"FETCH FORWARD {rows} FROM {_CURSOR}")
        content = "".join(f"{row[0]}\n" for row in found).encode()
        if found:
            self._lengths[table.name] = len(content) / len(found)
        last = (begin + len(found),) if found else None
        return Chunk(content, len(found), last, is_last=len(found) < rows)
