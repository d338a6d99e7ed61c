"""Lists of PostgreSQL that have no exact value in an event: an error of their table.

A column of arrays takes values of any number of dimensions, whatever its declaration says. A load
writes a text in place of one with several. Debezium writes a list of its outer length, with the
names of Java's objects where the elements are texts inside Debezium. Both are refused here.

Where the elements are no texts, Debezium's list has NULL alone, just as that of `{NULL,NULL}`. But
Debezium warns of each inner list and of no NULL, and its thread makes one event after the other. So
a warning is about the next event by the clock, and `NestedLists` puts a text in place of its list,
as a load does. Columns that are declared with several dimensions are left out from the start.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.capture.lobs import EventRewriter
from polynya.capture.masks import Schema
from polynya.model.error_catalogue.capture import LIST_NOT_CAPTURED

_ROWS: Final = ("before", "after")
#: How Java calls an array of an array.
_OBJECT: Final = re.compile(r"\[+L[\w.$]+;@[0-9a-f]{1,8}", re.ASCII)

#: How the warnings of an element begin (debezium-connector-common 3.5, `JdbcValueConverters`).
_WARNING: Final = re.compile(
    r"Unexpected (?:value for JDBC type -?\d+ and column|JDBC \w+ value for field) ", re.ASCII
)
#: What follows the name of the column there.
_ELEMENT: Final = "-element "
#: Characters of a warning that are kept: the longest name of PostgreSQL, `_ELEMENT`, and no value.
_KEPT: Final = 63 + len(_ELEMENT)
#: A list of NULL and its column; a quote in a value would be escaped.
_NULLS: Final = re.compile(rb'"((?:[^"\\]|\\.)+)":\[(null(?:,null)*)\]')
_MADE_AT: Final = b'"ts_ns":'


class NestedLists:
    """Lists of several dimensions that Debezium has made lists of NULL.

    Debezium's thread calls `note`, and the thread that takes the events calls `marked`.
    """

    def __init__(self) -> None:
        self._noted: deque[tuple[int, str]] = deque()

    def note(self, nanoseconds: int, warning: str) -> None:
        """Take a warning of the converter of values, and the time of it; values are not kept."""
        begin = _WARNING.match(warning)
        if begin is not None:
            self._noted.append((nanoseconds, warning[begin.end() : begin.end() + _KEPT]))

    @property
    def are_noted(self) -> bool:
        """Whether the next event may have some."""
        return bool(self._noted)

    def marked(self, value: bytes) -> bytes:
        """The value of the next event, as JSON, with texts in place of its nested lists."""
        if not self._noted:
            return value
        # The last field of the envelope; rows, which may have such a column, are before it.
        made_at = int(value[value.rindex(_MADE_AT) + len(_MADE_AT) :].partition(b"}")[0])
        names = set()
        while self._noted and self._noted[0][0] <= made_at:
            names.add(self._noted.popleft()[1])

        def mark(found: re.Match[bytes]) -> bytes:
            start = json.loads(b'"%b"' % found[1]) + _ELEMENT
            if not any(name.startswith(start) for name in names):
                return found[0]
            return b'"%b":"[1:%d][1:\xe2\x80\xa6]"' % (found[1], found[2].count(b"n"))

        return _NULLS.sub(mark, value) if names else value


@dataclass(frozen=True, slots=True)
class GuardedLists:
    """The columns of lists of a table under one schema of its events, after its masks.

    Attributes:
        schema: of the envelope.
        before: masks and limits of the table.
    """

    table: str
    schema: Schema
    before: EventRewriter | None
    _columns: Collection[str]
    _marks: tuple[bytes, ...] = field(repr=False)

    @property
    def hides_key(self) -> bool:
        """As the masks say."""
        return self.before is not None and self.before.hides_key

    def lines(self, lines: bytes) -> bytes:
        """Event lines of the table. Raises OperationError, POLYNYA-GTW-058, and as masks do."""
        if self.before is not None:
            lines = self.before.lines(lines)
        if any(mark in lines for mark in self._marks):
            for line in lines.split(b"\n"):
                self._checked(line)
        return lines

    def line(self, line: bytes) -> bytes:
        """One event line, without its end. Raises as `lines`."""
        if self.before is not None:
            line = self.before.line(line)
        return self._checked(line)

    def _checked(self, line: bytes) -> bytes:
        # A text in a value has its quotes escaped: what is found is the name of a field.
        if not any(mark in line for mark in self._marks):
            return line
        value = json.loads(line)["value"]
        for row in (value.get(name) or {} for name in _ROWS):
            for column in self._columns:
                shape = _dimensions(row.get(column))
                if shape is not None:
                    raise LIST_NOT_CAPTURED(
                        where=f"{self.table}.{column}", table=self.table, column=column, shape=shape
                    )
        return line


def _dimensions(value: Any) -> str | None:
    """The dimensions of what stands in place of a list of several; None: it is a list of one."""
    if isinstance(value, str):
        return value[:60]
    is_of_lists = isinstance(value, list) and all(
        isinstance(one, str) and _OBJECT.fullmatch(one) for one in value
    )
    return f"[1:{len(value)}]…" if is_of_lists and value else None


def guarded(table: str, schema: Schema, before: EventRewriter | None) -> EventRewriter | None:
    """`before` with a guard of the lists; as it is where the schema has none."""
    given = schema if before is None else before.schema
    columns = {
        item["field"]
        for row in given.get("fields", ())
        if row.get("field") in _ROWS
        for item in row.get("fields", ())
        if item.get("type") == "array"
    }
    if not columns:
        return before
    names = [json.dumps(name, ensure_ascii=False) for name in sorted(columns)]
    marks = tuple(f"{name}:{begin}".encode() for name in names for begin in ('"', '["['))
    return GuardedLists(table, given, before, columns, marks)
