"""Reading the rows of a table by one query, in parts that fit in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.gateway.conditions import condition
from polynya.gateway.mysql.catalog import Table, read_tables
from polynya.gateway.mysql.keyset import keyset_of
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.rows import select_list
from polynya.gateway.mysql.session import Session
from polynya.gateway.source import Access, Chunk, Key
from polynya.model.errors import DependencyError

Row: TypeAlias = Sequence[bytes | None]

#: Bytes of event lines that are held in memory at a time.
MOST_BYTES: Final = 32 << 20


def as_now(session: Session, access: Access, name: str) -> Table:
    """A table as it is now: rows and their schema have to fit. Raises POLYNYA-GTW-045."""
    known = read_tables(session, only=name).get(name)
    if known is None:
        raise DependencyError(
            "POLYNYA-GTW-045", f"the table {name} is gone, or may not be read any more",
            where=access.task, state="what has landed of it stays",
            fix="nothing to do when it was dropped or renamed",
        )  # fmt: skip
    return known


def given(where: str | None, access: Access, table: str) -> list[str]:
    """The condition of a load, checked. Raises OperationError POLYNYA-GTW-093."""
    return [condition(where, access, table)] if where else []


def query(table: Table, conditions: Sequence[str]) -> str:
    """The rows of a table that meet all conditions, in the order of a key that has one."""
    sql = f"SELECT {select_list(table)} FROM {quoted(table.database, table.name)}"
    sql += f" WHERE {' AND '.join(f'({one})' for one in conditions)}" if conditions else ""
    key = keyset_of(table)
    return sql + (f" ORDER BY {key.order}" if key else "")


@dataclass(slots=True)
class Cursor:
    """A query that is being read, by a session of its own.

    Attributes:
        rows: those that are still to come.
        line: makes the event line of a row, from the number of the row and its values.
        at: how many were read.
    """

    session: Session
    rows: Iterator[Row]
    line: Callable[[int, Row], bytes]
    at: int = 0

    def next(self, rows: int) -> Chunk:
        """About so many rows, fewer when they are long. Raises as `Session.stream`."""
        lines, size, is_last = list[bytes](), 0, False
        while len(lines) < rows and size < MOST_BYTES and not is_last:
            row = next(self.rows, None)
            if row is None:
                is_last = True
                continue
            line = self.line(self.at + len(lines) + 1, row)
            lines.append(line)
            size += len(line)
        self.at += len(lines)
        last = (self.at,) if lines else None
        return Chunk(b"".join(lines), len(lines), last, is_last)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All that is still to come, about so many rows at a time."""
        is_last = False
        while not is_last:
            chunk = self.next(rows)
            is_last = chunk.is_last
            yield chunk


class Cursors:
    """Tables that are read by one query each; a table by one thread at a time."""

    def __init__(self) -> None:
        self._open: dict[str, Cursor] = {}
        self._lock = threading.Lock()

    def stands_at(self, name: str, after: Key) -> bool:
        """Whether a table can be read on behind the chunk that had this `last`."""
        with self._lock:
            return name in self._open and self._open[name].at == after[0]

    def read(self, name: str, after: Key | None, rows: int, begin: Callable[[], Cursor]) -> Chunk:
        """The next rows of a table, from its beginning where no cursor stands behind `after`.

        Args:
            name: of the table.
            after: `last` of the chunk before it.
            rows: about so many.
            begin: makes a cursor.
        """
        with self._lock:
            cursor = self._open.pop(name, None)
        if cursor is not None and (after is None or cursor.at != after[0]):
            cursor.session.close()
            cursor = None
        cursor = cursor or begin()
        try:
            chunk = cursor.next(rows)
        except BaseException:
            cursor.session.close()
            raise
        if chunk.is_last:
            cursor.session.close()
            return chunk
        with self._lock:
            self._open[name] = cursor
        return chunk

    def close(self) -> None:
        """End the sessions; rows that were not taken are not waited for."""
        with self._lock:
            ended, self._open = [*self._open.values()], {}
        for cursor in ended:
            cursor.session.close()
