"""Rows of Trino's protocol as Arrow, by the types that Trino names."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import sqlglot.expressions as exp

from examples.servers.trino import Answer

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "varbinary": pa.binary(),
    "date": pa.date32(),
    "timestamp(6)": pa.timestamp("us"),
    "timestamp(6) with time zone": pa.timestamp("us", tz="UTC"),
}


def as_arrow(answer: Answer) -> pa.Table:
    """The answer with its names and types."""
    schema = pa.schema([(name, arrow_type(text)) for name, text in answer.types.items()])
    columns = [
        pa.array([_value(row[at], field.type) for row in answer.rows], field.type)
        for at, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def arrow_type(text: str) -> pa.DataType:
    """A type that Trino names, such as `array(row("x" double))`."""
    return _PLAIN[text] if text in _PLAIN else _nested(exp.DataType.build(text, dialect="trino"))


def _nested(kind: exp.DataType) -> pa.DataType:
    inner = kind.expressions
    match kind.this:
        case exp.DataType.Type.DECIMAL:
            return pa.decimal128(*(int(one.name) for one in inner))
        case exp.DataType.Type.ARRAY:
            return pa.list_(_nested(inner[0]))
        case exp.DataType.Type.MAP:
            return pa.map_(_nested(inner[0]), _nested(inner[1]))
        case exp.DataType.Type.STRUCT:
            return pa.struct([(one.name, _nested(one.args["kind"])) for one in inner])
    return _PLAIN[kind.sql("trino").lower()]


_TEXTS: Final[Mapping[pa.DataType, Callable[[Any], Any]]] = {
    pa.date32(): date.fromisoformat,
    pa.binary(): base64.b64decode,
    pa.timestamp("us"): datetime.fromisoformat,
    pa.timestamp("us", tz="UTC"): lambda text: datetime.fromisoformat(
        text.removesuffix(" UTC")
    ).replace(tzinfo=UTC),
    # Numbers that JSON does not have, and keys of maps, come as text.
    pa.float32(): float,
    pa.float64(): float,
    pa.int32(): int,
    pa.int64(): int,
}


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_value(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [
            (_value(key, kind.key_type), _value(one, kind.item_type)) for key, one in value.items()
        ]
    if pa.types.is_struct(kind):
        return {field.name: _value(one, field.type) for field, one in zip(kind, value, strict=True)}
    if pa.types.is_decimal(kind):
        return Decimal(value)
    return _TEXTS[kind](value) if kind in _TEXTS else value
