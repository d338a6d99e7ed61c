"""The types that Debezium knows, by their names in pg_catalog: schema and encoding of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.gateway.postgresql.types import encoding
from polynya.gateway.postgresql.types.encoding import Encoding

_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
#: A typmod of numeric, bit and the like carries this beside its number.
_HEADER: Final = 4


@dataclass(frozen=True, slots=True)
class Written:
    """How values of a type leave: the Connect schema and the SQL.

    `optional` is in the schema only where Debezium says it of all columns of the type.
    """

    schema: Mapping[str, Any]
    encode: Encoding


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": name, "version": 1, **more}


def _time(name: str) -> dict[str, Any]:
    return _logical("int64", f"io.debezium.time.{name}")


_STRING: Final = {"type": "string"}
_BYTES: Final = {"type": "bytes"}
OPAQUE: Final = Written(_BYTES, encoding.opaque)
JSON: Final = Written(_logical("string", "io.debezium.data.Json"), encoding.text)
_POINT: Final = {
    "type": "struct",
    "fields": [
        {"type": "double", "optional": False, "field": "x"},
        {"type": "double", "optional": False, "field": "y"},
        {"type": "bytes", "optional": True, "field": "wkb"},
        {"type": "int32", "optional": True, "field": "srid"},
    ],
    "name": "io.debezium.data.geometry.Point",
    "version": 1,
    "doc": "Geometry (POINT)",
}
_FREE_DECIMAL: Final = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ],
    "name": "io.debezium.data.VariableScaleDecimal",
    "version": 1,
    "doc": "Variable scaled decimal",
}

ROW_NUMBER_TYPE: Final = Written({"type": "int64"}, encoding.plain)

#: Types whose schema does not depend on a length.
_SIMPLE: Final[Mapping[str, Written]] = {
    "bool": Written({"type": "boolean"}, encoding.plain),
    "int2": Written({"type": "int16"}, encoding.plain),
    "int4": Written({"type": "int32"}, encoding.plain),
    "int8": Written({"type": "int64"}, encoding.plain),
    "oid": Written({"type": "int64"}, encoding.plain),
    "float4": Written({"type": "float"}, encoding.floating),
    "float8": Written({"type": "double"}, encoding.floating),
    "money": Written(_logical("bytes", _DECIMAL, parameters={"scale": "2"}), encoding.money),
    "text": Written(_STRING, encoding.text),
    "varchar": Written(_STRING, encoding.text),
    "bpchar": Written(_STRING, encoding.output),
    "char": Written(_STRING, encoding.text),
    "name": Written(_STRING, encoding.text),
    "bytea": Written(_BYTES, encoding.binary),
    "date": Written(_logical("int32", "io.debezium.time.Date"), encoding.date),
    "time": Written(_time("MicroTime"), encoding.time),
    "timetz": Written(_logical("string", "io.debezium.time.ZonedTime"), encoding.zoned_time),
    "interval": Written(_logical("string", "io.debezium.time.Interval"), encoding.interval),
    "uuid": Written(_logical("string", "io.debezium.data.Uuid"), encoding.text),
    "json": JSON,
    "jsonb": JSON,
    "xml": Written(_logical("string", "io.debezium.data.Xml"), encoding.text),
    "tsvector": Written(_logical("string", "io.debezium.data.Tsvector"), encoding.text),
    "point": Written(_POINT, encoding.point),
    "inet": Written(_STRING, encoding.output),
    **{
        name: Written(_STRING, encoding.text)
        for name in (
            "cidr", "macaddr", "macaddr8", "int4range", "int8range", "numrange", "tsrange",
            "tstzrange", "daterange",
        )
    },
    **{
        name: Written(_BYTES, encoding.shape)
        for name in ("line", "lseg", "box", "path", "polygon", "circle")
    },
}  # fmt: skip

#: Types of extensions, wherever those are installed.
EXTENSIONS: Final[Mapping[str, Written]] = {
    "citext": Written(_STRING, encoding.text),
    "isbn": Written(_STRING, encoding.text),
    "ltree": Written(_logical("string", "io.debezium.data.Ltree"), encoding.text),
}

#: Types of PostGIS, and how Debezium calls them.
GEOMETRIES: Final = {"geometry": "Geometry", "geography": "Geography"}
#: Types of extensions that were never tried: Debezium has shapes of its own for them.
UNTRIED: Final = frozenset({"vector", "halfvec", "sparsevec"})

#: Arrays of these have elements that may be NULL; those of others may not.
NULLABLE_ELEMENTS: Final = frozenset({
    "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "text", "varchar",
    "bpchar", "char", "bytea", "date", "time", "timetz", "timestamp", "timestamptz", "uuid",
    "json", "jsonb", "inet", "cidr", "macaddr", "macaddr8", "int4range", "int8range", "numrange",
    "tsrange", "tstzrange", "daterange", "citext", "ltree", "hstore",
})  # fmt: skip

#: Arrays that Debezium leaves out of its events, or always writes as NULL or empty.
NO_ARRAYS: Final = frozenset({"money", "name", "interval", "bit", "varbit", "xml", "point"})


def geometry(name: str, schema: str) -> Written:
    """How a type of PostGIS leaves; `schema` is where the extension is, as SQL."""
    called = GEOMETRIES[name]
    shape: dict[str, Any] = {
        "type": "struct",
        "fields": [
            {"type": "bytes", "optional": False, "field": "wkb"},
            {"type": "int32", "optional": True, "field": "srid"},
        ],
        "name": f"io.debezium.data.geometry.{called}",
        "version": 1,
        "doc": called,
    }
    if name == "geometry":
        shape["optional"] = True
    return Written(shape, encoding.geometry(schema))


def built_in(name: str, typmod: int) -> Written | None:
    """How a type of pg_catalog leaves; None: Debezium does not know it, or cannot have it."""
    if name in {"numeric", "bit", "varbit", "timestamp", "timestamptz"}:
        return _with_length(name, typmod)
    return _SIMPLE.get(name)


def is_negative_scale(name: str, typmod: int) -> bool:
    """Whether a number has a scale below zero, which Debezium takes for one of over 2,000."""
    return name == "numeric" and typmod >= 0 and (typmod - _HEADER) & 0x400 != 0


def _with_length(name: str, typmod: int) -> Written:
    if name == "numeric":
        return _numeric(typmod)
    if name in {"bit", "varbit"}:
        if typmod == 1:
            return Written({"type": "boolean"}, encoding.one_bit)
        length = typmod if typmod >= 0 else 2**31 - 1
        schema = _logical("bytes", "io.debezium.data.Bits", parameters={"length": str(length)})
        return Written(schema, encoding.bits)
    digits = typmod if typmod >= 0 else 6
    if name == "timestamptz":
        schema = _logical("string", "io.debezium.time.ZonedTimestamp")
        return Written(schema, encoding.zoned_timestamp(digits))
    if digits <= 3:
        return Written(_time("Timestamp"), encoding.timestamp_millis)
    return Written(_time("MicroTimestamp"), encoding.timestamp_micros)


def _numeric(typmod: int) -> Written:
    if typmod < 0:
        return Written(_FREE_DECIMAL, encoding.free_decimal)
    precision, scale = (typmod - _HEADER) >> 16, (typmod - _HEADER) & 0x7FF
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return Written(_logical("bytes", _DECIMAL, parameters=parameters), encoding.decimal(precision))
