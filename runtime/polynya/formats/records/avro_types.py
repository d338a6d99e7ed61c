"""From Avro schemas to column types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from polynya.formats import limits
from polynya.model.datatypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
)

_PRIMITIVES: dict[str, DataType] = {
    "null": Void(),
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BINARY,
    "fixed": BINARY,
    "enum": STRING,
}
_LOGICAL: dict[str, DataType] = {
    "date": DATE,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "local-timestamp-micros": TIMESTAMP_NTZ,
    "time-millis": STRING,
    "time-micros": STRING,
    "uuid": STRING,
}
MAX_DEPTH = 64


def record_types(
    schema: Any, others: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, DataType]:
    """The column types of a record schema. Raises ValueError when it has no counterpart.

    A few hundred bytes of schema can stand for any number of fields: TooLargeError.

    `others` are types of other schemas that it uses by name.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise ValueError("the file does not hold records")
    named = {**others, **named_types(schema)}
    limits.check_columns(len(schema["fields"]))
    walk = _Walk(named)
    return {item["name"]: walk.type(item["type"], 0) for item in schema["fields"]}


def named_types(schema: Any) -> dict[str, Any]:
    """The types that a schema may use by name, also before their place comes in a walk."""
    named: dict[str, Any] = {}
    _collect(schema, named)
    return named


def _collect(schema: Any, named: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, Mapping):
        if "name" in schema and schema.get("type") in {"record", "enum", "fixed", "error"}:
            named[schema["name"]] = schema
        for item in schema.get("fields", ()):
            _collect(item["type"], named)
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), list | Mapping):
                _collect(schema[inner], named)


class _Walk:
    """A walk over the types of a schema, which may use one by name again and again."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._met = 0

    def type(self, schema: Any, depth: int) -> DataType:
        """The column type of a part of the schema. Raises ValueError."""
        if depth > MAX_DEPTH:
            raise ValueError("a recursive schema has no table form")
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            known = _PRIMITIVES.get(schema)
            return known or self.type(self._named[schema], depth + 1)
        kind = schema["type"]
        if schema.get("logicalType") == "decimal":
            return Decimal(int(schema["precision"]), int(schema.get("scale", 0)))
        if schema.get("logicalType") in _LOGICAL:
            return _LOGICAL[schema["logicalType"]]
        if kind == "record":
            return Struct(tuple(self._fields(schema, depth)))
        if kind == "array":
            return Array(self.type(schema["items"], depth + 1))
        if kind == "map":
            return MapType(STRING, self.type(schema["values"], depth + 1))
        return self.type(kind, depth + 1)

    def _fields(self, schema: Any, depth: int) -> Iterator[tuple[str, DataType]]:
        for item in schema["fields"]:
            self._met += 1
            limits.check_columns(self._met)
            yield item["name"], self.type(item["type"], depth + 1)

    def _union(self, branches: list[Any], depth: int) -> DataType:
        kinds = {self.type(branch, depth + 1) for branch in branches if branch != "null"}
        if len(kinds) > 1:
            # A union of several types: the values decide, as in JSON.
            return Void()
        return kinds.pop() if kinds else Void()
