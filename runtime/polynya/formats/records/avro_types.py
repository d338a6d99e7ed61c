"""From Avro schemas to column types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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

    `others` are types of other schemas that it uses by name.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise ValueError("the file does not hold records")
    named = {**others, **named_types(schema)}
    return {item["name"]: _type(item["type"], named, 0) for item in schema["fields"]}


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


def _type(schema: Any, named: Mapping[str, Any], depth: int) -> DataType:
    if depth > MAX_DEPTH:
        raise ValueError("a recursive schema has no table form")
    if isinstance(schema, list):
        return _union(schema, named, depth)
    if isinstance(schema, str):
        return (
            _PRIMITIVES[schema] if schema in _PRIMITIVES else _type(named[schema], named, depth + 1)
        )
    kind = schema["type"]
    if schema.get("logicalType") == "decimal":
        return Decimal(int(schema["precision"]), int(schema.get("scale", 0)))
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if kind == "record":
        fields = (
            (item["name"], _type(item["type"], named, depth + 1)) for item in schema["fields"]
        )
        return Struct(tuple(fields))
    if kind == "array":
        return Array(_type(schema["items"], named, depth + 1))
    if kind == "map":
        return MapType(STRING, _type(schema["values"], named, depth + 1))
    return _type(kind, named, depth + 1)


def _union(branches: list[Any], named: Mapping[str, Any], depth: int) -> DataType:
    kinds = {_type(branch, named, depth + 1) for branch in branches if branch != "null"}
    if len(kinds) > 1:
        # A union of several types: the values decide, as in JSON.
        return Void()
    return kinds.pop() if kinds else Void()
