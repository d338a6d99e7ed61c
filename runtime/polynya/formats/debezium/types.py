"""Column types and decoders for Kafka Connect schemas, Avro schemas and MongoDB's extended JSON.

Types without an exact counterpart become text: times of day, intervals, and decimals without a
scale or with more than 38 digits. A column of nanosecond times becomes `timestamp_ntz` if every
value in its first batch is a whole microsecond, else `bigint` nanoseconds.

Connect's Avro converter keeps types that Avro lacks in `connect.name`, `connect.parameters` and
`connect.internal.type`. A logical type alone, from another writer, has the same meaning.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from polynya.formats.errors import RecordError
from polynya.formats.records.avro import MAX_DEPTH, named_types
from polynya.formats.records.json import parse_object, parse_value
from polynya.formats.values import times
from polynya.formats.values.exact import exact_decimal
from polynya.formats.values.times import DAY_MICROS, Micros, Nanos, in_range, iso_micros
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
    MapType,
    Struct,
    Void,
)
from polynya.model.types import Decimal as DecimalType

#: A value that is not None, as Connect's JSON has it.
Encoder: TypeAlias = Callable[[Any], Any]

_AVRO_PRIMITIVES: Final = {
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
_AVRO_LOGICAL: Final = {
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
        schema = {"type": schema} if schema in _AVRO_PRIMITIVES else named[schema]
    kind = schema["type"]
    if kind == "record":
        return _record(schema, named, depth)
    if kind == "array":
        return _avro_array(schema, named, depth)
    if kind == "map":
        return _avro_map(Form({"type": "string"}), _form(schema["values"], named, depth + 1))
    if isinstance(kind, str) and kind in _AVRO_PRIMITIVES:
        return _primitive(schema, _AVRO_PRIMITIVES[kind])
    return _form(kind, named, depth + 1)


def _primitive(schema: Mapping[str, Any], kind: str) -> Form:
    name = schema.get("connect.name") or _AVRO_LOGICAL.get(str(schema.get("logicalType")))
    connect: dict[str, Any] = {"type": kind, **({} if name is None else {"name": name})}
    if name == _DECIMAL:
        connect["parameters"] = _decimal_parameters(schema)
    encoders: dict[str, Encoder] = {
        "bytes": _base64,
        "float": _avro_floating,
        "double": _avro_floating,
    }
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


def _avro_array(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> Form:
    item = _form(schema["items"], named, depth + 1)
    if item.schema["type"] == "struct" and _is_map_entry(schema["items"], named):
        return _avro_map(item.fields["key"], item.fields["value"])
    connect = {"type": "array", "items": item.schema}
    return Form(connect, item.encoder and (lambda value: [item.encode(member) for member in value]))


def _is_map_entry(items: Any, named: Mapping[str, Any]) -> bool:
    record = named[items] if isinstance(items, str) else items
    marks = (record.get("connect.internal.type"), str(record.get("name")).rpartition(".")[2])
    return "MapEntry" in marks


def _avro_map(key: Form, item: Form) -> Form:
    connect = {"type": "map", "keys": key.schema, "values": item.schema}

    def encode(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item.encode(one) for name, one in value.items()}
        return [[key.encode(pair["key"]), item.encode(pair["value"])] for pair in value]

    return Form(connect, encode)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _avro_floating(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def document(text: Any) -> dict[str, Any]:
    """A document from its text. Raises RecordError."""
    if isinstance(text, dict):
        return _fields(text)
    if not isinstance(text, str):
        raise RecordError("bad_json", "a document comes as JSON text")
    return _fields(parse_object(text.encode()))


def identifier(text: Any) -> Any:
    """The `_id` that an event's key holds as extended JSON text; plain text stays what it is."""
    if not isinstance(text, str):
        return plain(text)
    try:
        return plain(parse_value(text.encode()))
    except RecordError:
        return text


def plain(value: Any) -> Any:
    """A value without `$` objects. Raises RecordError bad_value."""
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    name = next(iter(value), "")
    if name in _SPECIAL and len(value) == 1:
        try:
            return _SPECIAL[name](value[name])
        except (ValueError, TypeError, LookupError, InvalidOperation, binascii.Error):
            raise RecordError("bad_value", f"{str(value)[:80]} is not valid") from None
    return _fields(value)


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(inner) for name, inner in value.items()}


def _date(value: Any) -> Micros:
    inner = plain(value)
    return Micros(iso_micros(inner) if isinstance(inner, str) else in_range(int(inner) * 1000))


def _json_decimal(value: Any) -> Decimal:
    number = Decimal(str(value))
    if not number.is_finite():
        raise ValueError(f"{value} is not a number")
    return number


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    "$oid": str,
    "$numberInt": int,
    "$numberLong": int,
    "$numberDouble": float,
    "$numberDecimal": _json_decimal,
    "$date": _date,
    "$uuid": str,
    "$symbol": str,
    "$binary": lambda value: base64.b64decode(
        value["base64"] if isinstance(value, dict) else value, validate=True
    ),
}


#: A value that is not None, decoded. Raises ValueError.
Decoder: TypeAlias = Callable[[Any], Any]
Typed: TypeAlias = tuple[DataType, Decoder]

_EXACT = Context(prec=1000)
_MAX_PRECISION = 38
_MAX_SCALE = 1000
_MAX_DEPTH = 64
#: Seconds of an interval that are not whole microseconds.
_SECONDS = re.compile(r"(?<=M)(-?[0-9]{1,12}\.[0-9]{7,12})S$", re.ASCII)
_MICRO = Decimal("0.000001")

# What Debezium writes for PostgreSQL's infinities. A table has no such moment: they become the last
# and the first one that it has, so that every comparison with them stays true.
_INFINITIES = {"infinity": times.MAX_MICROS, "-infinity": times.MIN_MICROS}
_INFINITE_MICROS = {
    9223372036825200000: times.MAX_MICROS,
    -9223372036832400000: times.MIN_MICROS,
}
# In arrays, and by older releases everywhere, they are other numbers than in columns.
_INFINITE_DAYS = {
    -2147472692: times.MAX_DAYS, -622191234: times.MAX_DAYS,
    -2147472691: times.MIN_DAYS, -625821272: times.MIN_DAYS,
}  # fmt: skip


def typed(schema: Mapping[str, Any], depth: int = 0) -> Typed:
    """The column type and decoder of a Connect schema. Raises ValueError when it is none."""
    if depth > _MAX_DEPTH:
        raise ValueError("the schema is nested too deep")
    name = schema.get("name")
    if name in _PARAMETRIC:
        return _PARAMETRIC[name](schema)
    if name in _CONNECT_LOGICAL:
        return _CONNECT_LOGICAL[name]
    kind = schema.get("type")
    if kind == "struct":
        return _struct(schema, depth)
    if kind == "array":
        return _connect_array(schema, depth)
    if kind == "map":
        return _connect_map(schema, depth)
    if not isinstance(kind, str) or kind not in _CONNECT_PRIMITIVES:
        raise ValueError(f"type {kind!r} of the event's schema is not known")
    return _CONNECT_PRIMITIVES[kind]


def fields_of(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Typed]:
    """The typed fields of a struct schema. Raises ValueError."""
    fields = schema.get("fields")
    if not isinstance(fields, list):
        raise ValueError("the schema of a struct has no fields")  # noqa: TRY004
    found: dict[str, Typed] = {}
    for item in fields:
        if not isinstance(item, dict) or not isinstance(item.get("field"), str):
            raise ValueError("a field of the event's schema has no name")  # noqa: TRY004
        found[item["field"]] = typed(item, depth + 1)
    return found


def decode_binary(value: Any) -> bytes:
    """Base64 as Connect writes bytes."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]!r} is not base64")  # noqa: TRY004
    try:
        # As `base64.b64decode` with `validate`, without its detours.
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise ValueError(f"{value[:60]!r} is not base64") from None


def unscaled_decimal(value: str, scale: int) -> Decimal:
    """Base64 of a big-endian two's complement number, shifted by the scale."""
    number = int.from_bytes(decode_binary(value), "big", signed=True)
    return Decimal(number).scaleb(-scale, context=_EXACT)


def time_text(micros: int, fraction: int = 0) -> str:
    """A time of day or duration as `[-]HH:MM:SS[.fraction]`; `fraction`: nanoseconds below a µs."""
    sign = "-" if micros < 0 else ""
    seconds, rest = divmod(abs(micros), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if fraction:
        return f"{text}.{rest:06d}{fraction:03d}"
    return f"{text}.{rest:06d}" if rest else text


def _same(value: Any) -> Any:
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{str(value)[:60]!r} is not a whole number")  # noqa: TRY004
    return value


def _connect_floating(value: Any) -> Any:
    """The double that the source sent.

    Its text is not always the shortest that means it: Java before 19 writes 4.9E-324 for 5e-324
    (JDK-4511638). So the text means the nearest double, and is never held against the digits of
    another spelling.
    """
    # Connect writes what JSON has no number for as text.
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return value
    try:
        number = float(value)
    except OverflowError:
        return value
    return number if math.isfinite(number) else value


def _single(value: Any) -> Any:
    """The float of 32 bits that the source sent, also where its column has become a double."""
    number = _connect_floating(value)
    if not isinstance(number, float):
        return number
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return number


def postgresql_intervals(row: Mapping[str, Any]) -> dict[str, Typed]:
    """The columns of a row of PostgreSQL that are intervals: whole microseconds.

    Debezium passes the seconds through a double and cuts it after nine digits: 17.702 arrives as
    17.701999999. Other sources have nine digits that are real.
    """
    return {
        item["field"]: (STRING, _whole_micros)
        for item in row.get("fields", ())
        if item.get("name") == f"{_TIME}Interval"
    }


def _whole_micros(value: Any) -> Any:
    found = _SECONDS.search(value) if isinstance(value, str) else None
    if found is None:
        return value
    seconds = Decimal(found[1]).quantize(_MICRO, ROUND_HALF_EVEN).normalize()
    return f"{value[: found.start()]}{seconds:f}S"


def _time(unit_micros: int) -> Decoder:
    return lambda value: time_text(_whole(value) * unit_micros)


def _nano_time(value: Any) -> str:
    number = _whole(value)
    micros, fraction = divmod(abs(number), 1000)
    text = time_text(micros, fraction)
    return f"-{text}" if number < 0 else text


def _wall_clock(unit_micros: int) -> Decoder:
    def decode(value: Any) -> Micros:
        micros = _whole(value) * unit_micros
        return Micros(_INFINITE_MICROS.get(micros) or times.in_range(micros))

    return decode


def _instant(value: Any) -> Micros:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:60]!r} is not an ISO 8601 date-time")  # noqa: TRY004
    if value in _INFINITIES:
        return Micros(_INFINITIES[value])
    return Micros(times.iso_micros(value, exact=True))


def _days(value: Any) -> int:
    days = _whole(value)
    return _INFINITE_DAYS.get(days) or times.days_in_range(days)


def _iso_date(value: Any) -> int:
    return _instant(str(value).removesuffix("Z")) // DAY_MICROS


def _connect_decimal(schema: Mapping[str, Any]) -> Typed:
    parameters = schema.get("parameters") or {}
    try:
        scale = int(parameters["scale"])
        precision = int(parameters.get("connect.decimal.precision", _MAX_PRECISION))
    except (LookupError, ValueError, TypeError, AttributeError):
        raise ValueError("a decimal of the event's schema has no scale") from None
    if abs(scale) > _MAX_SCALE:
        raise ValueError(f"scale {scale} is out of range")

    def number(value: Any) -> Decimal:
        return unscaled_decimal(value, scale) if isinstance(value, str) else exact_decimal(value)

    if 0 <= scale <= precision <= _MAX_PRECISION:
        return DecimalType(precision, scale), number
    # More digits than a decimal column has: exact as text only.
    return STRING, lambda value: format(number(value), "f")


def _variable_decimal(_: Mapping[str, Any]) -> Typed:
    return STRING, decode_variable_decimal


def decode_variable_decimal(value: Any) -> str:
    """`{"scale", "value"}` as plain decimal text."""
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:60]!r} is not a decimal with its scale")  # noqa: TRY004
    scale = _whole(value.get("scale"))
    if abs(scale) > 20_000:
        raise ValueError(f"scale {scale} is out of range")
    number = int.from_bytes(decode_binary(value.get("value")), "big", signed=True)
    return format(Decimal((int(number < 0), Decimal(abs(number)).as_tuple().digits, -scale)), "f")


def _struct(schema: Mapping[str, Any], depth: int) -> Typed:
    fields = fields_of(schema, depth)

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: _optional(fields.get(name), inner) for name, inner in value.items()}

    return Struct(tuple((name, kind) for name, (kind, _) in fields.items())), decode


def _connect_array(schema: Mapping[str, Any], depth: int) -> Typed:
    item = typed(_part(schema, "items"), depth + 1)

    def decode(value: Any) -> Any:
        return [_optional(item, member) for member in value] if isinstance(value, list) else value

    return Array(item[0]), decode


def _connect_map(schema: Mapping[str, Any], depth: int) -> Typed:
    key, item = (typed(_part(schema, part), depth + 1) for part in ("keys", "values"))

    def decode(value: Any) -> Any:
        pairs = value.items() if isinstance(value, dict) else value
        return [(_optional(key, one), _optional(item, other)) for one, other in pairs]

    return MapType(key[0], item[0]), decode


def _part(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = schema.get(name)
    if not isinstance(part, dict):
        raise ValueError(f"the event's schema has no {name}")  # noqa: TRY004
    return part


def _optional(kind: Typed | None, value: Any) -> Any:
    return value if value is None or kind is None else kind[1](value)


_CONNECT_PRIMITIVES: dict[str, Typed] = {
    "boolean": (BOOLEAN, _same),
    "int8": (INT, _same),
    "int16": (INT, _same),
    "int32": (INT, _same),
    "int64": (BIGINT, _same),
    "float": (FLOAT, _single),
    "float32": (FLOAT, _single),
    "double": (DOUBLE, _connect_floating),
    "float64": (DOUBLE, _connect_floating),
    "string": (STRING, _same),
    "bytes": (BINARY, decode_binary),
}
_TIME = "io.debezium.time."
_CONNECT = "org.apache.kafka.connect.data."
_CONNECT_LOGICAL: dict[Any, Typed] = {
    f"{_CONNECT}Date": (DATE, _days),
    f"{_CONNECT}Time": (STRING, _time(1000)),
    f"{_CONNECT}Timestamp": (TIMESTAMP_NTZ, _wall_clock(1000)),
    f"{_TIME}Date": (DATE, _days),
    f"{_TIME}Time": (STRING, _time(1000)),
    f"{_TIME}MicroTime": (STRING, _time(1)),
    f"{_TIME}NanoTime": (STRING, _nano_time),
    f"{_TIME}Timestamp": (TIMESTAMP_NTZ, _wall_clock(1000)),
    f"{_TIME}MicroTimestamp": (TIMESTAMP_NTZ, _wall_clock(1)),
    # The values decide, see the module's first lines.
    f"{_TIME}NanoTimestamp": (Void(), lambda value: Nanos(_whole(value))),
    f"{_TIME}ZonedTimestamp": (TIMESTAMP, _instant),
    f"{_TIME}IsoDate": (DATE, _iso_date),
    f"{_TIME}IsoTimestamp": (TIMESTAMP_NTZ, _instant),
}
_PARAMETRIC: dict[Any, Callable[[Mapping[str, Any]], Typed]] = {
    f"{_CONNECT}Decimal": _connect_decimal,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
}
