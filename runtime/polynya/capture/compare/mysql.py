"""The MariaDB and MySQL side of a comparison: the rows of a table at one moment, as hashes.

The server writes values as the texts of `TextForm` in `polynya.capture.compare.digest`, as the
capture lands them. Where an event has another value than the database, as for dates outside the
calendar, the value of the event counts.

The server cannot concatenate texts beyond its `max_allowed_packet`. A table with longer rows is
read row by row and hashed here, and so is one with JSON documents of MySQL.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.capture.compare.digest import ComparedColumn, DigestLayout, TextForm
from polynya.capture.compare.ranges import Range, RowState
from polynya.capture.landing.position import position_of_offset, position_of_rows
from polynya.capture.mysql.catalog import MysqlTable, read_tables
from polynya.capture.mysql.rows import given
from polynya.capture.mysql.session import MysqlSession, quoted
from polynya.capture.mysql.snapshot import MARIADB, begin_view, binlog_end, open_view
from polynya.capture.mysql.types import ColumnDefinition, document_text
from polynya.capture.source import Access
from polynya.model.error_catalogue.capture_databases import MYSQL_RIGHT_MISSING

_DAY_MICROS: Final = 86_400_000_000
#: Day number of 1970-01-01.
_EPOCH: Final = 719_528
_BACKSLASH: Final = "CHAR(92 USING utf8mb4)"


@dataclass(frozen=True, slots=True)
class Text:
    """How the values of a column are written.

    Attributes:
        sql: of the text; NULL where the value is none.
        checked: of what is NULL exactly then, also where `sql` is too long for the server.
        value: of the value itself, where it may be long; None: `sql` says it.
        is_hex: `sql` is the value as lower-case hex.
        rewritten: of `value`, the text as the capture lands it, which the server cannot make.
    """

    kind: TextForm
    sql: str
    checked: str
    value: str | None = None
    is_hex: bool = False
    rewritten: Callable[[bytes], bytes] | None = None


def text_of(facts: ColumnDefinition) -> Text | None:
    """The text of a column; None for a type that is not compared."""
    made = _KINDS.get(facts.type)
    return None if made is None else made(facts, quoted(facts.name))


def _short(kind: TextForm, sql: str) -> Text:
    return Text(kind, sql, sql)


def _whole(_: ColumnDefinition, column: str) -> Text:
    # Zeros that ZEROFILL puts before a number are not of its value.
    return _short(TextForm.WHOLE, f"CAST({column} + 0 AS CHAR)")


def _year(_: ColumnDefinition, column: str) -> Text:
    return _short(TextForm.WHOLE, f"CAST(IF({column} = 0, 1900, {column} + 0) AS CHAR)")


def _decimal(facts: ColumnDefinition, column: str) -> Text:
    # Added to a zero the largest ones would lose digits.
    text = f"CAST({column}{' + 0' if 'zerofill' in facts.full else ''} AS CHAR)"
    trimmed = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    return _short(TextForm.NUMBER, f"IF(LOCATE('.', {text}), {trimmed}, {text})")


def _float(facts: ColumnDefinition, column: str) -> Text:
    number = f"({column} * 1e0)"
    return (
        _double_text(number) if "," in facts.plain else _short(TextForm.FLOAT, _single_bits(number))
    )


def _double(_: ColumnDefinition, column: str) -> Text:
    return _double_text(column)


def _double_text(number: str) -> Text:
    return _short(TextForm.DOUBLE, f"CONV({_hex(number)}, 16, -10)")


def _hex(number: str) -> str:
    """The bits of a number as hex, out of those of a point; the negative zero is the other one."""
    return f"HEX(REVERSE(SUBSTR(ST_AsWKB(POINT({number} + 0e0, 0)), 6, 8)))"


def _single_bits(number: str) -> str:
    """The 32 bits of a number that has no more, out of its 64."""
    bits = f"CAST(CONV({_hex(number)}, 16, 10) AS UNSIGNED)"
    exponent, digits = f"(({bits} >> 52) & 2047)", f"(({bits} >> 29) & 8388607)"
    small = f"(({digits} | 8388608) >> (897 - {exponent}))"
    large = f"((({exponent} - 896) << 23) | {digits})"
    size = f"CAST(IF({exponent} > 896, {large}, {small}) AS SIGNED)"
    return f"CAST(IF({number} < 0, {size} - 2147483648, {size}) AS CHAR)"


def _bit(facts: ColumnDefinition, column: str) -> Text:
    length = facts.precision or 1
    if length == 1:
        flag = f"IF({column}, 'true', 'false')"
        return _short(TextForm.BOOLEAN, f"CASE WHEN {column} IS NOT NULL THEN {flag} END")
    parts = (f"LPAD(HEX(({column} >> {at}) & 255), 2, '0')" for at in range(0, length, 8))
    return _short(TextForm.BYTES, f"LOWER(CONCAT({', '.join(parts)}))")


def _valid(column: str) -> str:
    return f"{column} >= '0001-01-01' AND MONTH({column}) > 0 AND DAYOFMONTH({column}) > 0"


def _empty(facts: ColumnDefinition, column: str) -> str:
    """What a date of no calendar is; NULL stays NULL."""
    return "NULL" if facts.nullable else f"IF({column} IS NULL, NULL, 0)"


def _date(facts: ColumnDefinition, column: str) -> Text:
    days = f"TO_DAYS({column}) - {_EPOCH}"
    either = f"IF({_valid(column)}, {days}, {_empty(facts, column)})"
    return _short(TextForm.DATE, f"CAST({either} AS CHAR)")


def _micros(
    empty: Callable[[ColumnDefinition, str], str],
) -> Callable[[ColumnDefinition, str], Text]:
    def made(facts: ColumnDefinition, column: str) -> Text:
        days = f"(TO_DAYS({column}) - {_EPOCH}) * {_DAY_MICROS}"
        clock = f"CAST(FLOOR(TIME_TO_SEC({column})) AS SIGNED) * 1000000 + MICROSECOND({column})"
        either = f"IF({_valid(column)}, {days} + {clock}, {empty(facts, column)})"
        return _short(TextForm.MICROS, f"CAST({either} AS CHAR)")

    return made


def _beginning(_: ColumnDefinition, column: str) -> str:
    return f"IF({column} IS NULL, NULL, 0)"


def _time(_: ColumnDefinition, column: str) -> Text:
    return _short(TextForm.TIME, f"REPLACE(CAST(CAST({column} AS TIME(6)) AS CHAR), '.000000', '')")


def _text(_: ColumnDefinition, column: str) -> Text:
    text = f"CONVERT({column} USING utf8mb4)"
    return Text(TextForm.TEXT, text, column, text)


def _json(_: ColumnDefinition, column: str) -> Text:
    # Of MySQL: MariaDB has JSON as text.
    text = f"CONVERT({column} USING utf8mb4)"
    return Text(TextForm.TEXT, text, column, text, rewritten=document_text)


def _label(_: ColumnDefinition, column: str) -> Text:
    text = f"CONVERT({column} USING utf8mb4)"
    return _short(TextForm.TEXT, f"REPLACE({text}, ',', CONCAT({_BACKSLASH}, ','))")


def _bytes(_: ColumnDefinition, column: str) -> Text:
    return Text(TextForm.BYTES, f"LOWER(HEX({column}))", column, column, is_hex=True)


def _uuid(_: ColumnDefinition, column: str) -> Text:
    return _short(TextForm.BYTES, f"LOWER(REPLACE(CAST({column} AS CHAR), '-', ''))")


def _address(_: ColumnDefinition, column: str) -> Text:
    return _short(TextForm.BYTES, f"LOWER(HEX(INET6_ATON(CAST({column} AS CHAR))))")


_KINDS: Final[Mapping[str, Callable[[ColumnDefinition, str], Text]]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _whole),
    "year": _year,
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    "bit": _bit,
    "date": _date,
    "datetime": _micros(_empty),
    "timestamp": _micros(_beginning),
    "time": _time,
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "set"), _text
    ),
    "json": _json,
    "enum": _label,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "uuid": _uuid,
    **dict.fromkeys(("inet4", "inet6"), _address),
}


def hashed(
    rows: Iterable[Sequence[bytes | None]], texts: Mapping[str, Text], key: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Of each row the hash of its key, the text of its key, the hash of its compared columns.

    Args:
        rows: values of the compared columns, long ones as they are, others as their texts.
        texts: those of the columns, in the same order.
        key: the columns by which rows are told apart; () for whole rows.
    """
    names, columns = list(texts), list(texts.values())
    indexes = [names.index(name) for name in key]
    for row in rows:
        values = [_written(one, value) for one, value in zip(columns, row, strict=False)]
        whole = _one_text(values)
        if not indexes:
            yield _md5(whole), whole.decode(errors="replace"), _md5(whole)
            continue
        parts = [values[index] for index in indexes]
        shown = b", ".join(b"NULL" if one is None else one for one in parts)
        yield _md5(_one_text(parts)), shown.decode(errors="replace"), _md5(whole)


def collected(rows: Iterable[tuple[str, str, str]]) -> dict[str, RowState]:
    """Rows by the hash of their key, with the number of copies."""
    states: dict[str, RowState] = {}
    for key, text, digest in rows:
        known = states.get(key)
        if known is None:
            states[key] = RowState(text, digest)
        else:
            states[key] = RowState(text, min(digest, known.digest), known.copies + 1)
    return states


def range_of(key: str, bits: int) -> int:
    """The number of the range of a key's hash."""
    return int(key[:8], 16) >> (32 - bits)


def _written(text: Text, value: bytes | None) -> bytes | None:
    if value is None:
        return None
    if text.rewritten is not None:
        return text.rewritten(value)
    return value.hex().encode() if text.is_hex else value


def _one_text(values: Sequence[bytes | None]) -> bytes:
    """One text of several, from which each could be read again; NULL is one of its own."""
    parts = (
        b"-" if value is None else b"+%d:%b" % (len(value.decode(errors="replace")), value)
        for value in values
    )
    return b"".join(parts)


def _md5(text: bytes) -> str:
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


_HASH: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


class ComparedMysql:
    """See `ComparedDatabase`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def moment(self) -> MysqlMoment:
        """What is committed now. Raises what `MysqlSession` raises."""
        return MysqlMoment(MysqlSession(self._access), self._access)


class MysqlMoment:
    """A view, in a session of its own."""

    def __init__(self, session: MysqlSession, access: Access) -> None:
        self._session, self._access = session, access
        self._tables: dict[str, MysqlTable] = {}
        self._long: set[str] = set()
        file, at = _opened(session, access)
        self.position = f"{file}:{at}" if at else file
        self._position = position_of_rows(access.type, {"file": file, "pos": at}) if at else None

    def is_reached(self, offset: Mapping[str, Any]) -> bool:
        """Whether a capture that landed as far as an offset has all that is in the view."""
        if not offset or self._position is None:
            return False
        return position_of_offset(self._access.type, offset) >= self._position

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
        (row,) = self._session.rows(f"SELECT COUNT(*) FROM {self._from(table, where)}")
        return int(row[0] or 0)

    def ranges(
        self, table: str, layout: DigestLayout, bits: int, where: str | None
    ) -> dict[int, Range]:
        """Number of rows and sum of hashes of each range that has rows."""
        if not self._is_read(table, layout):
            total = "SUM(CAST(CONV(SUBSTR(row_hash, 1, 15), 16, 10) AS UNSIGNED))"
            answers = self._session.rows(
                f"SELECT {_number(bits)} AS n, COUNT(*), {total}, SUM(row_hash IS NULL)"
                f" FROM ({self._hashed(table, layout, where)}) AS h GROUP BY n",
                f"comparing {table}",
            )
            if not self._is_long(table, (int(answer[3] or 0) for answer in answers)):
                return {int(n or 0): Range(int(c or 0), int(t or 0)) for n, c, t, _ in answers}
        found: dict[int, Range] = {}
        for key, _, digest in self._read(table, layout, where):
            before = found.get(number := range_of(key, bits), Range(0, 0))
            found[number] = Range(before.rows + 1, before.total + int(digest[:15], 16))
        return found

    def rows(
        self,
        table: str,
        layout: DigestLayout,
        bits: int,
        ranges: Collection[int],
        where: str | None,
    ) -> dict[str, RowState]:
        """The rows of some ranges by the hash of their key."""
        wanted = frozenset(ranges)
        if not wanted:
            return {}
        sql = f"{_number(bits)} IN ({','.join(str(int(one)) for one in sorted(wanted))})"
        states = self._states(table, layout, where, sql)
        if states is not None:
            return states
        read = self._read(table, layout, where)
        return collected(one for one in read if range_of(one[0], bits) in wanted)

    def keys(
        self, table: str, layout: DigestLayout, keys: Collection[str], where: str | None
    ) -> dict[str, RowState]:
        """The rows whose keys have one of the given hashes."""
        wanted = frozenset(one for one in keys if _HASH.fullmatch(one))
        if not wanted:
            return {}
        listed = ",".join(f"'{one}'" for one in sorted(wanted))
        states = self._states(table, layout, where, f"key_hash IN ({listed})")
        if states is not None:
            return states
        read = self._read(table, layout, where)
        return collected(one for one in read if one[0] in wanted)

    def close(self) -> None:
        """End the transaction with its session."""
        self._session.close()

    def _table(self, name: str) -> MysqlTable:
        table = self._tables.get(name) or read_tables(self._session, only=name).get(name)
        if table is None:
            raise MYSQL_RIGHT_MISSING(
                where=self._access.task, activity=f"comparing {name}",
                reason="the table does not exist, or may not be read", state="nothing was changed",
                fix="grant SELECT on it, or leave it out of the comparison",
            )  # fmt: skip
        self._tables[name] = table
        return table

    def _from(self, name: str, where: str | None) -> str:
        table = self._table(name)
        conditions = given(where, self._access, name)
        return quoted(table.database, table.name) + "".join(
            f" WHERE {condition}" for condition in conditions
        )

    def _texts(self, table: str, layout: DigestLayout) -> dict[str, Text]:
        facts = {column.facts.name: column.facts for column in self._table(table).columns}
        texts = {name: text_of(facts[name]) for name, _ in layout.columns}
        return {name: text for name, text in texts.items() if text is not None}

    def _hashed(self, table: str, layout: DigestLayout, where: str | None) -> str:
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
        self, table: str, layout: DigestLayout, where: str | None, wanted: str
    ) -> dict[str, RowState] | None:
        """Rows as the server hashes them; None: it cannot."""
        if self._is_read(table, layout):
            return None
        answers = self._session.rows(
            "SELECT key_hash, MIN(key_text), MIN(row_hash), COUNT(*), SUM(row_hash IS NULL)"
            f" FROM ({self._hashed(table, layout, where)}) AS h WHERE {wanted} GROUP BY key_hash",
            f"comparing {table}",
        )
        if self._is_long(table, (int(answer[4] or 0) for answer in answers)):
            return None
        return {
            str(key): RowState(str(text), str(digest), int(copies or 0))
            for key, text, digest, copies, _ in answers
        }

    def _is_read(self, table: str, layout: DigestLayout) -> bool:
        """Whether the table is read row by row: values are too long, or written in another way."""
        texts = self._texts(table, layout).values()
        return table in self._long or any(text.rewritten is not None for text in texts)

    def _is_long(self, table: str, missing: Iterator[int]) -> bool:
        """Whether hashes are missing; the table is read row by row from then on."""
        is_long = any(missing)
        if is_long:
            self._long.add(table)
        return is_long

    def _read(
        self, table: str, layout: DigestLayout, where: str | None
    ) -> Iterator[tuple[str, str, str]]:
        """Each row: hash of its key, text of its key, hash of its compared columns."""
        texts = self._texts(table, layout)
        columns = ", ".join(text.value or text.sql for text in texts.values()) or "NULL"
        sql = f"SELECT {columns} FROM {self._from(table, where)}"
        return hashed(self._session.stream(sql, f"comparing {table}"), texts, layout.key)


def _opened(session: MysqlSession, access: Access) -> tuple[str, int]:
    """Begin a view; the place of the binlog that is not before it, 0 where none is needed."""
    if not access.follows:
        begin_view(session)
        return "now", 0
    view = open_view(session, access.type)
    # Of MySQL the place of a view is not known: it is not after the place of now.
    return (view.file, view.position) if access.type == MARIADB else binlog_end(session)


def _joined(texts: Sequence[Text]) -> str:
    """SQL of one text of several; NULL also where it is too long for the server."""
    parts = [
        f"IF({text.checked} IS NULL, '-', CONCAT('+', CHAR_LENGTH({text.sql}), ':', {text.sql}))"
        for text in texts
    ]
    return f"CONCAT({', '.join(parts)})" if parts else "''"


def _number(bits: int) -> str:
    return f"(CAST(CONV(SUBSTR(key_hash, 1, 8), 16, 10) AS UNSIGNED) >> {32 - bits})"
