"""Between the type model and Arrow."""

from __future__ import annotations

import pyarrow as pa

from polynya.model.types import (
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

_PRIMITIVES: dict[DataType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column; `void` and empty objects are strings, as in the table."""
    match kind:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Void() | Struct(()):
            return pa.string()
        case Struct(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])
        case _:
            return _PRIMITIVES[kind]


def from_arrow(kind: pa.DataType) -> DataType:
    """The column type that holds every value of an Arrow type without loss.

    Times of day and UUIDs become their text, durations whole numbers in their unit (`columnar`).
    Raises ValueError for a type without a counterpart, such as a union.
    """
    types = pa.types
    if isinstance(kind, pa.UuidType):
        return STRING
    if isinstance(kind, pa.BaseExtensionType):
        return from_arrow(kind.storage_type)
    if types.is_dictionary(kind):
        return from_arrow(kind.value_type)
    if types.is_null(kind):
        return Void()
    if types.is_struct(kind):
        return Struct(tuple((field.name, from_arrow(field.type)) for field in kind))
    if types.is_map(kind):
        return MapType(from_arrow(kind.key_type), from_arrow(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return Array(from_arrow(kind.value_type))
    return _scalar(kind)


def _scalar(kind: pa.DataType) -> DataType:
    types = pa.types
    if types.is_decimal(kind):
        if kind.precision > 38 or kind.scale < 0:
            raise ValueError(f"{kind} has no counterpart")
        return Decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return TIMESTAMP if kind.tz is not None else TIMESTAMP_NTZ
    checks: list[tuple[bool, DataType]] = [
        (types.is_boolean(kind), BOOLEAN),
        (types.is_uint64(kind), Decimal(20, 0)),
        (types.is_int64(kind) or types.is_uint32(kind) or types.is_duration(kind), BIGINT),
        (types.is_integer(kind), INT),
        (types.is_float64(kind), DOUBLE),
        (types.is_floating(kind), FLOAT),
        (types.is_string(kind) or types.is_large_string(kind) or types.is_time(kind), STRING),
        (
            types.is_binary(kind)
            or types.is_large_binary(kind)
            or types.is_fixed_size_binary(kind),
            BINARY,
        ),
        (types.is_date(kind), DATE),
    ]
    for holds, target in checks:
        if holds:
            return target
    raise ValueError(f"{kind} has no counterpart")
