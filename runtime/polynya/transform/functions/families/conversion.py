"""Functions that change the type of a value."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.model.datatypes import BIGINT, DOUBLE, FLOAT, INT, STRING
from polynya.transform.functions.base import Build, Place, Value, function, let
from polynya.transform.functions.coerce import as_kind, number, text


def _hex(values: Sequence[Value], _: Place) -> Value:
    digits = f"regexp_extract({text(values[0]).sql}, '^(?:0[xX])?([0-9A-Fa-f]{{1,16}})$', 1)"
    return Value(f"TRY_CAST(conv(nullif({digits}, ''), 16, 10) AS BIGINT)", BIGINT)


def _long(values: Sequence[Value], _: Place) -> Value:
    if values[0].kind != STRING:
        return as_kind(values[0], BIGINT)
    # Through a double a text of more than 15 digits would lose some.
    sql = let(
        "x", values[0],
        lambda x: f"coalesce(TRY_CAST({x.sql} AS BIGINT), {as_kind(x, BIGINT).sql})",
    )  # fmt: skip
    return Value(sql, BIGINT)


def _to(kind: str) -> Build:
    types = {"double": DOUBLE, "float": FLOAT, "int": INT}

    def build(values: Sequence[Value], _: Place) -> Value:
        return as_kind(values[0], types[kind])

    return build


def _number(values: Sequence[Value], _: Place) -> Value:
    return number(values[0])


def _string(values: Sequence[Value], _: Place) -> Value:
    return text(values[0])


FUNCTIONS = (
    function(
        "hex_to_decimal", "text", _hex,
        "The number that hexadecimal digits say, with or without `0x`; NULL beyond 64 bits.",
        "hex_to_decimal('ff') -> 255", "hex_to_decimal('0xFF') -> 255",
        "hex_to_decimal('###') -> null",
    ),
    function(
        "to_double", "value", _to("double"), "As `double`.",
        "to_double('3.5') -> 3.5", "to_double(3) -> 3.0",
        "to_double(9007199254740993) -> 9007199254740992.0", "to_double('x') -> null",
    ),
    function(
        "to_float", "value", _to("float"), "As `float`.",
        "to_float('-3.5') -> -3.5", "to_float(16777217) -> 16777216.0", "to_float(true) -> null",
    ),
    function(
        "to_int", "value", _to("int"),
        "As `int`, without what stands after the point; NULL where it does not fit.",
        "to_int(3.5) -> 3", "to_int('-3.5') -> -3", "to_int(3000000000) -> null",
    ),
    function(
        "to_long", "value", _long,
        "As `bigint`, without what stands after the point; NULL where it does not fit.",
        "to_long(-3.5) -> -3", "to_long('9007199254740993') -> 9007199254740993",
        "to_long('1e30') -> null",
    ),
    function(
        "to_number", "value", _number,
        "A number as it is, the number that a text says as `double`; NULL for all else.",
        "polynya.to_number('5.1') -> 5.1",
        "polynya.to_number(9007199254740993) -> 9007199254740993",
        "polynya.to_number('###') -> null",
    ),
    function(
        "to_string", "value", _string,
        "As text: structs, arrays and maps as JSON, bytes as UTF-8.",
        'to_string(1.5) -> "1.5"', 'to_string(to_array(1, 2)) -> "[1,2]"',
    ),
)  # fmt: skip
