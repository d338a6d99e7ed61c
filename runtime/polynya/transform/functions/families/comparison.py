"""Functions that compare, combine or choose by true and false. NULL is neither, as in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.model.datatypes import BOOLEAN, Array
from polynya.transform.functions.base import Build, Place, Value, function
from polynya.transform.functions.coerce import (
    array,
    boolean,
    comparable,
    double,
    each,
    is_number,
    number,
    text,
)


def _logic(operator: str) -> Build:
    def build(values: Sequence[Value], _: Place) -> Value:
        return Value("(" + operator.join(boolean(one).sql for one in values) + ")", BOOLEAN)

    return build


def _compare(operator: str) -> Build:
    def build(values: Sequence[Value], _: Place) -> Value:
        left, right = comparable(values)
        return Value(f"({left.sql} {operator} {right.sql})", BOOLEAN)

    return build


def _not(values: Sequence[Value], _: Place) -> Value:
    return Value(f"(NOT {boolean(values[0]).sql})", BOOLEAN)


def between(values: Sequence[Value], _: Place) -> Value:
    """Whether the first value is in the range of the others, both included."""
    value, low, high = comparable(values)
    return Value(f"({value.sql} BETWEEN {low.sql} AND {high.sql})", BOOLEAN)


def _contains(values: Sequence[Value], _: Place) -> Value:
    hay, needle = values[0], text(values[1])
    if isinstance(hay.kind, Array):
        return Value(f"array_contains({each(array(hay), text).sql}, {needle.sql})", BOOLEAN)
    return Value(f"contains({text(hay).sql}, {needle.sql})", BOOLEAN)


def _exists(values: Sequence[Value], _: Place) -> Value:
    return Value(f"({values[0].sql} IS NOT NULL)", BOOLEAN)


def _in_set(values: Sequence[Value], _: Place) -> Value:
    value, listed = values[0], values[1:]
    if is_number(value.kind):
        numbers = ", ".join(double(number(one)).sql for one in listed)
        # What is not a number is never equal to one: NULL in the list would make it unknown.
        return Value(
            f"array_contains(array_compact(array({numbers})), {double(value).sql})", BOOLEAN
        )
    texts = ", ".join(text(one).sql for one in listed)
    return Value(f"({text(value).sql} IN ({texts}))", BOOLEAN)


def _random(values: Sequence[Value], place: Place) -> Value:
    seed = f", {text(values[1]).sql}" if len(values) > 1 else ""
    drawn = f"pmod(xxhash64({place.row}{seed}), 1000000)"
    return Value(f"({drawn} < {double(values[0]).sql} * 1000000)", BOOLEAN)


FUNCTIONS = (
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
        "not", "condition", _not,
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
        "is_duplicate", "value minutes", None,
        """Cannot be called: an expression sees one row, and whether a value was met before takes
        all of them. A table with `keys` merges records of the same key.""",
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
