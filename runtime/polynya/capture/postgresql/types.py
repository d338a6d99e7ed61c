"""Column types of PostgreSQL, built-in and user-defined: Connect schemas and encodings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.capture.postgresql import encoding
from polynya.capture.postgresql.encoding import Encoding
from polynya.capture.postgresql.session import identifier

_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
#: A typmod of numeric, bit and the like has this added to its number.
_HEADER: Final = 4


@dataclass(frozen=True, slots=True)
class ValueEncoding:
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
OPAQUE: Final = ValueEncoding(_BYTES, encoding.opaque)
JSON: Final = ValueEncoding(_logical("string", "io.debezium.data.Json"), encoding.text)
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

ROW_NUMBER_TYPE: Final = ValueEncoding({"type": "int64"}, encoding.plain)

#: Types whose schema does not depend on a length.
_SIMPLE: Final[Mapping[str, ValueEncoding]] = {
    "bool": ValueEncoding({"type": "boolean"}, encoding.plain),
    "int2": ValueEncoding({"type": "int16"}, encoding.plain),
    "int4": ValueEncoding({"type": "int32"}, encoding.plain),
    "int8": ValueEncoding({"type": "int64"}, encoding.plain),
    "oid": ValueEncoding({"type": "int64"}, encoding.plain),
    "float4": ValueEncoding({"type": "float"}, encoding.floating),
    "float8": ValueEncoding({"type": "double"}, encoding.floating),
    "money": ValueEncoding(_logical("bytes", _DECIMAL, parameters={"scale": "2"}), encoding.money),
    "text": ValueEncoding(_STRING, encoding.text),
    "varchar": ValueEncoding(_STRING, encoding.text),
    "bpchar": ValueEncoding(_STRING, encoding.output),
    "char": ValueEncoding(_STRING, encoding.text),
    "name": ValueEncoding(_STRING, encoding.text),
    "bytea": ValueEncoding(_BYTES, encoding.binary),
    "date": ValueEncoding(_logical("int32", "io.debezium.time.Date"), encoding.date),
    "time": ValueEncoding(_time("MicroTime"), encoding.time),
    "timetz": ValueEncoding(_logical("string", "io.debezium.time.ZonedTime"), encoding.zoned_time),
    "interval": ValueEncoding(_logical("string", "io.debezium.time.Interval"), encoding.interval),
    "uuid": ValueEncoding(_logical("string", "io.debezium.data.Uuid"), encoding.text),
    "json": JSON,
    "jsonb": JSON,
    "xml": ValueEncoding(_logical("string", "io.debezium.data.Xml"), encoding.text),
    "tsvector": ValueEncoding(_logical("string", "io.debezium.data.Tsvector"), encoding.text),
    "point": ValueEncoding(_POINT, encoding.point),
    "inet": ValueEncoding(_STRING, encoding.output),
    **{
        name: ValueEncoding(_STRING, encoding.text)
        for name in (
            "cidr", "macaddr", "macaddr8", "int4range", "int8range", "numrange", "tsrange",
            "tstzrange", "daterange",
        )
    },
    **{
        name: ValueEncoding(_BYTES, encoding.shape)
        for name in ("line", "lseg", "box", "path", "polygon", "circle")
    },
}  # fmt: skip

#: Types of extensions, wherever those are installed.
EXTENSIONS: Final[Mapping[str, ValueEncoding]] = {
    "citext": ValueEncoding(_STRING, encoding.text),
    "isbn": ValueEncoding(_STRING, encoding.text),
    "ltree": ValueEncoding(_logical("string", "io.debezium.data.Ltree"), encoding.text),
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


def geometry(name: str, schema: str) -> ValueEncoding:
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
    return ValueEncoding(shape, encoding.geometry(schema))


def built_in(name: str, typmod: int) -> ValueEncoding | None:
    """How a type of pg_catalog leaves; None: Debezium does not know it, or cannot have it."""
    if name in {"numeric", "bit", "varbit", "timestamp", "timestamptz"}:
        return _with_length(name, typmod)
    return _SIMPLE.get(name)


def is_negative_scale(name: str, typmod: int) -> bool:
    """Whether a number has a scale below zero, which Debezium takes for one of over 2,000."""
    return name == "numeric" and typmod >= 0 and (typmod - _HEADER) & 0x400 != 0


def _with_length(name: str, typmod: int) -> ValueEncoding:
    if name == "numeric":
        return _numeric(typmod)
    if name in {"bit", "varbit"}:
        if typmod == 1:
            return ValueEncoding({"type": "boolean"}, encoding.one_bit)
        length = typmod if typmod >= 0 else 2**31 - 1
        schema = _logical("bytes", "io.debezium.data.Bits", parameters={"length": str(length)})
        return ValueEncoding(schema, encoding.bits)
    digits = typmod if typmod >= 0 else 6
    if name == "timestamptz":
        schema = _logical("string", "io.debezium.time.ZonedTimestamp")
        return ValueEncoding(schema, encoding.zoned_timestamp(digits))
    if digits <= 3:
        return ValueEncoding(_time("Timestamp"), encoding.timestamp_millis)
    return ValueEncoding(_time("MicroTimestamp"), encoding.timestamp_micros)


def _numeric(typmod: int) -> ValueEncoding:
    if typmod < 0:
        return ValueEncoding(_FREE_DECIMAL, encoding.free_decimal)
    precision, scale = (typmod - _HEADER) >> 16, (typmod - _HEADER) & 0x7FF
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return ValueEncoding(
        _logical("bytes", _DECIMAL, parameters=parameters), encoding.decimal(precision)
    )


_CATALOG = "pg_catalog"
_IN_ARRAYS = {"date": encoding.date_in_array, "time": encoding.time_in_array}


@dataclass(frozen=True, slots=True)
class PgType:
    """A row of pg_type.

    Attributes:
        kind: `b` base, `d` domain, `e` enum, `c` composite, `r` range, `m` multirange.
        element: of an array, else 0.
        base: of a domain, else 0; `base_typmod` with it.
        labels: of an enum.
    """

    schema: str
    name: str
    kind: str
    element: int = 0
    base: int = 0
    base_typmod: int = -1
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsupportedType:
    """A column that Debezium cannot give, and why."""

    why: str


def written(
    types: Mapping[int, PgType], oid: int, typmod: int, *, dimensions: int = 1
) -> ValueEncoding | UnsupportedType:
    """How a column of a type leaves the database; arrays are declared with so many dimensions."""
    type_ = types.get(oid)
    while type_ is not None and type_.kind == "d":
        typmod = type_.base_typmod if type_.base_typmod >= 0 else typmod
        oid, type_ = type_.base, types.get(type_.base)
    if type_ is None:
        return OPAQUE
    if type_.element and dimensions > 1:
        return UnsupportedType("the stream has lists of one dimension only")
    if type_.element:
        return _array(types, type_, typmod)
    if _is_untried(type_):
        return UnsupportedType(f"{type_.name} was never tried")
    if type_.schema == _CATALOG and is_negative_scale(type_.name, typmod):
        return UnsupportedType("a number with a negative scale has no exact place in the stream")
    return _single(type_, typmod)


def _is_untried(type_: PgType) -> bool:
    return type_.schema != _CATALOG and type_.kind == "b" and type_.name in UNTRIED


def _single(type_: PgType, typmod: int) -> ValueEncoding:
    if type_.kind == "e":
        schema = {
            "type": "string",
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": ",".join(type_.labels)},
        }
        return ValueEncoding(schema, encoding.text)
    if type_.schema == _CATALOG:
        return built_in(type_.name, typmod) or OPAQUE
    if type_.name == "hstore":
        schema_of = {
            "type": "map",
            "keys": {"type": "string", "optional": False},
            "values": {"type": "string", "optional": True},
        }
        return ValueEncoding(schema_of, encoding.map_of(identifier(type_.schema)))
    if type_.kind == "b" and type_.name in GEOMETRIES:
        return geometry(type_.name, identifier(type_.schema))
    return EXTENSIONS.get(type_.name, OPAQUE) if type_.kind == "b" else OPAQUE


def _array(
    types: Mapping[int, PgType], type_: PgType, typmod: int
) -> ValueEncoding | UnsupportedType:
    element = types.get(type_.element)
    if type_.schema == _CATALOG and type_.name in {"int2vector", "oidvector"}:
        return UnsupportedType("the stream has lists of this type without their elements")
    if element is None or element.kind == "d":
        return _list_of(OPAQUE, may_be_null=False)
    if _is_untried(element) or (element.kind == "b" and element.name in GEOMETRIES):
        return UnsupportedType(f"lists of {element.name} were never tried")
    if element.schema == _CATALOG and element.name in NO_ARRAYS:
        return UnsupportedType(f"the stream has no lists of {element.name}")
    if element.schema == _CATALOG and is_negative_scale(element.name, typmod):
        return UnsupportedType("a number with a negative scale has no exact place in the stream")
    inner = _single(element, typmod)
    other = _IN_ARRAYS.get(element.name) if element.schema == _CATALOG else None
    if other is not None:
        inner = ValueEncoding(inner.schema, other)
    is_known = element.kind in "br" and element.name in NULLABLE_ELEMENTS
    return _list_of(inner, may_be_null=is_known)


def _list_of(inner: ValueEncoding, *, may_be_null: bool) -> ValueEncoding:
    items = {**inner.schema, "optional": may_be_null}
    return ValueEncoding(
        {"type": "array", "items": items}, encoding.array(inner.encode, null_elements=may_be_null)
    )
