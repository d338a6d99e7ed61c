"""Every Connect and Debezium type has a column type, and its values arrive exactly."""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polynya.formats.debezium.decode import decimal_text
from polynya.model.types import Decimal as DecimalType
from tests.formats.debezium.builders import an_event, the_table, with_schema
from tests.formats.helpers import column, rules, schema

_TIME = "io.debezium.time."
_CONNECT = "org.apache.kafka.connect.data."
_DATA = "io.debezium.data."


def _named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "parameters": parameters}


def _b64(number: int) -> str:
    length = (number.bit_length() + 8) // 8
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


_VARIABLE = {
    "type": "struct",
    "name": f"{_DATA}VariableScaleDecimal",
    "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
}
_POINT = {
    "type": "struct",
    "name": f"{_DATA}geometry.Point",
    "fields": [
        {"type": "double", "field": "x"},
        {"type": "bytes", "field": "wkb"},
        {"type": "int32", "field": "srid"},
    ],
}
_DOUBLES = {"x": "double", "y": {"type": "array", "items": {"type": "double"}}}
_MAX_FLOAT = 3.4028234663852886e38
_WALL = datetime(2024, 2, 29, 12, 34, 56, 789012)
_MICROS = 1709210096789012


@pytest.mark.parametrize(
    ("connect", "value", "kind", "out"),
    [
        ("boolean", True, "boolean", True),
        ("int8", -5, "int", -5),
        ("int16", -32768, "int", -32768),
        ("int32", 2**31 - 1, "int", 2**31 - 1),
        ("int64", -(2**63), "bigint", -(2**63)),
        ("float", 0.5, "float", 0.5),
        ("double", 3.141592653589793, "double", 3.141592653589793),
        ("double", "Infinity", "double", float("inf")),
        ("string", "é", "string", "é"),
        ("bytes", "AP8=", "binary", b"\0\xff"),
        (
            _named("bytes", f"{_CONNECT}Decimal", scale="2", **{"connect.decimal.precision": "12"}),
            _b64(-12345),
            "decimal(12,2)",
            Decimal("-123.45"),
        ),
        (
            _named("bytes", f"{_CONNECT}Decimal", scale="2"),
            _b64(5),
            "decimal(38,2)",
            Decimal("0.05"),
        ),
        (
            _named(
                "bytes", f"{_CONNECT}Decimal", scale="30", **{"connect.decimal.precision": "65"}
            ),
            _b64(10**50 + 1),
            "string",
            "1" + "0" * 20 + "." + "0" * 29 + "1",
        ),
        (
            _named("bytes", f"{_CONNECT}Decimal", scale="2", **{"connect.decimal.precision": "5"}),
            1.5,
            "decimal(5,2)",
            Decimal("1.50"),
        ),
        (_VARIABLE, {"scale": 9, "value": _b64(10**40)}, "string", "1" + "0" * 31 + "." + "0" * 9),
        (_VARIABLE, {"scale": 0, "value": _b64(-7)}, "string", "-7"),
        (_named("int32", f"{_CONNECT}Date"), 19848, "date", date(2024, 5, 5)),
        (_named("int32", f"{_TIME}Date"), -719162, "date", date(1, 1, 1)),
        (_named("int32", f"{_CONNECT}Time"), 86399999, "string", "23:59:59.999000"),
        (_named("int32", f"{_TIME}Time"), 3600000, "string", "01:00:00"),
        (_named("int64", f"{_TIME}MicroTime"), -45296789000, "string", "-12:34:56.789000"),
        (_named("int64", f"{_TIME}MicroTime"), 838 * 3600 * 10**6, "string", "838:00:00"),
        (_named("int64", f"{_TIME}NanoTime"), 1_000_000_001, "string", "00:00:01.000000001"),
        (_named("int64", f"{_TIME}NanoTime"), -1, "string", "-00:00:00.000000001"),
        (
            _named("int64", f"{_CONNECT}Timestamp"),
            1000,
            "timestamp_ntz",
            datetime(1970, 1, 1, 0, 0, 1),
        ),
        (
            _named("int64", f"{_TIME}Timestamp"),
            -1000,
            "timestamp_ntz",
            datetime(1969, 12, 31, 23, 59, 59),
        ),
        (_named("int64", f"{_TIME}MicroTimestamp"), _MICROS, "timestamp_ntz", _WALL),
        (
            _named("int64", f"{_TIME}MicroTimestamp"),
            5,
            "timestamp_ntz",
            datetime(1970, 1, 1, 0, 0, 0, 5),
        ),
        (_named("int64", f"{_TIME}NanoTimestamp"), _MICROS * 1000, "timestamp_ntz", _WALL),
        (
            _named("int64", f"{_TIME}NanoTimestamp"),
            _MICROS * 1000 + 100,
            "bigint",
            _MICROS * 1000 + 100,
        ),
        (
            _named("string", f"{_TIME}ZonedTimestamp"),
            "2024-02-29T12:34:56.789012Z",
            "timestamp",
            _WALL.replace(tzinfo=UTC),
        ),
        (_named("string", f"{_TIME}ZonedTime"), "07:44:15.123456Z", "string", "07:44:15.123456Z"),
        (
            _named("string", f"{_TIME}Interval"),
            "P1Y2M3DT4H5M6.789S",
            "string",
            "P1Y2M3DT4H5M6.789S",
        ),
        (_named("int64", f"{_TIME}MicroDuration"), 5, "bigint", 5),
        (_named("int32", f"{_TIME}Year"), 2024, "int", 2024),
        (_named("string", f"{_TIME}IsoDate"), "2024-05-05Z", "date", date(2024, 5, 5)),
        (
            _named("string", f"{_TIME}IsoTimestamp"),
            "2024-02-29T12:34:56.789012Z",
            "timestamp_ntz",
            _WALL,
        ),
        (_named("bytes", f"{_DATA}Bits", length="5"), "FQ==", "binary", b"\x15"),
        (_named("string", f"{_DATA}Json"), '{"a": [1, 2.50]}', "string", '{"a": [1, 2.50]}'),
        (_named("string", f"{_DATA}Uuid"), "123e4567", "string", "123e4567"),
        (_named("string", f"{_DATA}Enum", allowed="a,b"), "a", "string", "a"),
        (
            _POINT,
            {"x": 1.5, "wkb": "AQE=", "srid": None},
            "struct<x:double,wkb:binary,srid:int>",
            {"x": 1.5, "wkb": b"\x01\x01", "srid": None},
        ),
        (
            {"type": "array", "items": _named("int32", f"{_TIME}Date")},
            [0, None],
            "array<date>",
            [date(1970, 1, 1), None],
        ),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "bytes"}},
            {"k": "AA=="},
            "map<string,binary>",
            [("k", b"\0")],
        ),
        (
            {"type": "map", "keys": {"type": "int32"}, "values": {"type": "string"}},
            [[1, "v"]],
            "map<int,string>",
            [(1, "v")],
        ),
    ],
)
def test_types(connect: Any, value: Any, kind: str, out: Any) -> None:
    batch = the_table(with_schema(an_event("c", {"x": value}), {"x": connect}))

    assert not batch.rejected
    assert (schema(batch)["x"], column(batch, "x")) == (kind, [out])


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2))
@example(5e-324, 0)
@example(2.0**-44, 0)
@example(2e23, 0)
def test_a_double_is_the_one_that_any_text_of_it_means(number: float, more: int) -> None:
    # Java before 19 does not write the shortest text, 4.9E-324 and 2.0E-3 among others.
    texts = [repr(number), f"{number:.16e}", f"{number:.{17 + more}e}"]
    if abs(number) == 5e-324:
        texts.append(f"{'-' if number < 0 else ''}4.9E-324")
    events = [
        json.dumps(with_schema(an_event("c", {"x": "@", "y": ["@"]}), _DOUBLES))
        .replace('"@"', text)
        .encode()
        for text in texts
    ]

    batch = the_table(*events)

    assert not batch.rejected
    assert schema(batch)["x"] == "double"
    found = [*column(batch, "x"), *(one for [one] in column(batch, "y"))]
    assert [struct.pack(">d", one) for one in found] == [struct.pack(">d", number)] * (
        2 * len(texts)
    )


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
@example(3.4028234663852886e38)
def test_a_float_is_the_one_that_its_text_means(number: float) -> None:
    shortest = pa.array([number], pa.float32()).cast(pa.string())[0].as_py()
    shortest += "" if {".", "e"}.intersection(shortest) else ".0"
    texts = [shortest, f"{number:.8e}", *(["3.4028235E38"] if number == _MAX_FLOAT else [])]
    events = [
        json.dumps(with_schema(an_event("c", {"x": "@"}), {"x": "float"}))
        .replace('"@"', text)
        .encode()
        for text in texts
    ]

    batch = the_table(*events)

    assert not batch.rejected
    assert schema(batch)["x"] == "float"
    assert [struct.pack(">f", one) for one in column(batch, "x")] == [
        struct.pack(">f", number)
    ] * len(texts)


@pytest.mark.parametrize(
    ("name", "infinity", "minus_infinity"),
    [
        ("ZonedTimestamp", "infinity", "-infinity"),
        ("MicroTimestamp", 9223372036825200000, -9223372036832400000),
        ("Timestamp", 9223372036825200, -9223372036832400),
        ("Date", -2147472692, -2147472691),
        ("Date", -622191234, -625821272),
    ],
)
def test_infinities_of_postgresql_are_the_last_and_the_first_moment_of_a_table(
    name: str, infinity: Any, minus_infinity: Any
) -> None:
    kind = {"ZonedTimestamp": "string", "Date": "int32"}.get(name, "int64")
    fields = {"x": _named(kind, f"{_TIME}{name}")}

    batch = the_table(
        *(with_schema(an_event("c", {"x": one}), fields) for one in (infinity, minus_infinity))
    )

    assert not batch.rejected
    days = [one.date() if isinstance(one, datetime) else one for one in column(batch, "x")]
    assert days == [date.max, date.min]


@pytest.mark.parametrize(
    ("connect", "value"),
    [
        (_named("string", f"{_TIME}ZonedTimestamp"), "+12024-01-01T00:00:00Z"),
        (_named("int32", f"{_TIME}Date"), -735160),
        (_named("int64", f"{_TIME}MicroTimestamp"), 2**63 - 1),
        (_named("bytes", f"{_CONNECT}Decimal", scale="2"), "not base64!"),
        (_VARIABLE, {"scale": 10**9, "value": "AA=="}),
        (_VARIABLE, 5),
        ("bytes", "?"),
    ],
)
def test_a_value_without_a_counterpart_rejects_its_row_only(connect: Any, value: Any) -> None:
    fields = {"x": connect}

    batch = the_table(
        with_schema(an_event("c", {"x": value}), fields),
        with_schema(an_event("c", {"x": None}), fields),
    )

    assert rules(batch) == [(0, "bad_value")]
    assert column(batch, "x") == [None]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("17.701999999", "17.702"),
        ("-17.701999999", "-17.702"),
        ("0.000000999", "0.000001"),
        ("59.999998999", "59.999999"),
        ("-0.999999999", "-1"),
        ("6.789", "6.789"),
        ("30", "30"),
    ],
)
@pytest.mark.parametrize("connector", ["postgresql", "oracle"])
def test_seconds_of_postgresql_intervals_are_whole_microseconds(
    connector: str, said: str, meant: str
) -> None:
    interval = _named("string", f"{_TIME}Interval")
    source = {
        "type": "struct", "name": f"io.debezium.connector.{connector}.Source", "field": "source",
    }  # fmt: skip
    text = f"P-3Y-6M91DT-255H-45M{said}S"
    event = with_schema(an_event("c", {"x": text}), {"x": interval})
    event["value"]["schema"]["fields"].append(source)

    expected = text.replace(said, meant) if connector == "postgresql" else text
    assert column(the_table(event), "x") == [expected]


def test_nanoseconds_that_do_not_fit_a_settled_column_are_rejected() -> None:
    fields = {"x": _named("int64", f"{_TIME}NanoTimestamp")}
    events = [with_schema(an_event("c", {"x": ns}), fields) for ns in (1000, 1001)]
    first = the_table(events[0])

    batch = the_table(events[1], known={"w.t": first.schema})

    assert rules(batch) == [(0, "type_mismatch")]


@pytest.mark.parametrize(
    ("text", "scale", "out"),
    [
        ("12.50", 2, Decimal("12.50")),
        ("-5", 2, Decimal(-5)),
        ("125", 2, Decimal(125)),
        ("AeJA", 2, Decimal("1234.56")),
        ("1234", 0, Decimal(1234)),
    ],
)
def test_declared_decimals_from_text(text: str, scale: int, out: Decimal) -> None:
    assert decimal_text(text, DecimalType(18, scale)) == out


@pytest.mark.parametrize(("text", "scale"), [("1234", 2), ("AeJA", 0), ("?", 2)])
def test_ambiguous_decimals_are_never_guessed(text: str, scale: int) -> None:
    with pytest.raises(ValueError, match="base64"):
        decimal_text(text, DecimalType(18, scale))
