"""Moments of MariaDB and MySQL: a view of one transaction, and hashes that the server computes.

The server joins no texts beyond its `max_allowed_packet`. A table with rows that are too long for
that is read row by row, and the hashes are computed here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from polynya.gateway.compare.columns import ComparedColumn, Layout
from polynya.gateway.compare.mysql_rows import collected, hashed, range_of
from polynya.gateway.compare.mysql_texts import Text, text_of
from polynya.gateway.compare.ranges import Range, RowState
from polynya.gateway.landing.places import place_of_offset, place_of_rows
from polynya.gateway.mysql.catalog import Table, read_tables
from polynya.gateway.mysql.moments import MARIADB, begin_view, newest_place, open_view
from polynya.gateway.mysql.quoting import quoted
from polynya.gateway.mysql.reading import given
from polynya.gateway.mysql.session import Session
from polynya.gateway.source import Access
from polynya.model.errors import OperationError

_HASH: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


class ComparedMysql:
    """See `ComparedDatabase`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def moment(self) -> MysqlMoment:
        """What is committed now. Raises what `Session` raises."""
        return MysqlMoment(Session(self._access), self._access)


class MysqlMoment:
    """A view, in a session of its own."""

    def __init__(self, session: Session, access: Access) -> None:
        self._session, self._access = session, access
        self._tables: dict[str, Table] = {}
        self._long: set[str] = set()
        file, at = _opened(session, access)
        self.position = f"{file}:{at}" if at else file
        self._place = place_of_rows(access.type, {"file": file, "pos": at}) if at else None

    def is_reached(self, offset: Mapping[str, Any]) -> bool:
        """Whether a capture that landed as far as an offset has all that is in the view."""
        if not offset or self._place is None:
            return False
        return place_of_offset(self._access.type, offset) >= self._place

    def columns(self, table: str) -> tuple[ComparedColumn, ...]:
        """Columns of a table."""
        found = []
        for column in self._table(table).columns:
            text = text_of(column.facts)
            why = "" if text else f"values of type {column.facts.type} are not compared"
            kind = text.kind if text else None
            found.append(ComparedColumn(column.facts.name, kind, why))
        return tuple(found)

    def count(self, table: str, where: str | None) -> int:
        """Number of rows."""
        (found,) = self._session.rows(f"SELECT COUNT(*) FROM {self._from(table, where)}")
        return int(found[0] or 0)

    def ranges(self, table: str, layout: Layout, bits: int, where: str | None) -> dict[int, Range]:
        """Number of rows and sum of hashes of each range that has rows."""
        if table not in self._long:
            total = "SUM(CAST(CONV(SUBSTR(row_hash, 1, 15), 16, 10) AS UNSIGNED))"
            answers = self._session.rows(
                f"SELECT {_number(bits)} AS n, COUNT(*), {total}, SUM(row_hash IS NULL)"
                f" FROM ({self._hashed(table, layout, where)}) AS h GROUP BY n",
                f"comparing {table}",
            )
            if not self._is_long(table, (int(one[3] or 0) for one in answers)):
                return {int(n or 0): Range(int(c or 0), int(t or 0)) for n, c, t, _ in answers}
        found: dict[int, Range] = {}
        for key, _, digest in self._read(table, layout, where):
            known = found.get(number := range_of(key, bits), Range(0, 0))
            found[number] = Range(known.rows + 1, known.total + int(digest[:15], 16))
        return found

    def rows(
        self, table: str, layout: Layout, bits: int, ranges: Collection[int], where: str | None
    ) -> dict[str, RowState]:
        """The rows of some ranges by the hash of their key."""
        wanted = frozenset(ranges)
        if not wanted:
            return {}
        sql = f"{_number(bits)} IN ({','.join(str(int(one)) for one in sorted(wanted))})"
        found = self._states(table, layout, where, sql)
        if found is not None:
            return found
        read = self._read(table, layout, where)
        return collected(one for one in read if range_of(one[0], bits) in wanted)

    def keys(
        self, table: str, layout: Layout, keys: Collection[str], where: str | None
    ) -> dict[str, RowState]:
        """The rows whose keys have one of the given hashes."""
        wanted = frozenset(one for one in keys if _HASH.fullmatch(one))
        if not wanted:
            return {}
        listed = ",".join(f"'{one}'" for one in sorted(wanted))
        found = self._states(table, layout, where, f"key_hash IN ({listed})")
        if found is not None:
            return found
        read = self._read(table, layout, where)
        return collected(one for one in read if one[0] in wanted)

    def close(self) -> None:
        """End the transaction with its session."""
        self._session.close()

    def _table(self, name: str) -> Table:
        known = self._tables.get(name) or read_tables(self._session, only=name).get(name)
        if known is None:
            raise OperationError(
                "POLYNYA-GTW-043", f"the table {name} is not there, or may not be read",
                where=self._access.task, state="nothing was changed",
                fix="leave it out of the comparison when it was dropped or renamed",
            )  # fmt: skip
        self._tables[name] = known
        return known

    def _from(self, name: str, where: str | None) -> str:
        table = self._table(name)
        conditions = given(where, self._access, name)
        return quoted(table.database, table.name) + "".join(f" WHERE {one}" for one in conditions)

    def _texts(self, table: str, layout: Layout) -> dict[str, Text]:
        facts = {column.facts.name: column.facts for column in self._table(table).columns}
        texts = {name: text_of(facts[name]) for name, _ in layout.columns}
        return {name: text for name, text in texts.items() if text is not None}

    def _hashed(self, table: str, layout: Layout, where: str | None) -> str:
        texts = self._texts(table, layout)
        row = _joined(list(texts.values()))
        key = _joined([texts[name] for name in layout.key]) if layout.key else row
        shown = ", ".join(f"COALESCE({texts[name].sql}, 'NULL')" for name in layout.key)
        shown = f"CONCAT_WS(', ', {shown})" if layout.key else key
        return (
            f"SELECT MD5({key}) AS key_hash, {shown} AS key_text, MD5({row}) AS row_hash"
            f" FROM {self._from(table, where)}"
        )

    def _states(
        self, table: str, layout: Layout, where: str | None, wanted: str
    ) -> dict[str, RowState] | None:
        """Rows as the server hashes them; None: some are too long for it."""
        if table in self._long:
            return None
        answers = self._session.rows(
            "SELECT key_hash, MIN(key_text), MIN(row_hash), COUNT(*), SUM(row_hash IS NULL)"
            f" FROM ({self._hashed(table, layout, where)}) AS h WHERE {wanted} GROUP BY key_hash",
            f"comparing {table}",
        )
        if self._is_long(table, (int(one[4] or 0) for one in answers)):
            return None
        return {
            str(key): RowState(str(text), str(digest), int(copies or 0))
            for key, text, digest, copies, _ in answers
        }

    def _is_long(self, table: str, missing: Iterator[int]) -> bool:
        """Whether hashes are missing; the table is read row by row from then on."""
        is_long = any(missing)
        if is_long:
            self._long.add(table)
        return is_long

    def _read(
        self, table: str, layout: Layout, where: str | None
    ) -> Iterator[tuple[str, str, str]]:
        """Each row: hash of its key, text of its key, hash of its compared columns."""
        texts = self._texts(table, layout)
        columns = ", ".join(one.value or one.sql for one in texts.values()) or "NULL"
        sql = f"SELECT {columns} FROM {self._from(table, where)}"
        return hashed(self._session.stream(sql, f"comparing {table}"), texts, layout.key)


def _opened(session: Session, access: Access) -> tuple[str, int]:
    """Begin a view; the place of the binlog that is not before it, 0 where none is needed."""
    if not access.follows:
        begin_view(session)
        return "now", 0
    place = open_view(session, access.type)
    # Of MySQL the place of a view is not known: it is not after the place of now.
    return (place.file, place.position) if access.type == MARIADB else newest_place(session)


def _joined(texts: Sequence[Text]) -> str:
    """SQL of one text of several; NULL also where it is too long for the server."""
    parts = [
        f"IF({one.checked} IS NULL, '-', CONCAT('+', CHAR_LENGTH({one.sql}), ':', {one.sql}))"
        for one in texts
    ]
    return f"CONCAT({', '.join(parts)})" if parts else "''"


def _number(bits: int) -> str:
    return f"(CAST(CONV(SUBSTR(key_hash, 1, 8), 16, 10) AS UNSIGNED) >> {32 - bits})"
