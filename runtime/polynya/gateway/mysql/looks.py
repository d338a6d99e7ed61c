"""Views that need no binlog, and no right but to read: for loads without changes.

Each table is read by one query, as it was at one moment, and takes what has no changes in a binlog:
views, tables without key, engines without transactions. The rows of all tables stand at one place
in the order of events, so that an event right before it empties what an earlier load held.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from polynya.gateway.mysql.catalog import Column, Table
from polynya.gateway.mysql.moments import begin_view, clock, end_view, place_of_view
from polynya.gateway.mysql.reading import Cursor, Cursors, as_now, given, query
from polynya.gateway.mysql.rows import Place, envelope, line_of
from polynya.gateway.mysql.session import Session
from polynya.gateway.mysql.types.encoders import whole
from polynya.gateway.mysql.types.table import Coding, Facts
from polynya.gateway.source import ROW_NUMBER, Access, Chunk, Key, Offset, SourceTable, Whole
from polynya.model.errors import OperationError

#: The name of a file that no binlog has: nothing can be streamed from there on.
LOAD_FILE: Final = "polynya_load."
_FIRST: Final = (1, 4)
_NUMBER: Final = Column(
    Facts(ROW_NUMBER, "bigint", "bigint(20)", nullable=False), Coding({"type": "int64"}, whole)
)


def place_of_load(session: Session, connector: str, beyond: Offset | None) -> Place:
    """A place for the rows of a load: behind the binlog, if there is one, and behind `beyond`."""
    begin_view(session)
    said = place_of_view(session)
    end_view(session)
    places = [_FIRST]
    if said is not None:
        places.append(_numbers(*said))
    if beyond:
        number, position = _numbers(beyond["file"], beyond["pos"])
        # The event that empties a table stands between the rows of both loads.
        places.append((number, position + 2))
    number, position = max(places)
    return Place(connector, f"{LOAD_FILE}{number:06d}", position, clock(session))


def _numbers(file: Any, position: Any) -> tuple[int, int]:
    """A place in a binlog as it is compared."""
    return int(str(file).rpartition(".")[2]), int(position)


class MysqlLook:
    """Views of a server, each of one table; for several threads."""

    def __init__(self, access: Access, place: Place) -> None:
        """`place` is that of all rows."""
        self._access, self._place = access, place
        self._tables: dict[str, Table] = {}
        self._cursors = Cursors()

    @property
    def source(self) -> Mapping[str, Any]:
        """What the rows carry."""
        return self._place.source()

    def envelope(self, table: SourceTable) -> Mapping[str, Any]:
        """The Connect schema of the rows that were read last of a table."""
        return envelope(self._tables[table.name], self._place.connector)

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

    def whole(
        self,
        table: SourceTable,
        rows: int,  # noqa: ARG002
        where: str | None,  # noqa: ARG002
    ) -> AbstractContextManager[Whole]:
        """Nothing to tell rows from changes by. Raises ValueError."""
        raise ValueError(f"{table.name}: a view without a place in the binlog")

    def close(self) -> None:
        """End the sessions."""
        self._cursors.close()

    def _begun(self, name: str, where: str | None) -> Cursor:
        session = Session(self._access)
        try:
            begin_view(session)
            known = as_now(session, self._access, name)
            found = session.stream(
                query(known, given(where, self._access, name)), f"reading {name}"
            )
        except BaseException:
            session.close()
            raise
        if known.key:
            self._tables[name] = known
            line = line_of(known, self._place)
            return Cursor(session, found, lambda _, row: line(row))
        self._tables[name] = numbered = replace(
            known, columns=(_NUMBER, *known.columns), key=(ROW_NUMBER,)
        )
        of_number = line_of(numbered, self._place)
        return Cursor(session, found, lambda at, row: of_number((b"%d" % at, *row)))

    def _cut(self, name: str, why: str) -> OperationError:
        return OperationError(
            "POLYNYA-GTW-056", f"{name} cannot be read on in the middle of its load: {why}",
            where=self._access.task,
            state="rows of this load have landed, beside those of the load before",
            fix="remove the cause, and load it again: `polynya landing reload "
            f"{self._access.task}`",
        )  # fmt: skip
