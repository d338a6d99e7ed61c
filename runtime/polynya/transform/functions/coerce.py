"""Arguments brought to the type that a function asks for; what has no such value is NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

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
    Decimal,
    MapType,
    Struct,
    Void,
)
from polynya.transform.functions.core import Value, item, null

_INTEGRAL: Final = (INT, BIGINT)
_TIMES: Final = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_MAX_DIGITS: Final = 38
#: Spark's cast would also take `1d` and `Infinity` for numbers.
_NUMBER: Final = r"'^\\s*[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?\\s*$'"


def is_integral(kind: DataType) -> bool:
    """Whether all values of a type are whole numbers."""
    return kind in _INTEGRAL or (isinstance(kind, Decimal) and kind.scale == 0)


def is_number(kind: DataType) -> bool:
    """Whether a type is one of numbers."""
    return kind in (*_INTEGRAL, FLOAT, DOUBLE) or isinstance(kind, Decimal)


def is_time(kind: DataType) -> bool:
    """Whether a type is a date or a time."""
    return kind in _TIMES


def is_nested(kind: DataType) -> bool:
    """Whether a type has parts."""
    return isinstance(kind, Array | Struct | MapType)


def can_compare(kind: DataType) -> bool:
    """Whether Spark can order values of a type, and tell equal ones."""
    if isinstance(kind, Array):
        return can_compare(kind.element)
    if isinstance(kind, Struct):
        return all(can_compare(inner) for _, inner in kind.fields)
    return not isinstance(kind, MapType)


def text(value: Value) -> Value:
    """As text: structs, arrays and maps as JSON, bytes as UTF-8 where they are."""
    kind = value.kind
    if kind == STRING:
        return value
    if isinstance(kind, Void):
        return null()
    if is_nested(kind):
        return Value(f"to_json({value.sql})", STRING, value.constant)
    if kind == BINARY:
        return Value(f"try_validate_utf8(CAST({value.sql} AS STRING))", STRING)
    return Value(f"CAST({value.sql} AS STRING)", STRING, value.constant)


def number(value: Value) -> Value:
    """As a number of its own type; text that is one becomes a double."""
    if is_number(value.kind):
        return value
    if value.kind == STRING:
        return Value(f"CAST(regexp_substr({value.sql}, {_NUMBER}) AS DOUBLE)", DOUBLE)
    return null(DOUBLE)


def double(value: Value) -> Value:
    """As a double."""
    return as_kind(number(value), DOUBLE)


def long(value: Value) -> Value:
    """As a whole number, without what stands after the point."""
    return as_kind(value, BIGINT)


def integer(value: Value) -> Value:
    """As a whole number of 32 bits."""
    return as_kind(value, INT)


def boolean(value: Value) -> Value:
    """As true or false; text counts where it says so."""
    if value.kind == BOOLEAN:
        return value
    if value.kind == STRING:
        return Value(f"TRY_CAST({value.sql} AS BOOLEAN)", BOOLEAN)
    return null(BOOLEAN)


def instant(value: Value) -> Value:
    """As a point in time; a date is its midnight in UTC, text is read as ISO 8601."""
    if value.kind == TIMESTAMP:
        return value
    if value.kind == STRING or is_time(value.kind):
        return Value(f"TRY_CAST({value.sql} AS TIMESTAMP)", TIMESTAMP)
    return null(TIMESTAMP)


def array(value: Value) -> Value:
    """As an array: a single value is one of itself, NULL of none."""
    if isinstance(value.kind, Array):
        # An array literal without elements has none of a type either.
        return null(Array(STRING)) if isinstance(value.kind.element, Void) else value
    if isinstance(value.kind, Void):
        return null(Array(STRING))
    return Value(f"array_compact(array({value.sql}))", Array(value.kind))


def element_of(values: Value) -> DataType:
    """The type of the elements of what `array` gives."""
    assert isinstance(values.kind, Array), "`array` makes one"
    return values.kind.element


def for_each(values: Value, change: Callable[[Value], Value], tag: str = "e") -> Value:
    """An array with every element changed."""
    element = item(tag, element_of(values))
    changed = change(element)
    if changed == element:
        return values
    return Value(f"transform({values.sql}, {element.sql} -> {changed.sql})", Array(changed.kind))


def common(kinds: Sequence[DataType]) -> DataType:
    """The type that values of all these types can be brought to: at worst text."""
    typed = [kind for kind in dict.fromkeys(kinds) if not isinstance(kind, Void)]
    if not typed:
        return STRING
    if len(typed) == 1:
        return typed[0]
    if all(kind in _INTEGRAL for kind in typed):
        return BIGINT
    if all(is_number(kind) for kind in typed):
        return _exact(typed)
    return TIMESTAMP if all(is_time(kind) for kind in typed) else STRING


def _exact(kinds: Sequence[DataType]) -> DataType:
    """The decimal that holds numbers of several types, or double where there is none."""
    places = whole = 0
    for kind in kinds:
        if kind in (FLOAT, DOUBLE):
            return DOUBLE
        scale = kind.scale if isinstance(kind, Decimal) else 0
        digits = kind.precision if isinstance(kind, Decimal) else 19
        places, whole = max(places, scale), max(whole, digits - scale)
    return Decimal(places + whole, places) if places + whole <= _MAX_DIGITS else DOUBLE


def as_kind(value: Value, kind: DataType) -> Value:
    """A value as another type, NULL where it is not one."""
    if value.kind == kind:
        return value
    if kind == STRING:
        return text(value)
    if kind == BOOLEAN:
        return boolean(value)
    if kind == TIMESTAMP:
        return instant(value)
    if is_number(kind):
        given = number(value)
        return Value(f"TRY_CAST({given.sql} AS {kind})", kind, value.constant)
    return null(kind)


def alike(values: Sequence[Value]) -> list[Value]:
    """Values brought to their common type."""
    kind = common([value.kind for value in values])
    return [as_kind(value, kind) for value in values]


def comparable(values: Sequence[Value]) -> list[Value]:
    """Values brought to what they are compared as.

    A number makes all of them numbers, a time all of them times, a boolean all of them booleans;
    else they are compared as text.
    """
    kinds = [value.kind for value in values]
    if any(is_number(kind) for kind in kinds):
        return alike([number(value) for value in values])
    if any(is_time(kind) for kind in kinds):
        return [instant(value) for value in values]
    if any(kind == BOOLEAN for kind in kinds):
        return [boolean(value) for value in values]
    return [text(value) for value in values]


def joined(values: Sequence[Value]) -> Value:
    """One array of the elements of all values, brought to their common type."""
    arrays = [array(value) for value in values]
    kind = common([element_of(array) for array in arrays])
    same_kind = [for_each(array, lambda element: as_kind(element, kind)).sql for array in arrays]
    parts = [f"coalesce({sql}, CAST(array() AS ARRAY<{kind}>))" for sql in same_kind]
    return Value(parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})", Array(kind))
