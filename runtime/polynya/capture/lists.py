"""Lists of PostgreSQL that have no exact value in an event: an error of their table, never NULL.

A column of arrays takes values of any number of dimensions, whatever its declaration says. Of one
with several, Debezium writes a list of its outer length. Its elements are all NULL, just as it
writes `{NULL,NULL}`, or the names of Java's objects where they are texts inside Debezium. So a
change with such a list is refused. A load knows better: it writes a text in place of a list that
has several dimensions.

Columns that are declared with several dimensions are left out from the start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.capture.lobs import EventRewriter
from polynya.capture.masks import Schema
from polynya.model.error_catalogue.capture import LIST_NOT_CAPTURED

_ROWS: Final = ("before", "after")
#: How Java calls an array of an array.
_OBJECT: Final = re.compile(r"\[+L[\w.$]+;@[0-9a-f]{1,8}", re.ASCII)
#: Lists of these have names of objects in place of inner lists, so that NULL is an element.
_NAMED: Final = frozenset({
    "text", "character varying", "character", '"char"', "uuid", "json", "jsonb", "inet", "cidr",
    "macaddr", "int4range", "tsrange", "daterange", "ltree",
})  # fmt: skip
_LENGTH: Final = re.compile(r"\([^)]*\)")


def has_certain_nulls(type_name: str) -> bool:
    """Whether a list of NULL alone has one dimension, by the type as PostgreSQL writes it."""
    return _LENGTH.sub("", type_name).removesuffix("[]") in _NAMED


@dataclass(frozen=True, slots=True)
class GuardedLists:
    """The columns of lists of a table under one schema of its events, after its masks.

    Attributes:
        schema: of the envelope.
        before: masks and limits of the table.
        certain: the columns whose lists of NULL have one dimension.
    """

    table: str
    schema: Schema
    before: EventRewriter | None
    certain: Collection[str]
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
        is_load = value.get("op") == "r"
        for row in (value.get(name) or {} for name in _ROWS):
            for column in self._columns:
                self._check(column, row.get(column), is_load=is_load)
        return line

    def _check(self, column: str, value: Any, *, is_load: bool) -> None:
        if isinstance(value, str):
            shape = f"has several dimensions, {value[:60]}"
        elif is_load or not isinstance(value, list) or not value:
            return
        elif all(one is None for one in value) and column not in self.certain:
            shape = f"has several dimensions, or is NULL in each of its {len(value)} elements"
        elif all(isinstance(one, str) and _OBJECT.fullmatch(one) for one in value):
            shape = "has several dimensions"
        else:
            return
        raise LIST_NOT_CAPTURED(
            where=f"{self.table}.{column}", table=self.table, column=column, shape=shape
        )


def guarded(
    table: str, schema: Schema, before: EventRewriter | None, certain: Collection[str] = ()
) -> EventRewriter | None:
    """`before` with a guard of the lists; as it is where the schema has none.

    `certain`: columns whose types have `has_certain_nulls`.
    """
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
    marks = tuple(f"{name}:{begin}".encode() for name in names for begin in ('"', "[null", '["['))
    return GuardedLists(table, given, before, certain, columns, marks)
