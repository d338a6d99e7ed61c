"""Functions that compare, convert and choose between values. NULL as in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.model.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, STRING, Array
from polynya.transform.functions.coerce import (
    alike,
    array,
    as_kind,
    boolean,
    comparable,
    double,
    for_each,
    is_number,
    number,
    text,
)
from polynya.transform.functions.core import (
    Build,
    ExpressionContext,
    Value,
    function,
    let,
    template,
)


def _hex(values: Sequence[Value], _: ExpressionContext) -> Value:
    digits = f"regexp_extract({text(values[0]).sql}, '^(?:0[xX])?([0-9A-Fa-f]{{1,16}})$', 1)"
    return Value(f"TRY_CAST(conv(nullif({digits}, ''), 16, 10) AS BIGINT)", BIGINT)


def _long(values: Sequence[Value], _: ExpressionContext) -> Value:
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

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        return as_kind(values[0], types[kind])

    return build


def _number(values: Sequence[Value], _: ExpressionContext) -> Value:
    return number(values[0])


def _string(values: Sequence[Value], _: ExpressionContext) -> Value:
    return text(values[0])


CONVERSION_FUNCTIONS = (
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


def _logic(operator: str) -> Build:
    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        return Value("(" + operator.join(boolean(value).sql for value in values) + ")", BOOLEAN)

    return build


def _compare(operator: str) -> Build:
    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        left, right = comparable(values)
        return Value(f"({left.sql} {operator} {right.sql})", BOOLEAN)

    return build


def between(values: Sequence[Value], _: ExpressionContext) -> Value:
    """Whether the first value is in the range of the others, both included."""
    value, low, high = comparable(values)
    return Value(f"({value.sql} BETWEEN {low.sql} AND {high.sql})", BOOLEAN)


def _contains(values: Sequence[Value], _: ExpressionContext) -> Value:
    hay, needle = values[0], text(values[1])
    if isinstance(hay.kind, Array):
        return Value(f"array_contains({for_each(array(hay), text).sql}, {needle.sql})", BOOLEAN)
    return Value(f"contains({text(hay).sql}, {needle.sql})", BOOLEAN)


def _exists(values: Sequence[Value], _: ExpressionContext) -> Value:
    return Value(f"({values[0].sql} IS NOT NULL)", BOOLEAN)


def _in_set(values: Sequence[Value], _: ExpressionContext) -> Value:
    value, listed = values[0], values[1:]
    if is_number(value.kind):
        numbers = ", ".join(double(number(value)).sql for value in listed)
        # What is not a number is never equal to one: NULL in the list would make it unknown.
        return Value(
            f"array_contains(array_compact(array({numbers})), {double(value).sql})", BOOLEAN
        )
    texts = ", ".join(text(value).sql for value in listed)
    return Value(f"({text(value).sql} IN ({texts}))", BOOLEAN)


def _random(values: Sequence[Value], place: ExpressionContext) -> Value:
    seed = f", {text(values[1]).sql}" if len(values) > 1 else ""
    drawn = f"pmod(xxhash64({place.row}{seed}), 1000000)"
    return Value(f"({drawn} < {double(values[0]).sql} * 1000000)", BOOLEAN)


COMPARISON_FUNCTIONS = (
    function(
        "and", "condition+", _logic(" AND "),
        "True where all conditions are true, false where one is false.",
        "and(true, false) -> false",
        "and(true, true) -> true",
        "and(true, NULL) -> null",
    ),
    function(
        "or", "condition+", _logic(" OR "),
        "True where one condition is true, false where all are false.",
        "or(true, false) -> true",
        "or(false, false) -> false",
    ),
    function(
        "not", "condition", template("(NOT {})", BOOLEAN, boolean),
        "True where the condition is false.",
        "polynya.not(false) -> true",
        "polynya.not('nonsense') -> null",
    ),
    function(
        "xor", "condition condition2", _logic(" <> "),
        "True where the conditions differ.",
        "xor(true, false) -> true",
        "xor(true, true) -> false",
    ),
    function(
        "between", "value low high", between,
        """Whether a value is in a range, its ends included. Numbers are compared as numbers, dates
        and times as times, else texts as texts.""",
        "between(5, 1, 5) -> true",
        "between('10', 1, 5) -> false",
        "between(to_date('2024-02-01'), '2024-01-01', '2024-12-31') -> true",
    ),
    function(
        "contains", "value part", _contains,
        "Whether a text has a part, or an array an element of this text.",
        "polynya.contains('abcde', 'bc') -> true",
        "polynya.contains('abcde', 'f') -> false",
        "polynya.contains(to_array(1, 2), 2) -> true",
    ),
    function(
        "equal_to", "value value2", _compare("="),
        """Whether two values are equal. Where one is a number, both are compared as numbers; where
        one is a date or a time, both as times. Structs, arrays and maps are compared as JSON.""",
        "equal_to(1, '1.0') -> true",
        "equal_to('a', 'b') -> false",
        "equal_to('b', 'a') -> false",
        "equal_to(1, 'x') -> null",
    ),
    function(
        "not_equal_to", "value value2", _compare("<>"),
        "Whether two values differ, compared as by `equal_to`.",
        "not_equal_to('a', 'b') -> true",
        "not_equal_to('b', 'a') -> true",
        "not_equal_to(0, 0) -> false",
    ),
    function(
        "exists", "value", _exists,
        "Whether there is a value: false for NULL, and for a field that the record lacks.",
        "exists('a') -> true",
        "exists(NULL) -> false",
    ),
    function(
        "greater_than", "value value2", _compare(">"),
        "Whether the first value is greater, compared as by `equal_to`.",
        "greater_than(1, 0) -> true",
        "greater_than(0, 0) -> false",
        "greater_than(0, 1) -> false",
        "greater_than('10', 9) -> true",
    ),
    function(
        "greater_than_or_equal_to", "value value2", _compare(">="),
        "Whether the first value is greater or equal, compared as by `equal_to`.",
        "greater_than_or_equal_to(0, 0) -> true", "greater_than_or_equal_to(0, 1) -> false",
        "greater_than_or_equal_to(1, 0) -> true",
    ),
    function(
        "less_than", "value value2", _compare("<"),
        "Whether the first value is less, compared as by `equal_to`.",
        "less_than(0, 1) -> true",
        "less_than(0, 0) -> false",
        "less_than(1, 0) -> false",
    ),
    function(
        "less_than_or_equal_to", "value value2", _compare("<="),
        "Whether the first value is less or equal, compared as by `equal_to`.",
        "less_than_or_equal_to(0, 0) -> true", "less_than_or_equal_to(1, 0) -> false",
        "less_than_or_equal_to(0, 1) -> true",
    ),
    function(
        "in_set", "value 'member'+", _in_set,
        """Whether a value is one of the members. A number is compared as a number with those that
        are numbers, anything else as text.""",
        "in_set('a', 'a', 'b') -> true",
        "in_set(1, '1', '2', '3.14') -> true",
        "in_set(3, '1', '2', '3.14') -> false",
    ),
    function(
        "random", "fraction seed?", _random,
        """True for about this fraction of all rows. The draw depends on the place of the record in
        its file and on the seed only: each run chooses the same rows.""",
        "random(1) -> true",
        "random(0, 'other') -> false",
        by_place=True,
    ),
)  # fmt: skip


def _coalesce(values: Sequence[Value], _: ExpressionContext) -> Value:
    same = alike(values)
    return Value(f"coalesce({', '.join(value.sql for value in same)})", same[0].kind)


def _if_else(values: Sequence[Value], _: ExpressionContext) -> Value:
    yes, no = alike(values[1:])
    return Value(f"IF({boolean(values[0]).sql}, {yes.sql}, {no.sql})", yes.kind)


def _null_if(values: Sequence[Value], _: ExpressionContext) -> Value:
    (value,) = alike(values[1:])
    return Value(f"IF({boolean(values[0]).sql}, NULL, {value.sql})", value.kind)


CONDITIONAL_FUNCTIONS = (
    function(
        "coalesce", "value+", _coalesce,
        "The first value that is not NULL.",
        "polynya.coalesce(NULL, 'foo', NULL, 'bar') -> \"foo\"",
        "polynya.coalesce(NULL, 1, 'x') -> \"1\"",
    ),
    function(
        "if_else", "condition yes no", _if_else,
        "The second value where the condition is true, else the third. NULL counts as false.",
        "if_else(true, 'foo', 'bar') -> \"foo\"",
        "if_else(NULL, 'foo', 'bar') -> \"bar\"",
    ),
    function(
        "null_if", "condition value", _null_if,
        "NULL where the condition is true, else the value. NULL counts as false.",
        "null_if(true, 'foo') -> null",
        "null_if(NULL, 'foo') -> \"foo\"",
    ),
)  # fmt: skip
