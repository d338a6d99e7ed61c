"""From Avro schemas to Kafka Connect's, with the encoder of values into Connect's JSON.

Connect's Avro converter keeps what Avro has no word for in `connect.name`, `connect.parameters` and
`connect.internal.type`; a logical type alone, from another writer, means the same.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from polynya.formats.records.avro_types import MAX_DEPTH, named_types

#: A value that is not None, as Connect's JSON has it.
Encoder: TypeAlias = Callable[[Any], Any]

_PRIMITIVES: Final = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "bytes",
    "fixed": "bytes",
}
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_LOGICAL: Final = {
    "decimal": _DECIMAL,
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
}
#: What the converter writes for a decimal whose precision Connect does not know.
_NO_PRECISION: Final = 64
_PRECISION: Final = "connect.decimal.precision"


@dataclass(frozen=True, slots=True)
class Form:
    """A Connect schema, the encoder of its values if they need one, the fields of a struct."""

    schema: dict[str, Any]
    encoder: Encoder | None = None
    fields: Mapping[str, Form] = field(default_factory=dict)

    def encode(self, value: Any) -> Any:
        """A value, also None, as Connect's JSON has it."""
        return value if value is None or self.encoder is None else self.encoder(value)


def form_of(schema: Any) -> Form:
    """The form of an Avro schema. Raises ValueError where Connect has none."""
    return _form(schema, named_types(schema), 0)


def without_logical_types(schema: Any) -> None:
    """Take the logical types out of a schema, in place, so that values are read as written."""
    if isinstance(schema, dict):
        schema.pop("logicalType", None)
    for inner in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(inner, dict | list):
            without_logical_types(inner)


def wrapper(form: Form) -> Callable[[Any], Any]:
    """What makes `{"schema", "payload"}` of a struct."""
    # One object for all records: whoever has seen it knows it again at no cost.
    schema = _schema_of_row(form.schema)
    return lambda value: (
        None if value is None else {"schema": schema, "payload": form.encode(value)}
    )


def _schema_of_row(schema: dict[str, Any]) -> dict[str, Any]:
    """Of an envelope only the row: the rest is not needed, and every record carries it."""
    rows = [item for item in schema["fields"] if item["field"] == "after"]
    is_envelope = rows and any(item["field"] == "op" for item in schema["fields"])
    return {**schema, "fields": rows} if is_envelope else schema


def _form(schema: Any, named: Mapping[str, Any], depth: int) -> Form:
    if depth > MAX_DEPTH:
        raise ValueError("a recursive schema has no table form")
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if len(branches) > 1:
            raise ValueError("a union of several types")
        return _form(branches[0], named, depth + 1) if branches else Form({"type": "string"})
    if isinstance(schema, str):
        schema = {"type": schema} if schema in _PRIMITIVES else named[schema]
    kind = schema["type"]
    if kind == "record":
        return _record(schema, named, depth)
    if kind == "array":
        return _array(schema, named, depth)
    if kind == "map":
        return _map(Form({"type": "string"}), _form(schema["values"], named, depth + 1))
    if isinstance(kind, str) and kind in _PRIMITIVES:
        return _primitive(schema, _PRIMITIVES[kind])
    return _form(kind, named, depth + 1)


def _primitive(schema: Mapping[str, Any], kind: str) -> Form:
    name = schema.get("connect.name") or _LOGICAL.get(str(schema.get("logicalType")))
    connect: dict[str, Any] = {"type": kind, **({} if name is None else {"name": name})}
    if name == _DECIMAL:
        connect["parameters"] = _decimal_parameters(schema)
    encoders: dict[str, Encoder] = {"bytes": _base64, "float": _floating, "double": _floating}
    return Form(connect, encoders.get(kind))


def _decimal_parameters(schema: Mapping[str, Any]) -> dict[str, str]:
    said = schema.get("connect.parameters", {})
    found = {"scale": str(said.get("scale", schema.get("scale", 0)))}
    precision = said.get(_PRECISION, schema.get("precision", _NO_PRECISION))
    return found if int(precision) == _NO_PRECISION else {**found, _PRECISION: str(precision)}


def _record(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> Form:
    fields = {item["name"]: _form(item["type"], named, depth + 1) for item in schema["fields"]}
    connect = {
        "type": "struct",
        "name": schema.get("connect.name", schema["name"]),
        "fields": [{**form.schema, "field": name} for name, form in fields.items()],
    }
    coded = {name: form.encode for name, form in fields.items() if form.encoder is not None}

    def encode(value: Any) -> Any:
        return {**value, **{name: encode(value[name]) for name, encode in coded.items()}}

    return Form(connect, encode if coded else None, fields)


def _array(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> Form:
    item = _form(schema["items"], named, depth + 1)
    if item.schema["type"] == "struct" and _is_map_entry(schema["items"], named):
        return _map(item.fields["key"], item.fields["value"])
    connect = {"type": "array", "items": item.schema}
    return Form(connect, item.encoder and (lambda value: [item.encode(one) for one in value]))


def _is_map_entry(items: Any, named: Mapping[str, Any]) -> bool:
    record = named[items] if isinstance(items, str) else items
    marks = (record.get("connect.internal.type"), str(record.get("name")).rpartition(".")[2])
    return "MapEntry" in marks


def _map(key: Form, item: Form) -> Form:
    connect = {"type": "map", "keys": key.schema, "values": item.schema}

    def encode(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item.encode(one) for name, one in value.items()}
        return [[key.encode(one["key"]), item.encode(one["value"])] for one in value]

    return Form(connect, encode)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _floating(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
