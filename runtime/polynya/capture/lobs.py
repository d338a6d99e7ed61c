"""Values longer than the limit of a capture: cut, left out or refused before they are written.

Only event lines longer than the limit are parsed: no value is longer than its line. Values of keys
stay as they are. So do the placeholders of values that the source did not send: they are short, and
the reader takes the value of the previous row, which was cut already.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from polynya.capture.masks import Schema
from polynya.model.error_catalogue.capture import VALUE_TOO_LONG

LimitAction: TypeAlias = Literal["truncate", "null", "stop"]

_ROWS: Final = ("before", "after")
_JSON: Final = "io.debezium.data.Json"
#: Names of schemas whose values are text or bytes as they stand.
_PLAIN: Final = frozenset({None, _JSON, "io.debezium.data.Xml"})


@dataclass(frozen=True, slots=True)
class Limit:
    """The longest value in bytes, and what becomes of a longer one."""

    bytes: int
    then: LimitAction

    @property
    def description(self) -> str:
        """What becomes of longer values, as the end of a sentence."""
        what = "left out" if self.then == "null" else "cut"
        return f"longer than {self.bytes:,} bytes are {what}"


class EventRewriter(Protocol):
    """What becomes of the events of a table under one schema: masks, limits or both."""

    @property
    def schema(self) -> Schema:
        """Of the envelope, as the events have it then."""
        ...

    @property
    def hides_key(self) -> bool:
        """Key values of the source must not be written anywhere."""
        ...

    def lines(self, lines: bytes) -> bytes:
        """Event lines of the table as they land."""
        ...

    def line(self, line: bytes) -> bytes:
        """One event line, without its end."""
        ...


@dataclass(frozen=True, slots=True)
class Limited:
    """A limit on the values of a table under one schema of its events, after its masks.

    Attributes:
        schema: of the envelope; a column whose values may be left out is optional.
        before: the masks of the table.
        cut: table and column of values that were too long; grows.
    """

    table: str
    schema: Schema
    limit: Limit
    before: EventRewriter | None
    cut: set[tuple[str, str]]
    _columns: Mapping[str, Schema] = field(repr=False)

    @property
    def hides_key(self) -> bool:
        """As the masks say."""
        return self.before is not None and self.before.hides_key

    def lines(self, lines: bytes) -> bytes:
        """Event lines of the table. Raises OperationError, POLYNYA-GTW-054, and as masks do."""
        if self.before is not None:
            lines = self.before.lines(lines)
        if len(lines) <= self.limit.bytes:
            return lines
        return b"\n".join(self._limited(line) for line in lines.split(b"\n"))

    def line(self, line: bytes) -> bytes:
        """One event line, without its end. Raises as `lines`."""
        return self._limited(line if self.before is None else self.before.line(line))

    def _limited(self, line: bytes) -> bytes:
        if len(line) <= self.limit.bytes:
            return line
        event = json.loads(line)
        value, key = event.get("value"), event.get("key") or {}
        changed = {}
        for name in _ROWS:
            row = value.get(name) if isinstance(value, dict) else None
            if isinstance(row, dict):
                changed[name] = {
                    column: content if column in key else self._value(column, content)
                    for column, content in row.items()
                }
        if all(value[name] == row for name, row in changed.items()):
            return line
        event["value"] = {**value, **changed}
        return json.dumps(event, separators=(",", ":")).encode()

    def _value(self, column: str, value: Any) -> Any:
        schema = self._columns.get(column)
        # A character has four bytes in UTF-8 at most.
        if schema is None or not isinstance(value, str) or len(value) * 4 <= self.limit.bytes:
            return value
        content = _bytes(value, schema)
        if len(content) <= self.limit.bytes:
            return value
        if self.limit.then == "stop":
            raise VALUE_TOO_LONG(
                where=f"{self.table}.{column}", table=self.table, column=column, size=len(content),
                limit=self.limit.bytes,
            )  # fmt: skip
        self.cut.add((self.table, column))
        if self.limit.then == "null" or schema.get("name") in _WHOLE:
            return None
        beginning = content[: self.limit.bytes]
        if schema["type"] == "bytes":
            return base64.b64encode(beginning).decode()
        return beginning.decode("utf-8", "ignore")


#: What is nothing at all when its end is missing.
_WHOLE: Final = frozenset({_JSON, "io.debezium.data.Xml"})


def limited(
    table: str,
    schema: Schema,
    limit: Limit,
    before: EventRewriter | None,
    cut: set[tuple[str, str]],
) -> Limited:
    """A limit on the values of a table whose events have a schema; `before`: its masks."""
    given = schema if before is None else before.schema
    columns = {
        item["field"]: item
        for row in given.get("fields", ())
        if row.get("field") in _ROWS
        for item in row.get("fields", ())
        if item.get("type") in {"string", "bytes"} and item.get("name") in _PLAIN
    }
    optional = {name for name, item in columns.items() if _may_be_left_out(item, limit)}
    return Limited(table, _with_optional(given, optional), limit, before, cut, columns)


def _may_be_left_out(item: Schema, limit: Limit) -> bool:
    if limit.then == "truncate":
        return item.get("name") in _WHOLE
    return limit.then == "null"


def _with_optional(schema: Schema, names: set[str]) -> Schema:
    def field_of(item: Schema) -> Schema:
        return {**item, "optional": True} if item["field"] in names else item

    return {
        **schema,
        "fields": [
            {**row, "fields": [field_of(item) for item in row.get("fields", ())]}
            if row.get("field") in _ROWS
            else row
            for row in schema.get("fields", ())
        ],
    }


def _bytes(value: str, schema: Schema) -> bytes:
    if schema["type"] != "bytes":
        return value.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return b""
