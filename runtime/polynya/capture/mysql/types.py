"""Column types of MariaDB and MySQL: Connect schemas, and JSON values as Debezium writes them.

The schemas are those of Debezium 3.5 with the settings of a capture. A type that Debezium reads
wrongly or not at all has another name in the schema history: UUIDs and addresses are BINARY there,
and loads write them as bytes too.

An encoder takes the text of a value that is not NULL. Where Debezium loses precision, the encoder
loses the same, so that a row is equal whether it was loaded or streamed.
"""

from __future__ import annotations

import ipaddress
import json
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

Encoder: TypeAlias = Callable[[bytes], bytes]

NULL: Final = b"null"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall clock, as the type has it
_EPOCH_DAY: Final = _EPOCH.toordinal()
_MICRO: Final = timedelta(microseconds=1)
_NO_REFERENCE: Final = 0
#: Java writes doubles between these without an exponent.
_LEAST_PLAIN: Final = 1e-3
_LEAST_LARGE: Final = 1e7
#: What Debezium escapes in texts of JSON, and how.
_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u00{code:02X}" for code in range(32)}
    | dict(zip('"\\\b\t\n\f\r', ("\\" + letter for letter in '"\\btnfr'), strict=True))
)
#: Byte order of a point, its type, then its coordinates.
_POINT: Final = {1: struct.Struct("<dd"), 0: struct.Struct(">dd")}


def whole(value: bytes) -> bytes:
    """A whole number; zeros before it are not of JSON."""
    return value if value[:1] != b"0" else str(int(value)).encode()


def decimal(value: bytes) -> bytes:
    """The digits as one number, big-endian in two's complement, as few bytes as it takes."""
    number = int(value.replace(b".", b""))
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b'"' + b64encode(number.to_bytes(length, "big", signed=True)) + b'"'


def double(value: bytes) -> bytes:
    """A number of 64 bits."""
    return repr(float(value)).encode()


def single(value: bytes) -> bytes:
    """A number of 32 bits, in the fewest digits that say which."""
    number = float(value)
    wanted = struct.pack("f", number)
    for digits in range(6, 9):
        text = f"{number:.{digits}g}"
        # One that is near the largest may be beyond it in fewer digits.
        if abs(float(text)) <= abs(number) * 1.001 and _packed(float(text)) == wanted:
            return repr(float(text)).encode()
    return repr(float(f"{number:.9g}")).encode()


def _packed(number: float) -> bytes | None:
    try:
        return struct.pack("f", number)
    except OverflowError:
        return None


def text(value: bytes) -> bytes:
    """Text."""
    return encode_basestring(value.decode("utf-8", "replace")).encode()


def document(value: bytes) -> bytes:
    """A JSON document of MySQL, as Debezium writes it: without blanks, large numbers in full.

    The server keeps no text of a document, but its parts; names are in its own order. In its text
    a number with a point may be a DOUBLE or a DECIMAL, and a text may be a time or bytes. Debezium
    writes these in other ways than numbers and texts, which `docs/data-types.md` lists.
    """
    return text(document_text(value))


def document_text(value: bytes) -> bytes:
    """The text of a document in an event, from that of the server."""
    return _document(json.loads(value, parse_float=_number)).encode()


class _JsonNumber(float):
    """A number that has been written with a point or an exponent."""

    __slots__ = ("written",)
    written: str


def _number(written: str) -> _JsonNumber:
    number = _JsonNumber(written)
    number.written = written
    return number


def _document(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(k)}:{_document(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_document, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return _double_of(value) if isinstance(value, _JsonNumber) else json.dumps(value)


def _quoted(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


def _double_of(number: _JsonNumber) -> str:
    """A double as Java has it, where it needs no exponent for it, else all of its digits."""
    shortest = repr(float(number))
    is_decimal = "e" not in number.written and Decimal(shortest) != Decimal(number.written)
    if is_decimal or (number.written.endswith("0") and not number.written.endswith(".0")):
        return number.written
    if not number or _LEAST_PLAIN <= abs(number) < _LEAST_LARGE:
        return format(Decimal(shortest), "f")
    return format(Decimal(float(number)), "f")


def label(value: bytes) -> bytes:
    """A label of an ENUM: Debezium writes a backslash before its commas."""
    return text(value.replace(b",", b"\\,"))


def binary(value: bytes) -> bytes:
    """Bytes as base64."""
    return b'"' + b64encode(value) + b'"'


def uuid(value: bytes) -> bytes:
    """The 16 bytes of a UUID."""
    return binary(bytes.fromhex(value.replace(b"-", b"").decode("ascii")))


def address(value: bytes) -> bytes:
    """The bytes of an address of the Internet Protocol."""
    return binary(ipaddress.ip_address(value.decode("ascii")).packed)


def flag(value: bytes) -> bytes:
    """BIT(1), which comes as a byte."""
    return b"true" if value != b"\0" else b"false"


def bits(value: bytes) -> bytes:
    """BIT(n), the last byte first."""
    return binary(value[::-1])


def year(value: bytes) -> bytes:
    """A year; of 0000 the log of changes says 1900."""
    return b"1900" if value == b"0000" else value


def days(empty: bytes) -> Encoder:
    """Days since 1970; `empty` for a date that no calendar has, such as 2024-00-00."""

    def encode(value: bytes) -> bytes:
        try:
            day = date.fromisoformat(value.decode("ascii"))
        except ValueError:
            return empty
        return str(day.toordinal() - _EPOCH_DAY).encode()

    return encode


def wall_clock(unit_micros: int, empty: bytes) -> Encoder:
    """A DATETIME in units since 1970; `empty` as for days."""

    def encode(value: bytes) -> bytes:
        try:
            moment = datetime.fromisoformat(value.decode("ascii"))
        except ValueError:
            return empty
        return str((moment - _EPOCH) // _MICRO // unit_micros).encode()

    return encode


def instant(value: bytes) -> bytes:
    """A TIMESTAMP, which the session gives in UTC; that of no calendar is the beginning of 1970."""
    if value.startswith(b"0000"):
        value = b"1970-01-01" + value[10:]
    return b'"' + value.replace(b" ", b"T") + b'Z"'


def duration(value: bytes) -> bytes:
    """A TIME in microseconds, also a negative one."""
    sign, value = (-1, value[1:]) if value[:1] == b"-" else (1, value)
    clock, _, fraction = value.partition(b".")
    hours, minutes, seconds = (int(part) for part in clock.split(b":"))
    micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int(fraction.ljust(6, b"0"))
    return str(sign * micros).encode()


def geometry(value: bytes) -> bytes:
    """Well-known bytes and the number of the reference system, which stands before them."""
    return b'{"wkb":' + binary(value[4:]) + b',"srid":' + _reference(value) + b"}"


def point(value: bytes) -> bytes:
    """A point: its coordinates beside the same."""
    order = _POINT[value[4]]
    x, y = order.unpack_from(value, 9)
    head = f'{{"x":{x!r},"y":{y!r},"wkb":'.encode()
    return head + binary(value[4:]) + b',"srid":' + _reference(value) + b"}"


def _reference(value: bytes) -> bytes:
    number = int.from_bytes(value[:4], "little")
    return NULL if number == _NO_REFERENCE else str(number).encode()


_CONNECT: Final = "org.apache.kafka.connect.data."
_DEBEZIUM: Final = "io.debezium."
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """What the catalog says of a column. `type` is its word, `full` the whole as in DDL."""

    name: str
    type: str
    full: str
    nullable: bool
    charset: str | None = None
    precision: int | None = None
    scale: int | None = None
    fraction: int | None = None
    """Digits of the fraction of a second."""
    collation: str | None = None

    @property
    def plain(self) -> str:
        """The type in DDL, without the comments that versions of servers put there."""
        return " ".join(_COMMENT.sub(" ", self.full).split())

    @property
    def shown(self) -> str:
        """The type with its character set, for messages."""
        return f"{self.full} CHARACTER SET {self.charset}" if self.charset else self.full


@dataclass(frozen=True, slots=True)
class Coding:
    """How values of a column are read and written.

    Attributes:
        connect: Connect schema of the field, without name and `optional`.
        encode: from the text of the server to JSON.
        expression: of SQL, in which `{}` is the column.
        history: type in the schema history; None: the one that the catalog has.
        key: how a value stands in a condition on the key: `number`, `bytes`, `collated` (text that
            a collation orders), `text` (what the server reads from one, as a date); None: rows are
            not read in the order of such a column.
    """

    connect: Mapping[str, Any]
    encode: Encoder
    expression: str = "{}"
    history: str | None = None
    key: str | None = None


#: Character sets that Debezium takes for others, so that its texts are wrong.
_WRONG_SETS: Final = frozenset({"cp932", "geostd8", "hp8", "keybcs2"})


def coding_of(facts: ColumnDefinition) -> Coding | None:
    """The coding of a column; None for one that cannot be captured as it is."""
    made = _KINDS.get(facts.type)
    if made is None or "COMPRESSED" in facts.full or facts.charset in _WRONG_SETS:
        return None
    return made(facts)


def _named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind, "name": name, "version": 1}
    return schema | ({"parameters": parameters} if parameters else {})


def _whole(signed: str, unsigned: str) -> Callable[[ColumnDefinition], Coding]:
    def made(facts: ColumnDefinition) -> Coding:
        kind = unsigned if "unsigned" in facts.full else signed
        return Coding({"type": kind}, whole, key="number")

    return made


def _bigint(facts: ColumnDefinition) -> Coding:
    if "unsigned" in facts.full:
        return Coding(_decimal_schema(20, 0), decimal, key="number")
    return Coding({"type": "int64"}, whole, key="number")


def _decimal(facts: ColumnDefinition) -> Coding:
    schema = _decimal_schema(facts.precision or 10, facts.scale or 0)
    return Coding(schema, decimal, key="number")


def _decimal_schema(precision: int, scale: int) -> dict[str, Any]:
    return {
        "type": "bytes", "name": f"{_CONNECT}Decimal", "version": 1,
        "parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
    }  # fmt: skip


def _float(facts: ColumnDefinition) -> Coding:
    # FLOAT(7,3) is a double to Debezium, FLOAT is not.
    kind, encode = ("double", double) if "," in facts.plain else ("float", single)
    # Not CAST AS DOUBLE, which MySQL has since 8.0.17; a sum would lose the sign of zero.
    return Coding({"type": kind}, encode, "({} * 1e0)")


def _double(_: ColumnDefinition) -> Coding:
    return Coding({"type": "double"}, double)


def _bit(facts: ColumnDefinition) -> Coding:
    length = facts.precision or 1
    if length == 1:
        return Coding({"type": "boolean"}, flag)
    return Coding(_named("bytes", f"{_DEBEZIUM}data.Bits", length=str(length)), bits)


def _year(_: ColumnDefinition) -> Coding:
    return Coding(_named("int32", f"{_DEBEZIUM}time.Year"), year, key="number")


def _empty(facts: ColumnDefinition) -> bytes:
    """What a date of no calendar becomes."""
    return NULL if facts.nullable else b"0"


def _date(facts: ColumnDefinition) -> Coding:
    schema = _named("int32", f"{_DEBEZIUM}time.Date")
    return Coding(schema, days(_empty(facts)), key="text")


def _datetime(facts: ColumnDefinition) -> Coding:
    is_fine = (facts.fraction or 0) > 3
    name, unit = ("MicroTimestamp", 1) if is_fine else ("Timestamp", 1000)
    encode = wall_clock(unit, _empty(facts))
    return Coding(_named("int64", f"{_DEBEZIUM}time.{name}"), encode, key="text")


def _timestamp(_: ColumnDefinition) -> Coding:
    schema = _named("string", f"{_DEBEZIUM}time.ZonedTimestamp")
    return Coding(schema, instant, key="text")


def _time(_: ColumnDefinition) -> Coding:
    return Coding(_named("int64", f"{_DEBEZIUM}time.MicroTime"), duration, key="text")


def _text(_: ColumnDefinition) -> Coding:
    return Coding({"type": "string"}, text, key="collated")


def _long_text(_: ColumnDefinition) -> Coding:
    return Coding({"type": "string"}, text)


def _json(_: ColumnDefinition) -> Coding:
    # Of MySQL: MariaDB has JSON as text.
    return Coding(_named("string", f"{_DEBEZIUM}data.Json"), document)


def _bytes(_: ColumnDefinition) -> Coding:
    return Coding({"type": "bytes"}, binary, key="bytes")


def _long_bytes(_: ColumnDefinition) -> Coding:
    return Coding({"type": "bytes"}, binary)


def _uuid(_: ColumnDefinition) -> Coding:
    return Coding({"type": "bytes"}, uuid, history="binary(16)", key="text")


def _address(length: int) -> Callable[[ColumnDefinition], Coding]:
    def made(_: ColumnDefinition) -> Coding:
        kind = f"binary({length})"
        return Coding({"type": "bytes"}, address, history=kind, key="text")

    return made


def _labels(name: str, encode: Encoder) -> Callable[[ColumnDefinition], Coding]:
    def made(facts: ColumnDefinition) -> Coding:
        labels = [label.replace(",", "\\,") for label in labels_of(facts.plain)]
        schema = _named("string", f"{_DEBEZIUM}data.{name}", allowed=",".join(labels))
        return Coding(schema, encode)

    return made


def labels_of(full: str) -> list[str]:
    """The labels of `enum('a','b''c')` or `set(…)`."""
    return [label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", full)]


def _geometry(_: ColumnDefinition) -> Coding:
    wkb = {"type": "bytes", "optional": False, "field": "wkb"}
    schema = _shape("Geometry", "Geometry", [wkb])
    return Coding(schema, geometry)


def _point(_: ColumnDefinition) -> Coding:
    fields = [{"type": "double", "optional": False, "field": name} for name in ("x", "y")]
    wkb = {"type": "bytes", "optional": True, "field": "wkb"}
    return Coding(_shape("Point", "Geometry (POINT)", [*fields, wkb]), point)


def _shape(name: str, doc: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    srid = {"type": "int32", "optional": True, "field": "srid"}
    return {
        "type": "struct", "fields": [*fields, srid],
        "name": f"{_DEBEZIUM}data.geometry.{name}", "version": 1, "doc": doc,
    }  # fmt: skip


_KINDS: Final[dict[str, Callable[[ColumnDefinition], Coding]]] = {
    "tinyint": _whole("int16", "int16"),
    "smallint": _whole("int16", "int32"),
    "mediumint": _whole("int32", "int32"),
    "int": _whole("int32", "int64"),
    "bigint": _bigint,
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    "bit": _bit,
    "year": _year,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
    **dict.fromkeys(("char", "varchar"), _text),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), _long_text),
    "json": _json,
    **dict.fromkeys(("binary", "varbinary"), _bytes),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), _long_bytes),
    "uuid": _uuid,
    "inet4": _address(4),
    "inet6": _address(16),
    "enum": _labels("Enum", label),
    "set": _labels("EnumSet", text),
    "point": _point,
    **dict.fromkeys(
        ("geometry", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
         "geometrycollection", "geomcollection"),
        _geometry,
    ),
}  # fmt: skip
