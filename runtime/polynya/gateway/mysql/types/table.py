"""The type of a column: its Connect schema, how it is read, and what the stream takes it for.

The schemas are those of Debezium 3.5 with the settings of a capture. Where Debezium reads a type
wrongly or not at all, the history of schemas that it gets calls it another one: UUID and addresses
are BINARY there, and come as bytes from the load as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.gateway.mysql.types import encoders
from polynya.gateway.mysql.types.encoders import Encoder

_CONNECT: Final = "org.apache.kafka.connect.data."
_DEBEZIUM: Final = "io.debezium."
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Facts:
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
    def told(self) -> str:
        """The type with its character set, for people."""
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


def coding_of(facts: Facts) -> Coding | None:
    """The coding of a column; None for one that cannot be captured as it is."""
    made = _KINDS.get(facts.type)
    if made is None or "COMPRESSED" in facts.full or facts.charset in _WRONG_SETS:
        return None
    return made(facts)


def _named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind, "name": name, "version": 1}
    return schema | ({"parameters": parameters} if parameters else {})


def _whole(signed: str, unsigned: str) -> Callable[[Facts], Coding]:
    def made(facts: Facts) -> Coding:
        kind = unsigned if "unsigned" in facts.full else signed
        return Coding({"type": kind}, encoders.whole, key="number")

    return made


def _bigint(facts: Facts) -> Coding:
    if "unsigned" in facts.full:
        return Coding(_decimal_schema(20, 0), encoders.decimal, key="number")
    return Coding({"type": "int64"}, encoders.whole, key="number")


def _decimal(facts: Facts) -> Coding:
    schema = _decimal_schema(facts.precision or 10, facts.scale or 0)
    return Coding(schema, encoders.decimal, key="number")


def _decimal_schema(precision: int, scale: int) -> dict[str, Any]:
    return {
        "type": "bytes", "name": f"{_CONNECT}Decimal", "version": 1,
        "parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
    }  # fmt: skip


def _float(facts: Facts) -> Coding:
    # FLOAT(7,3) is a double to Debezium, FLOAT is not.
    kind, encode = ("double", encoders.double) if "," in facts.plain else ("float", encoders.single)
    return Coding({"type": kind}, encode, "CAST({} AS DOUBLE)")


def _double(_: Facts) -> Coding:
    return Coding({"type": "double"}, encoders.double)


def _bit(facts: Facts) -> Coding:
    length = facts.precision or 1
    if length == 1:
        return Coding({"type": "boolean"}, encoders.flag)
    return Coding(_named("bytes", f"{_DEBEZIUM}data.Bits", length=str(length)), encoders.bits)


def _year(_: Facts) -> Coding:
    return Coding(_named("int32", f"{_DEBEZIUM}time.Year"), encoders.year, key="number")


def _empty(facts: Facts) -> bytes:
    """What a date of no calendar becomes."""
    return encoders.NULL if facts.nullable else b"0"


def _date(facts: Facts) -> Coding:
    schema = _named("int32", f"{_DEBEZIUM}time.Date")
    return Coding(schema, encoders.days(_empty(facts)), key="text")


def _datetime(facts: Facts) -> Coding:
    is_fine = (facts.fraction or 0) > 3
    name, unit = ("MicroTimestamp", 1) if is_fine else ("Timestamp", 1000)
    encode = encoders.wall_clock(unit, _empty(facts))
    return Coding(_named("int64", f"{_DEBEZIUM}time.{name}"), encode, key="text")


def _timestamp(_: Facts) -> Coding:
    schema = _named("string", f"{_DEBEZIUM}time.ZonedTimestamp")
    return Coding(schema, encoders.instant, key="text")


def _time(_: Facts) -> Coding:
    return Coding(_named("int64", f"{_DEBEZIUM}time.MicroTime"), encoders.duration, key="text")


def _text(_: Facts) -> Coding:
    return Coding({"type": "string"}, encoders.text, key="collated")


def _long_text(_: Facts) -> Coding:
    return Coding({"type": "string"}, encoders.text)


def _json(_: Facts) -> Coding:
    return Coding(_named("string", f"{_DEBEZIUM}data.Json"), encoders.text)


def _bytes(_: Facts) -> Coding:
    return Coding({"type": "bytes"}, encoders.binary, key="bytes")


def _long_bytes(_: Facts) -> Coding:
    return Coding({"type": "bytes"}, encoders.binary)


def _uuid(_: Facts) -> Coding:
    return Coding({"type": "bytes"}, encoders.uuid, history="binary(16)", key="text")


def _address(length: int) -> Callable[[Facts], Coding]:
    def made(_: Facts) -> Coding:
        kind = f"binary({length})"
        return Coding({"type": "bytes"}, encoders.address, history=kind, key="text")

    return made


def _labels(name: str, encode: Encoder) -> Callable[[Facts], Coding]:
    def made(facts: Facts) -> Coding:
        labels = [one.replace(",", "\\,") for one in labels_of(facts.plain)]
        schema = _named("string", f"{_DEBEZIUM}data.{name}", allowed=",".join(labels))
        return Coding(schema, encode)

    return made


def labels_of(full: str) -> list[str]:
    """The labels of `enum('a','b''c')` or `set(…)`."""
    return [one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", full)]


def _geometry(_: Facts) -> Coding:
    wkb = {"type": "bytes", "optional": False, "field": "wkb"}
    schema = _shape("Geometry", "Geometry", [wkb])
    return Coding(schema, encoders.geometry)


def _point(_: Facts) -> Coding:
    fields = [{"type": "double", "optional": False, "field": name} for name in ("x", "y")]
    wkb = {"type": "bytes", "optional": True, "field": "wkb"}
    return Coding(_shape("Point", "Geometry (POINT)", [*fields, wkb]), encoders.point)


def _shape(name: str, doc: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    srid = {"type": "int32", "optional": True, "field": "srid"}
    return {
        "type": "struct", "fields": [*fields, srid],
        "name": f"{_DEBEZIUM}data.geometry.{name}", "version": 1, "doc": doc,
    }  # fmt: skip


_KINDS: Final[dict[str, Callable[[Facts], Coding]]] = {
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
    "enum": _labels("Enum", encoders.label),
    "set": _labels("EnumSet", encoders.text),
    "point": _point,
    **dict.fromkeys(
        ("geometry", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
         "geometrycollection", "geomcollection"),
        _geometry,
    ),
}  # fmt: skip
