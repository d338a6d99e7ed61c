"""Debezium and Replicate, where schemas beside the values tell the types."""

from __future__ import annotations

import base64
import re
from datetime import date, datetime, timedelta
from typing import Any

from polynya.formats.replicate.metadata import column_type
from tests.formats.data_types.page import (
    A_UUID,
    BEFORE_1970,
    DAYS,
    INSTANTS,
    LARGE,
    LAST,
    WALLS,
    check_column,
    general,
    lines_of,
)
from tests.formats.debezium.builders import an_event, the_table, with_schema


def _b64(number: int) -> str:
    return base64.b64encode(number.to_bytes(40, "big", signed=True)).decode()


def _decimal_schema(scale: int, precision: int) -> dict[str, str]:
    return {"scale": str(scale), "connect.decimal.precision": str(precision)}


_VARIABLE = {
    "type": "struct",
    "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
}
_GEOMETRY = {
    "type": "struct",
    "fields": [{"type": "bytes", "field": "wkb"}, {"type": "int32", "field": "srid"}],
}
_MICROS = [(wall - datetime(1970, 1, 1)) // timedelta(microseconds=1) for wall in WALLS]
_DAY_NUMBERS = [(day - date(1970, 1, 1)).days for day in DAYS]
_TIMES_OF_DAY = {
    "Time": (86399999, "23:59:59.999000"),
    "MicroTime": (-3020399000001, "-838:59:59.000001"),
    "NanoTime": (1, "00:00:00.000000001"),
    "ZonedTime": ("10:15:00+01:00", "10:15:00+01:00"),
}
#: by the schema's last name: more of the schema, values as written, the type, values as read
_EVENTS: dict[str, tuple[dict[str, Any], list[Any], str, list[Any]]] = {
    "boolean": ({}, [True, None], "boolean", [True, None]),
    "int8": ({}, [-128], "int", [-128]),
    "int16": ({}, [2**15 - 1], "int", [2**15 - 1]),
    "int32": ({}, [-(2**31)], "int", [-(2**31)]),
    "int64": ({}, [-(2**63)], "bigint", [-(2**63)]),
    "float32": ({}, [0.5, "NaN"], "float", [0.5, float("nan")]),
    "float64": ({}, ["-Infinity"], "double", [float("-inf")]),
    "string": ({}, ["", "日本"], "string", ["", "日本"]),
    "bytes": ({}, ["", "AP8="], "binary", [b"", b"\0\xff"]),
    "Decimal": (
        {"parameters": _decimal_schema(18, 38)},
        [_b64(12345678901234567890123456789012345678)],
        "decimal(38,18)",
        [LARGE[0]],
    ),
    "Decimal of more than 38 digits": (
        {"parameters": _decimal_schema(30, 65)},
        [_b64(10**50 + 1)],
        "string",
        ["1" + "0" * 20 + "." + "0" * 29 + "1"],
    ),
    "VariableScaleDecimal": (_VARIABLE, [{"scale": 3, "value": _b64(-1)}], "string", ["-0.001"]),
    "Bits": ({"parameters": {"length": "9"}}, ["/wE="], "binary", [b"\xff\x01"]),
    "Json": ({}, ['{"a": []}'], "string", ['{"a": []}']),
    "Xml": ({}, ["<a/>"], "string", ["<a/>"]),
    "Uuid": ({}, [str(A_UUID)], "string", [str(A_UUID)]),
    "Enum": ({"parameters": {"allowed": "a,b"}}, ["a"], "string", ["a"]),
    "EnumSet": ({"parameters": {"allowed": "a,b"}}, ["a,b"], "string", ["a,b"]),
    "Date": ({}, _DAY_NUMBERS, "date", DAYS),
    "Year": ({}, [2155], "int", [2155]),
    **{name: ({}, [value], "string", [text]) for name, (value, text) in _TIMES_OF_DAY.items()},
    "Timestamp": ({}, [-1], "timestamp_ntz", [datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    "MicroTimestamp": ({}, _MICROS, "timestamp_ntz", WALLS),
    "NanoTimestamp": ({}, [-1000], "timestamp_ntz", [BEFORE_1970]),
    "ZonedTimestamp": (
        {},
        ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1970-01-01T00:59:59.999999+01:00"],
        "timestamp",
        INSTANTS,
    ),
    "IsoDate": ({}, ["0001-01-01Z", "9999-12-31Z", "1969-12-31Z"], "date", DAYS),
    "IsoTimestamp": ({}, ["9999-12-31T23:59:59.999999Z"], "timestamp_ntz", [LAST]),
    "MicroDuration": ({}, [-1], "bigint", [-1]),
    "Interval": ({}, ["P1Y2M3DT4H5M6.78S"], "string", ["P1Y2M3DT4H5M6.78S"]),
    "Point": (
        _GEOMETRY,
        [{"wkb": "AQ==", "srid": 4326}],
        "struct<wkb:binary,srid:int>",
        [{"wkb": b"\x01", "srid": 4326}],
    ),
    "Geometry": (_GEOMETRY, [None], "struct<wkb:binary,srid:int>", [None]),
    "Geography": (
        _GEOMETRY,
        [{"wkb": "AQ==", "srid": 4326}],
        "struct<wkb:binary,srid:int>",
        [{"wkb": b"\x01", "srid": 4326}],
    ),
    "array": (
        {"items": {"type": "string"}},
        [[], None, [None]],
        "array<string>",
        [[], None, [None]],
    ),
    "map": (
        {"keys": {"type": "string"}, "values": {"type": "string", "optional": True}},
        [{"a": None}, {}],
        "map<string,string>",
        [[("a", None)], []],
    ),
}


def _schemas(cell: str) -> list[tuple[str, dict[str, Any]]]:
    """Names of the samples and schemas of a line such as `int32` …`time.Date`, Connect`Date`."""
    kinds = re.findall(r"(?<![…t])`([^`]+)`", cell)
    full = re.findall(r"(…|Connect)`([^`]+)`", cell)
    if not full:
        return [(kind, {"type": kind}) for kind in kinds]
    spaces = {"…": "io.debezium.", "Connect": "org.apache.kafka.connect.data."}
    more = " of more than 38 digits" if "38 digits" in cell else ""
    return [
        (name.rpartition(".")[2] + more, {"type": kinds[0], "name": spaces[space] + name})
        for space, name in full
    ]


def test_debezium() -> None:
    tried = set()
    for cell, kinds in lines_of("Debezium").items():
        for name, own in _schemas(cell):
            more, values, kind, expected = _EVENTS[name]
            rows = ({"id": number, "x": value} for number, value in enumerate(values))
            fields = {"id": "int32", "x": {**more, **own}}
            events = [
                with_schema(an_event("c", row, key={"id": row["id"]}), fields) for row in rows
            ]
            batch = the_table(*events)
            check_column(batch, kind, expected, cell)
            assert general(kinds.strip("`")) == general(kind), cell
            tried.add(name)
    assert tried == set(_EVENTS)


def test_replicate() -> None:
    for cell, kind in lines_of("Qlik Replicate").items():
        for name in re.findall(r"`(\w+)`", cell):
            assert general(str(column_type(name, 9, 2))) == general(kind.strip("`")), name
