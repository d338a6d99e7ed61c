"""Type promotion: which column type may become which, in place, in a batch, or by rewriting rows.

Where Iceberg has no promotion, a column may still get a new type by a rewrite of all its rows
(`is_rewritable`). That depends on the values: each must be exactly the same in the new type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
    Void,
)

_Rule: TypeAlias = "Callable[[DataType, DataType], DataType | None]"

# Decimal digits that hold every value of the integer type.
_INTEGER_DIGITS: Final = {INT: 10, BIGINT: 19}


def storage_type(kind: DataType) -> DataType:
    """Return what the table column is created as.

    `void` and objects without any field become string, at every depth.
    """
    match kind:
        case Void() | Struct(()):
            return STRING
        case Array(element):
            return Array(storage_type(element))
        case MapType(key, value):
            return MapType(storage_type(key), storage_type(value))
        case Struct(fields):
            return Struct(tuple((name, storage_type(inner)) for name, inner in fields))
        case _:
            return kind


def widen(old: DataType, new: DataType) -> DataType | None:
    """Return the type that a column of type `old` takes, in place, so that it also holds `new`.

    Only Iceberg's own promotions are made (int→bigint, float→double, more decimal precision at
    the same scale, void→anything, structs gain fields), so no data file is rewritten. A `new`
    that is narrower than `old` leaves `old` as it is. None when the two do not fit together.
    """
    return _combine(old, new, _widen_scalar, _same_key)


def is_in_place(old: DataType, new: DataType) -> bool:
    """Whether a table gives a column of type `old` the type `new` without writing rows again.

    `new` is what `widen` gives. A column and a field that only held NULL are replaced by others;
    Iceberg has no such change for the elements of a list or a map. Where only empty objects were
    held their text becomes an object.
    """
    match old, new:
        case Struct(()), _:
            return storage_type(old) == storage_type(new)
        case Array(x), Array(y):
            return _stays(x, y) and is_in_place(x, y)
        case MapType(key_a, value_a), MapType(key_b, value_b):
            stay = _stays(key_a, key_b) and _stays(value_a, value_b)
            return stay and is_in_place(value_a, value_b)
        case Struct(fields_a), Struct(fields_b):
            after = dict(fields_b)
            return all(is_in_place(kind, after[name]) for name, kind in fields_a if name in after)
        case _:
            return True


def _stays(old: DataType, new: DataType) -> bool:
    return not isinstance(old, Void) or storage_type(old) == storage_type(new)


def unify(a: DataType, b: DataType) -> DataType | None:
    """Return the narrowest type that holds the values of both, while a type is being inferred.

    bigint and double give double: the caller has seen the literals and knows that they round-trip.
    Decimals keep every digit or there is no common type. Structs merge by name, `a`'s fields first.
    """
    return _combine(a, b, _unify_scalar, unify)


def _combine(a: DataType, b: DataType, scalar: _Rule, key_rule: _Rule) -> DataType | None:
    """Walk two types in step and combine the leaves with `scalar`, map keys with `key_rule`."""

    def inner(x: DataType, y: DataType) -> DataType | None:
        return _combine(x, y, scalar, key_rule)

    match a, b:
        case (Void(), other) | (other, Void()):
            return other
        case (Struct(()), Primitive("string")) | (Primitive("string"), Struct(())):
            return STRING
        case Array(x), Array(y):
            element = inner(x, y)
            return None if element is None else Array(element)
        case MapType(key_a, value_a), MapType(key_b, value_b):
            key, value = key_rule(key_a, key_b), inner(value_a, value_b)
            return None if key is None or value is None else MapType(key, value)
        case Struct(fields_a), Struct(fields_b):
            return _merge_fields(fields_a, fields_b, inner)
        case _:
            return a if a == b else scalar(a, b)


def _merge_fields(
    a: tuple[tuple[str, DataType], ...], b: tuple[tuple[str, DataType], ...], inner: _Rule
) -> DataType | None:
    merged = dict(a)
    for name, kind in b:
        common = inner(merged[name], kind) if name in merged else kind
        if common is None:
            return None
        merged[name] = common
    return Struct(tuple(merged.items()))


def _widen_scalar(old: DataType, new: DataType) -> DataType | None:
    if {old, new} == {INT, BIGINT}:
        return BIGINT
    if {old, new} == {FLOAT, DOUBLE}:
        return DOUBLE
    if isinstance(old, Decimal) and isinstance(new, Decimal) and old.scale == new.scale:
        return Decimal(max(old.precision, new.precision), old.scale)
    return None


def _same_key(old: DataType, new: DataType) -> DataType | None:
    """Iceberg forbids any change of a map's key type, except that a key was unknown so far."""
    if isinstance(old, Void):
        return new
    return old if isinstance(new, Void) or old == new else None


def _unify_scalar(a: DataType, b: DataType) -> DataType | None:
    if {a, b} == {INT, BIGINT}:
        return BIGINT
    floating = {FLOAT, DOUBLE}
    if a in floating or b in floating:
        other = b if a in floating else a
        # A float holds 24 bits of an int, so int and float meet in double.
        return DOUBLE if other in floating or other in _INTEGER_DIGITS else None
    decimal_a, decimal_b = _as_decimal(a), _as_decimal(b)
    if decimal_a is None or decimal_b is None:
        return None
    scale = max(decimal_a.scale, decimal_b.scale)
    whole = max(decimal_a.precision - decimal_a.scale, decimal_b.precision - decimal_b.scale)
    return Decimal(whole + scale, scale) if whole + scale <= MAX_PRECISION else None


def _as_decimal(kind: DataType) -> Decimal | None:
    if isinstance(kind, Decimal):
        return kind
    digits = next((n for integer, n in _INTEGER_DIGITS.items() if integer == kind), None)
    return None if digits is None else Decimal(digits, 0)


_NUMBERS: Final = frozenset({INT, BIGINT, FLOAT, DOUBLE})
#: What text can be read as; a float could not tell which digits were written.
_READ: Final = frozenset({INT, BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ})
#: What has one text, the same that a reader of a declared `string` gives.
_WRITTEN: Final = frozenset({INT, BIGINT, BOOLEAN, DATE})


def is_rewritable(old: DataType, new: DataType) -> bool:
    """Whether a column of type `old` becomes `new` by a rewrite, and only so."""
    if widen(old, new) is not None:
        return False
    if old == STRING:
        return new in _READ or isinstance(new, Decimal)
    if new == STRING:
        return old in _WRITTEN
    return _is_number(old) and _is_number(new)


def _is_number(kind: DataType) -> bool:
    return kind in _NUMBERS or isinstance(kind, Decimal)


@dataclass(frozen=True, slots=True)
class TypeDifference:
    """A field that was added (`old` None), or a type that was widened; `path` is below the type."""

    path: str
    old: DataType | None
    new: DataType


def differences(old: DataType, new: DataType, path: str = "") -> Iterator[TypeDifference]:
    """Yield how `new` differs from `old`; `new` holds every value of `old`.

    Neither the first value after NULLs nor a text after empty objects is a difference.
    """
    match old, new:
        case (Void(), _) | (Struct(()), Primitive()):
            return
        case Struct(before), Struct(after):
            known = dict(before)
            for name, kind in after:
                if name in known:
                    yield from differences(known[name], kind, f"{path}.{name}")
                else:
                    yield TypeDifference(f"{path}.{name}", None, kind)
        case Array(element), Array(other):
            yield from differences(element, other, f"{path}.element")
        case MapType(_, value), MapType(_, other):
            yield from differences(value, other, f"{path}.value")
        case _:
            if old != new:
                yield TypeDifference(path, old, new)


def restricted(old: DataType, new: DataType, *, grow: bool, widen: bool) -> DataType:
    """`new` without its added fields unless `grow`, and with the old scalars unless `widen`."""
    match old, new:
        case (Void(), _) | (Struct(()), Primitive()):
            return new
        case Struct(before), Struct(after):
            known = dict(before)
            return Struct(
                tuple(
                    (
                        name,
                        restricted(known[name], kind, grow=grow, widen=widen)
                        if name in known
                        else kind,
                    )
                    for name, kind in after
                    if grow or name in known
                )
            )
        case Array(element), Array(other):
            return Array(restricted(element, other, grow=grow, widen=widen))
        case MapType(key, value), MapType(_, other):
            return MapType(key, restricted(value, other, grow=grow, widen=widen))
        case _:
            return new if widen else old


def tag(kind: DataType) -> str:
    """The short name of a type, as in `<name>_<type>`."""
    match kind:
        case Struct():
            return "struct"
        case Array():
            return "array"
        case MapType():
            return "map"
        case _:
            return str(kind).partition("(")[0]
