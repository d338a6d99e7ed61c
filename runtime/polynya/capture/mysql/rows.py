"""Rows of a MariaDB or MySQL table in key order, as event lines.

A comparison of whole tuples would not use the index, so the conditions of a chunk compare column by
column. The constant for a text has the bytes and the character set of its column but no collation,
so the server compares with the collation of the column, in the order of the index.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from polynya.capture.conditions import condition
from polynya.capture.mysql.catalog import MysqlTable, field_schema, read_tables
from polynya.capture.mysql.growing import value_text
from polynya.capture.mysql.session import MysqlSession, literal, quoted, text_of_bytes
from polynya.capture.mysql.types import NULL, ColumnDefinition
from polynya.capture.reading_order import ReadingOrder
from polynya.capture.source import Access, Chunk, Key
from polynya.model.error_catalogue.capture_databases import MYSQL_TABLE_CHANGED

#: The kind of texts that a collation orders; their values are hex.
_COLLATED: Final = "collated"


@dataclass(frozen=True, slots=True)
class Keyset:
    """The key of a table that is read in its order."""

    columns: tuple[tuple[ColumnDefinition, str], ...]

    @property
    def reading(self) -> ReadingOrder:
        """The order as a load remembers it."""
        return ReadingOrder(
            tuple(
                (facts.name, (facts.collation or "") if kind == _COLLATED else kind)
                for facts, kind in self.columns
            )
        )

    @property
    def order(self) -> str:
        """The columns as a list in SQL."""
        return ", ".join(quoted(facts.name) for facts, _ in self.columns)

    @property
    def selected(self) -> str:
        """What to select for the values of a key: numbers as text too, they may be long."""
        return ", ".join(
            f"LOWER(HEX({quoted(facts.name)}))" if kind in {"bytes", _COLLATED}
            else quoted(facts.name)
            for facts, kind in self.columns
        )  # fmt: skip

    def beyond(self, values: Sequence[str]) -> str:
        """The condition for rows after a key."""
        return self._compared(values, ">", last=">")

    def up_to(self, values: Sequence[str]) -> str:
        """The condition for rows up to a key and with it."""
        return self._compared(values, "<", last="<=")

    def _compared(self, values: Sequence[str], sign: str, last: str) -> str:
        names = [quoted(facts.name) for facts, _ in self.columns]
        constants = [
            _constant(facts, kind, value)
            for (facts, kind), value in zip(self.columns, values, strict=True)
        ]
        parts = []
        for index, (column, value) in enumerate(zip(names, constants, strict=True)):
            equal = [f"{c} = {v}" for c, v in zip(names[:index], constants[:index], strict=True)]
            is_last = index == len(names) - 1
            parts.append(" AND ".join([*equal, f"{column} {last if is_last else sign} {value}"]))
        whole = " OR ".join(f"({part})" for part in parts)
        if len(parts) == 1:
            return whole
        # Says again what the rest says, for the range of the index.
        return f"{names[0]} {sign}= {constants[0]} AND ({whole})"


def keyset_of(table: MysqlTable) -> Keyset | None:
    """The key of a table; None: it is read as a whole.

    That is so without a key, and with one whose order is not that of its constants: labels are
    ordered by number, rounded numbers equal nothing, long texts are in no index, and in some
    collations of MariaDB the index has CHAR in another order than a comparison.
    """
    by_name = {facts.name: (facts, coding.key) for facts, coding in table.captured}
    columns = []
    for name in table.key:
        facts, kind = by_name.get(name, (None, None))
        if facts is None or kind is None or _is_unlike_its_index(facts):
            return None
        columns.append((facts, kind))
    return Keyset(tuple(columns)) if columns else None


def _is_unlike_its_index(facts: ColumnDefinition) -> bool:
    """The index has the blanks at the end of a CHAR, a comparison does not.

    That matters where blanks are not added by the comparison itself (NOPAD), and in Thai, where a
    vowel changes its place with what comes after it.
    """
    collation = facts.collation or ""
    return facts.type == "char" and ("nopad" in collation or collation.startswith("tis620_thai"))


def _constant(facts: ColumnDefinition, kind: str, value: str) -> str:
    if kind == "number":
        return _number(value)
    if kind == _COLLATED:
        assert facts.charset is not None
        return text_of_bytes(bytes.fromhex(value), facts.charset)
    return f"X'{bytes.fromhex(value).hex()}'" if kind == "bytes" else literal(value)


def _number(text: str) -> str:
    digits = text.removeprefix("-").replace(".", "", 1)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text[:60]!r} is not a number of a key")
    return text


#: What topics and schemas are named after, in load and stream.
NAME: Final = "capture"
_SOURCE: Final = (
    ("connector", "string"), ("name", "string"), ("ts_ms", "int64"), ("snapshot", "string?"),
    ("db", "string"), ("table", "string?"), ("server_id", "int64"), ("gtid", "string?"),
    ("file", "string"), ("pos", "int64"), ("row", "int32"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A moment of a server: a place in its binlog, and the clock then.

    Attributes:
        gtids: of MySQL, transactions that the server had committed at that place or before it.
    """

    connector: str
    file: str
    position: int
    millis: int
    gtids: str = ""

    def source(self) -> dict[str, Any]:
        """What rows that were read at that moment carry."""
        return {
            "connector": self.connector, "name": NAME, "ts_ms": self.millis, "snapshot": "true",
            "server_id": 0, "gtid": None, "file": self.file, "pos": self.position, "row": 0,
        }  # fmt: skip


def select_list(table: MysqlTable) -> str:
    """The columns of a query whose rows `line_of` takes."""
    captured = table.captured
    return ", ".join(coding.expression.format(quoted(facts.name)) for facts, coding in captured)


def line_of(
    table: MysqlTable, position: BinlogPosition
) -> Callable[[Sequence[bytes | None]], bytes]:
    """What makes an event line of a row that was read at a moment."""
    columns = table.captured
    names = [f"{json.dumps(facts.name)}:".encode() for facts, _ in columns]
    encoders = [coding.encode for _, coding in columns]
    positions = {facts.name: index for index, (facts, _) in enumerate(columns)}
    keys = [positions[name] for name in table.key]
    source = position.source() | {"db": table.database, "table": table.name}
    tail = (
        f',"source":{_compact(source)},"op":"r","ts_ms":{position.millis},"transaction":null}}}}\n'
    )
    end = b"}" + tail.encode()

    def made(row: Sequence[bytes | None]) -> bytes:
        parts = [
            name + (NULL if value is None else encode(value))
            for name, encode, value in zip(names, encoders, row, strict=True)
        ]
        key = b"{" + b",".join([parts[index] for index in keys]) + b"}" if keys else NULL
        before = b'{"key":' + key + b',"value":{"before":null,"after":{'
        return before + b",".join(parts) + end

    return made


def envelope(table: MysqlTable, connector: str) -> dict[str, Any]:
    """The Connect schema of the `value` of a table's events."""
    name = f"{NAME}.{table.full_name}"
    row = {
        "type": "struct", "optional": True, "name": f"{name}.Value",
        "fields": [field_schema(facts, coding) for facts, coding in table.captured],
    }  # fmt: skip
    source = {
        "type": "struct", "optional": False, "version": 1, "field": "source",
        "name": f"io.debezium.connector.{connector}.Source",
        "fields": [_field(*item) for item in _SOURCE],
    }  # fmt: skip
    transaction = {
        "type": "struct", "optional": True, "name": "event.block", "version": 1,
        "fields": [_field("id", "string"), _field("total_order", "int64"),
                   _field("data_collection_order", "int64")],
        "field": "transaction",
    }  # fmt: skip
    return {
        "type": "struct", "optional": False, "name": f"{name}.Envelope", "version": 2,
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, source, transaction,
                   _field("op", "string"), _field("ts_ms", "int64?")],
    }  # fmt: skip


def _field(name: str, kind: str) -> Mapping[str, Any]:
    """A field; a question mark after its type: it is optional."""
    return {"type": kind.rstrip("?"), "optional": kind.endswith("?"), "field": name}


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


Row: TypeAlias = Sequence[bytes | None]

#: Bytes of event lines that are held in memory at a time.
MOST_BYTES: Final = 32 << 20


def as_now(session: MysqlSession, access: Access, name: str) -> MysqlTable:
    """A table as it is now: rows and their schema have to fit. Raises POLYNYA-GTW-045."""
    table = read_tables(session, only=name).get(name)
    if table is None:
        raise MYSQL_TABLE_CHANGED(
            where=access.task,
            activity=f"reading {name}",
            reason="it does not exist any more, or may not be read",
        )
    return table.with_key(access.keys.get(name, ()))


def given(where: str | None, access: Access, table: str) -> list[str]:
    """The condition of a load, checked. Raises OperationError POLYNYA-GTW-093."""
    return [condition(where, access, table)] if where else []


def query(table: MysqlTable, conditions: Sequence[str]) -> str:
    """The rows of a table that meet all conditions, in the order of a key that has one."""
    key = keyset_of(table)
    return _selected(table, select_list(table), conditions) + (
        f" ORDER BY {key.order}" if key else ""
    )


def grown_query(table: MysqlTable, column: str, conditions: Sequence[str]) -> str:
    """The rows of a table that meet all conditions, in the order of a column.

    Behind the columns of a row comes the value of that column as text.
    """
    wanted = f"{select_list(table)}, {value_text(column)}"
    return f"{_selected(table, wanted, conditions)} ORDER BY {quoted(column)}"


def _selected(table: MysqlTable, wanted: str, conditions: Sequence[str]) -> str:
    sql = f"SELECT {wanted} FROM {quoted(table.database, table.name)}"
    every = " AND ".join(f"({condition})" for condition in conditions)
    return f"{sql} WHERE {every}" if every else sql


@dataclass(slots=True)
class TableCursor:
    """A query that is being read, by a session of its own.

    Attributes:
        rows: those that are still to come.
        line: makes the event line of a row, from the number of the row and its values.
        at: how many were read.
        has_value: behind the columns of a row is the value of a column that grows: it is part of
            `last`.
    """

    session: MysqlSession
    rows: Iterator[Row]
    line: Callable[[int, Row], bytes]
    at: int = 0
    has_value: bool = False

    def next(self, rows: int) -> Chunk:
        """About so many rows, fewer when they are long. Raises as `MysqlSession.stream`."""
        lines, size, is_last = list[bytes](), 0, False
        value: tuple[str, ...] = ()
        while len(lines) < rows and size < MOST_BYTES and not is_last:
            row = next(self.rows, None)
            if row is None:
                is_last = True
                continue
            if self.has_value:
                value = ((row[-1] or b"").decode("ascii"),)
                row = row[:-1]
            line = self.line(self.at + len(lines) + 1, row)
            lines.append(line)
            size += len(line)
        self.at += len(lines)
        last = (self.at, *value) if lines else None
        return Chunk(b"".join(lines), len(lines), last, is_last)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All that is still to come, about so many rows at a time."""
        is_last = False
        while not is_last:
            chunk = self.next(rows)
            is_last = chunk.is_last
            yield chunk


class TableCursors:
    """Tables that are read by one query each; a table by one thread at a time."""

    def __init__(self) -> None:
        self._open: dict[str, TableCursor] = {}
        self._lock = threading.Lock()

    def stands_at(self, name: str, after: Key) -> bool:
        """Whether a table can be read on behind the chunk that had this `last`."""
        with self._lock:
            return name in self._open and self._open[name].at == after[0]

    def read(
        self, name: str, after: Key | None, rows: int, begin: Callable[[], TableCursor]
    ) -> Chunk:
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
