"""Functions of arrays. A single value where an array is asked for is an array of itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polynya.model.datatypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Array, DataType, Decimal
from polynya.transform.functions.base import Build, Place, Value, function, item, null
from polynya.transform.functions.coerce import (
    array,
    as_kind,
    boolean,
    can_compare,
    each,
    element_of,
    integer,
    is_integral,
    joined,
    number,
    text,
)


def extreme(called: str, gather: Callable[[Sequence[Value]], Value]) -> Build:
    """The highest or lowest element of what is gathered from the arguments."""

    def build(values: Sequence[Value], _: Place) -> Value:
        found = gather(values)
        kind = element_of(found)
        return Value(f"{called}({found.sql})", kind) if can_compare(kind) else null(kind)

    return build


def _one(values: Sequence[Value]) -> Value:
    return array(values[0])


def _sum(values: Sequence[Value], _: Place) -> Value:
    numbers = each(array(values[0]), number)
    kind = element_of(numbers)
    total: DataType = DOUBLE
    if isinstance(kind, Decimal):
        total = Decimal(38, kind.scale)
    elif is_integral(kind):
        total = BIGINT
    so_far, element = item("sum", total), item("e", kind)
    added = f"try_add({so_far.sql}, coalesce(CAST({element.sql} AS {total}), 0))"
    return Value(
        f"aggregate({numbers.sql}, CAST(0 AS {total}), "
        f"({so_far.sql}, {element.sql}) -> TRY_CAST({added} AS {total}))",
        total,
    )


def concat(values: Sequence[Value], _: Place) -> Value:
    """The texts of all elements with the first argument between them."""
    separator, rest = text(values[0]), joined([*values[1:], null()])
    return Value(f"array_join({each(rest, text).sql}, {separator.sql})", STRING)


def _count(values: Sequence[Value], _: Place) -> Value:
    return Value(f"coalesce(array_size({array(values[0]).sql}), 0)", INT)


def _count_if(values: Sequence[Value], _: Place) -> Value:
    said = each(array(values[0]), boolean)
    kept = item("e", BOOLEAN).sql
    return Value(f"coalesce(array_size(filter({said.sql}, {kept} -> {kept})), 0)", INT)


def _distinct(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    if not can_compare(element_of(given)):
        return null(given.kind)
    return Value(f"array_distinct({given.sql})", given.kind)


def _element_at(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    return Value(f"get({given.sql}, {integer(values[1]).sql})", element_of(given))


def _first(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    return Value(f"get({given.sql}, 0)", element_of(given))


def _last(values: Sequence[Value], _: Place) -> Value:
    given = array(values[0])
    return Value(f"try_element_at({given.sql}, -1)", element_of(given))


def _to_array(values: Sequence[Value], _: Place) -> Value:
    return joined(values)


def _get_range(values: Sequence[Value], _: Place) -> Value:
    low, high = as_kind(values[0], BIGINT), as_kind(values[1], BIGINT)
    steps = f"try_subtract({high.sql}, {low.sql})"
    # The end is NULL, and so is the result, where the range would be empty or without bound.
    end = f"IF({steps} BETWEEN 0 AND 9999, {high.sql}, NULL)"
    return Value(f"sequence({low.sql}, {end})", Array(BIGINT))


FUNCTIONS = (
    function(
        "array_max", "array", extreme("array_max", _one),
        "The highest element. NULL elements do not count; an empty array gives NULL.",
        "array_max(to_array(1, 30, 0.2)) -> 30.0",
        "array_max(split('', ',')) -> null",
    ),
    function(
        "array_min", "array", extreme("array_min", _one),
        "The lowest element. NULL elements do not count; an empty array gives NULL.",
        "array_min(to_array(1, 0.2, 30)) -> 0.2",
    ),
    function(
        "array_sum", "array", _sum,
        """The sum of the elements that are numbers; that of an empty array is 0. Whole numbers are
        added as `bigint`, and a sum that does not fit is NULL.""",
        "array_sum(to_array(1, 0.2, 30)) -> 31.2",
        "array_sum(to_array(1, 2)) -> 3",
        "array_sum(split('1,x,2', ',')) -> 3.0",
    ),
    function(
        "concat", "separator value+", concat,
        """The texts of all values, and of the elements of all arrays, with the separator between
        them. NULL is left out.""",
        "polynya.concat(', ', to_array('a', 'b'), 'c') -> \"a, b, c\"",
        "polynya.concat(', ', 5.5) -> \"5.5\"",
        "polynya.concat('', 'a', NULL, 'b') -> \"ab\"",
    ),
    function(
        "count_values", "array", _count,
        "How many elements there are. An empty array, and NULL, give 0.",
        "count_values(to_array('a', 'b', 'c')) -> 3",
        "count_values(split('', ',')) -> 0",
        "count_values(NULL) -> 0",
    ),
    function(
        "count_values_if", "array", _count_if,
        "How many elements are true. An empty array, and NULL, give 0.",
        "count_values_if(to_array(true, false, true)) -> 2",
        "count_values_if(NULL) -> 0",
    ),
    function(
        "distinct_values", "array", _distinct,
        "The array without repeated elements. An array of maps gives NULL: they are not compared.",
        "distinct_values(to_array(1, 2, 3, 4, 4, 1)) -> [1,2,3,4]",
    ),
    function(
        "element_at", "array index", _element_at,
        "The element at an index from 0. An index out of range, or below 0, gives NULL.",
        "polynya.element_at(to_array('a', 'b', 'c'), 1) -> \"b\"",
        "polynya.element_at(to_array('a'), 1) -> null",
        "polynya.element_at(to_array('a', 'b', 'c'), -1) -> null",
    ),
    function(
        "first_element", "array", _first,
        "The first element; of an empty array NULL.",
        "first_element(to_array('b', 'a', 'c')) -> \"b\"",
        "first_element(split('', ',')) -> null",
    ),
    function(
        "last_element", "array", _last,
        "The last element; of an empty array NULL.",
        "last_element(to_array('a', 'c', 'b')) -> \"b\"",
        "last_element(split('', ',')) -> null",
    ),
    function(
        "least", "value+", extreme("array_min", joined),
        "The lowest of all values, and of the elements of all arrays, brought to a common type.",
        "polynya.least(to_array(1, 0.2), 30) -> 0.2",
    ),
    function(
        "to_array", "value+", _to_array,
        """One array of all values, and of the elements of all arrays. Single values that are NULL
        are left out; values of types that have nothing in common become text.""",
        "to_array(to_array('a', 'c'), 'b') -> [\"a\",\"c\",\"b\"]",
        "to_array(1, 'x', NULL) -> [\"1\",\"x\"]",
    ),
    function(
        "get_range", "first last", _get_range,
        "The whole numbers from the first to the last, both included; NULL for more than 10,000.",
        "get_range(2, 4) -> [2,3,4]",
        "get_range(4, 2) -> null",
        "get_range(1, 1000000) -> null",
    ),
)  # fmt: skip
