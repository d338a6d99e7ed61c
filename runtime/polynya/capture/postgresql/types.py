"""Column types of PostgreSQL, built-in and user-defined: Connect schemas and encodings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.capture.postgresql import encoding
from polynya.capture.postgresql.encoding import Encoding
from polynya.capture.postgresql.session import identifier

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
class LeftOut:
    """A column that Debezium cannot give, and why."""

    why: str


def written(types: Mapping[int, PgType], oid: int, typmod: int) -> Written | LeftOut:
    """How a column of a type leaves the database."""
    found = types.get(oid)
    while found is not None and found.kind == "d":
        typmod = found.base_typmod if found.base_typmod >= 0 else typmod
        oid, found = found.base, types.get(found.base)
    if found is None:
        return OPAQUE
    if found.element:
        return _array(types, found, typmod)
    if _is_untried(found):
        return LeftOut(f"{found.name} was never tried")
    if found.schema == _CATALOG and is_negative_scale(found.name, typmod):
        return LeftOut("a number with a negative scale has no exact place in the stream")
    return _single(found, typmod)


def _is_untried(found: PgType) -> bool:
    return found.schema != _CATALOG and found.kind == "b" and found.name in UNTRIED


def _single(found: PgType, typmod: int) -> Written:
    if found.kind == "e":
        schema = {
            "type": "string",
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": ",".join(found.labels)},
        }
        return Written(schema, encoding.text)
    if found.schema == _CATALOG:
        return built_in(found.name, typmod) or OPAQUE
    if found.name == "hstore":
        schema_of = {
            "type": "map",
            "keys": {"type": "string", "optional": False},
            "values": {"type": "string", "optional": True},
        }
        return Written(schema_of, encoding.map_of(identifier(found.schema)))
    if found.kind == "b" and found.name in GEOMETRIES:
        return geometry(found.name, identifier(found.schema))
    return EXTENSIONS.get(found.name, OPAQUE) if found.kind == "b" else OPAQUE


def _array(types: Mapping[int, PgType], found: PgType, typmod: int) -> Written | LeftOut:
    element = types.get(found.element)
    if found.schema == _CATALOG and found.name in {"int2vector", "oidvector"}:
        return LeftOut("the stream has lists of this type without their elements")
    if element is None or element.kind == "d":
        return _list_of(OPAQUE, may_be_null=False)
    if _is_untried(element) or (element.kind == "b" and element.name in GEOMETRIES):
        return LeftOut(f"lists of {element.name} were never tried")
    if element.schema == _CATALOG and element.name in NO_ARRAYS:
        return LeftOut(f"the stream has no lists of {element.name}")
    if element.schema == _CATALOG and is_negative_scale(element.name, typmod):
        return LeftOut("a number with a negative scale has no exact place in the stream")
    inner = _single(element, typmod)
    other = _IN_ARRAYS.get(element.name) if element.schema == _CATALOG else None
    if other is not None:
        inner = Written(inner.schema, other)
    is_known = element.kind in "br" and element.name in NULLABLE_ELEMENTS
    return _list_of(inner, may_be_null=is_known)


def _list_of(inner: Written, *, may_be_null: bool) -> Written:
    items = {**inner.schema, "optional": may_be_null}
    return Written(
        {"type": "array", "items": items}, encoding.array(inner.encode, null_elements=may_be_null)
    )
