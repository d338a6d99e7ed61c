"""A typed Arrow column from Python values; a value that does not fit is reported, never changed.

The type of a column is settled once. A declared type stays. A known type takes only Iceberg's
promotions. A new column takes the type of its first value, widened inside the batch as long as no
value loses anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal as Number
from functools import partial
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.exact import (
    FLOAT32_END,
    USUAL,
    NumberSpelling,
    digits_needed,
    exact_decimal,
    fit,
    parse,
    shown,
)
from polynya.formats.values.names import (
    MAX_FIELDS,
    TOO_MANY_FIELDS,
    NameSpace,
    fitting,
    nested_problem,
)
from polynya.formats.values.times import Micros, Nanos, instants_of
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EMPTY,
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
    Struct,
    Void,
)

Values = Sequence[Any]
#: index of the value → (rule, error)
Faults = dict[int, tuple[str, str]]

_NONE = type(None)
#: No double reaches it.
_DOUBLE_END = 1 << 1024
_NUMBERS = frozenset({int, float, Number})
#: Python types that Arrow converts exactly by itself, or refuses.
_FAST: dict[DataType, frozenset[type]] = {
    BOOLEAN: frozenset({bool}),
    INT: frozenset({int}),
    BIGINT: frozenset({int}),
    DOUBLE: frozenset({int, float}),
    STRING: frozenset({str}),
}
#: What a new column becomes when its first value has this Python type.
_NATURAL: dict[type, DataType] = {
    bool: BOOLEAN,
    str: STRING,
    bytes: BINARY,
    date: DATE,
    datetime: TIMESTAMP,
    Micros: TIMESTAMP,
    list: Array(Void()),
    tuple: Array(Void()),
}


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A typed column; `faults` names the values that did not fit, they are NULL in `array`."""

    type: DataType
    array: pa.Array
    faults: Faults


class Builder(Protocol):
    """Types one column; see `build`."""

    def __call__(
        self, values: Values, known: DataType | None, *, declared: bool = False
    ) -> TypedColumn:
        """Build the column."""
        ...


def build(
    values: Values,
    known: DataType | None,
    *,
    declared: bool = False,
    spelling: NumberSpelling = USUAL,
) -> TypedColumn:
    """Type a column.

    Args:
        values: one value a record, None where it is NULL or missing.
        known: type of the column so far; None or Void when there is none.
        declared: the type comes from the configuration: it does not change, and text is parsed.
        spelling: how such text spells numbers.
    """
    if not spelling.is_usual and declared:
        return _build(values, known, _Reading(partial(parse, spelling=spelling), declared=True))
    return _build(values, known, _DECLARED if declared else _INFERRED)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How values are converted: `convert` takes a value and a type and raises ValueError."""

    convert: Callable[[Any, DataType], Any]
    declared: bool


_DECLARED = _Reading(parse, declared=True)
_INFERRED = _Reading(fit, declared=False)


def _build(values: Values, known: DataType | None, reading: _Reading) -> TypedColumn:
    kinds = set(map(type, values)) - {_NONE}
    if known is None or isinstance(known, Void):
        known = _inferred(values, kinds)
    if known == EMPTY and str in kinds and not reading.declared:
        known = _after_empty(values)
    match known:
        case Void():
            # What is there all the same are numbers that no type holds.
            faults = {
                index: (_rule(value), f"{shown(value)} fits no type of a column")
                for index, value in enumerate(values)
                if value is not None
            }
            return TypedColumn(known, pa.nulls(len(values), pa.string()), faults)
        case Struct():
            return _struct(values, known, reading)
        case Array():
            return _array(values, known, reading)
        case MapType():
            return _map(values, known, reading)
        case _:
            return _leaf(values, kinds, known, reading)


def _inferred(values: Values, kinds: set[type]) -> DataType:
    """The type of a new column, one level deep: the rest settles while it is built."""
    if len(kinds) > 1:
        first = next(value for value in values if value is not None)
        kinds = kinds & _NUMBERS if type(first) in _NUMBERS else {type(first)}
    if not kinds:
        return Void()
    if kinds <= _NUMBERS:
        return _inferred_number([value for value in values if type(value) in _NUMBERS])
    if kinds == {dict}:
        return EMPTY
    if kinds == {Nanos}:
        whole = all(value % 1000 == 0 for value in values if type(value) is Nanos)
        return TIMESTAMP_NTZ if whole else BIGINT
    return _NATURAL.get(kinds.pop(), STRING)


def _after_empty(values: Values) -> DataType:
    """The type of a column of empty objects, which its first other value decides."""
    first = next((value for value in values if value is not None and value != {}), None)
    return STRING if isinstance(first, str) else EMPTY


def _inferred_number(numbers: list[Any]) -> DataType:
    # A number that no column can hold is refused, and has no say.
    numbers = [number for number in numbers if type(number) is float or _is_held(number)]
    if not numbers:
        return Void()
    kinds = set(map(type, numbers))
    if kinds == {float}:
        return DOUBLE
    if kinds == {int}:
        return (
            BIGINT
            if min(numbers) >= -(1 << 63) and max(numbers) < 1 << 63
            else Decimal(MAX_PRECISION, 0)
        )
    if Number not in kinds and all(type(n) is float or _is_exact_double(n) for n in numbers):
        return DOUBLE
    needed = [digits_needed(exact_decimal(number)) for number in numbers]
    # The scale that holds most of them, so that one odd number does not refuse the others. Of equal
    # ones the smallest: a decimal column gains precision later, never scale.
    scales = sorted({min(fraction, MAX_PRECISION) for _, fraction in needed})
    scale = max(scales, key=lambda one: sum(_is_at(one, *digits) for digits in needed))
    return Decimal(MAX_PRECISION, scale)


def _is_at(scale: int, whole: int, fraction: int) -> bool:
    """Whether a decimal of the most digits and this scale holds so many of a number."""
    return fraction <= scale and whole <= MAX_PRECISION - scale


def _is_held(number: int | Number) -> bool:
    """Whether some decimal type holds a number exactly."""
    return sum(digits_needed(exact_decimal(number))) <= MAX_PRECISION


def _is_exact_double(number: int) -> bool:
    return abs(number) <= 1 << 53 or (abs(number) < 1 << 1023 and int(float(number)) == number)


def _leaf(values: Values, kinds: set[type], known: DataType, reading: _Reading) -> TypedColumn:
    if not reading.declared:
        known = _promoted(values, kinds, known)
    if kinds <= _FAST.get(known, frozenset()):
        try:
            return TypedColumn(known, pa.array(values, arrow_type(known)), {})
        except (pa.ArrowInvalid, OverflowError):
            pass  # a number out of range: find out which
    if known == TIMESTAMP and kinds == {str}:
        times = instants_of(pa.array(values, pa.string()))
        if times is not None:
            return TypedColumn(known, times, {})
    out: list[Any] = []
    faults: Faults = {}
    for index, value in enumerate(values):
        if value is None:
            out.append(None)
            continue
        try:
            out.append(reading.convert(value, known))
        except ValueError as error:
            out.append(None)
            faults[index] = ("bad_value" if reading.declared else _rule(value), str(error))
    return TypedColumn(known, pa.array(out, arrow_type(known)), faults)


def _rule(value: object) -> str:
    huge = isinstance(value, int | Number) and abs(value) >= 10**MAX_PRECISION
    return "bad_number" if huge else "type_mismatch"


def _promoted(values: Values, kinds: set[type], known: DataType) -> DataType:
    """The known type after the promotions that Iceberg makes in place."""
    if known == INT and int in kinds:
        numbers = [value for value in values if type(value) is int]
        # One beyond 64 bits is refused by either type.
        needs_more = any(1 << 31 <= (n if n >= 0 else ~n) < 1 << 63 for n in numbers)
        return BIGINT if needs_more else INT
    if known == FLOAT and not kinds.isdisjoint(_NUMBERS):
        return (
            DOUBLE
            if any(type(v) in _NUMBERS and FLOAT32_END <= abs(v) < _DOUBLE_END for v in values)
            else FLOAT
        )
    if isinstance(known, Decimal) and known.precision < MAX_PRECISION:
        numbers = [value for value in values if type(value) in _NUMBERS and math.isfinite(value)]
        needed = (digits_needed(exact_decimal(number))[0] for number in numbers)
        most = MAX_PRECISION - known.scale
        whole = max((digits for digits in needed if digits <= most), default=0)
        if known.precision < whole + known.scale <= MAX_PRECISION:
            return Decimal(whole + known.scale, known.scale)
    return known


def _struct(values: Values, known: Struct, reading: _Reading) -> TypedColumn:
    faults: Faults = {}
    rows = _only(values, (dict,), known, faults)
    children = dict(known.fields)
    names = NameSpace(children)
    bad_names: dict[str, str] = {}
    for name in dict.fromkeys(chain.from_iterable(row for row in rows if row)):
        if name in children:
            continue
        problem = nested_problem(name) or names.clash(name)
        if problem:
            bad_names[name] = problem
        else:
            children.setdefault(name, Void())
    if bad_names:
        _fault_names(rows, bad_names, faults)
    if len(children) > max(MAX_FIELDS, len(known.fields)):
        children = _bounded(rows, dict(known.fields), children, faults)
    built = {
        name: _build([row.get(name) if row else None for row in rows], kind, reading)
        for name, kind in children.items()
    }
    for name, column in built.items():
        for index, (rule, error) in column.faults.items():
            faults.setdefault(index, (rule, f"{name}: {error}"))
    if not built:
        # Nothing but empty objects and refused names: there is no field to make a struct of yet.
        empty = [None if row is None or index in faults else "{}" for index, row in enumerate(rows)]
        return TypedColumn(EMPTY, pa.array(empty, pa.string()), faults)
    kind = Struct(tuple((name, column.type) for name, column in built.items()))
    storage = arrow_type(kind)
    mask = pa.array([row is None for row in rows], pa.bool_())
    array = pa.StructArray.from_arrays(
        [column.array for column in built.values()], fields=list(storage), mask=mask
    )
    return TypedColumn(kind, array, faults)


def _bounded(
    rows: list[dict[str, Any] | None],
    known: dict[str, DataType],
    children: dict[str, DataType],
    faults: Faults,
) -> dict[str, DataType]:
    """Fields of a struct, as many as it may have; rows that bring too many are refused."""
    wanted = children.keys() - known.keys()
    found, beyond = fitting(rows, wanted, MAX_FIELDS - len(known), faults)
    for index, name in beyond.items():
        faults.setdefault(index, ("bad_column", f"field {name[:60]!r}: {TOO_MANY_FIELDS}"))
    return {name: kind for name, kind in children.items() if name in known or name in found}


def _fault_names(rows: list[dict[str, Any] | None], bad: dict[str, str], faults: Faults) -> None:
    for index, row in enumerate(rows):
        hit = next((name for name in row if name in bad), None) if row else None
        if hit is not None:
            faults.setdefault(index, ("bad_column", bad[hit]))


def _array(values: Values, known: Array, reading: _Reading) -> TypedColumn:
    faults: Faults = {}
    rows = _only(values, (list, tuple), known, faults)
    element = _build(list(chain.from_iterable(row for row in rows if row)), known.element, reading)
    _fault_owners(rows, element.faults, faults)
    kind = Array(element.type)
    array = pa.ListArray.from_arrays(_offsets(rows), element.array, type=arrow_type(kind))
    return TypedColumn(kind, array, faults)


def _map(values: Values, known: MapType, reading: _Reading) -> TypedColumn:
    faults: Faults = {}
    rows = _only(values, (dict, list), known, faults)
    pairs: list[list[Any] | None] = [
        list(row.items()) if isinstance(row, dict) else row for row in rows
    ]
    flat = list(chain.from_iterable(row for row in pairs if row))
    keys = _build([key for key, _ in flat], known.key, reading)
    items = _build([item for _, item in flat], known.value, reading)
    _fault_owners(pairs, {**items.faults, **keys.faults}, faults)
    kind = MapType(keys.type, items.type)
    key_array = keys.array
    if keys.faults:
        # A map cannot have NULL keys; the records of these are refused anyway.
        pairs = [None if index in faults else row for index, row in enumerate(pairs)]
        return TypedColumn(kind, _map(pairs, kind, reading).array, faults)
    array = pa.MapArray.from_arrays(_offsets(pairs), key_array, items.array)
    return TypedColumn(kind, array.cast(arrow_type(kind)), faults)


def _only(values: Values, allowed: tuple[type, ...], kind: DataType, faults: Faults) -> list[Any]:
    """The values with None for those that are not containers of the right kind."""
    rows: list[Any] = []
    for index, value in enumerate(values):
        if value is None or isinstance(value, allowed):
            rows.append(value)
            continue
        faults[index] = ("type_mismatch", f"{shown(value)} is not {_article(kind)}")
        rows.append(None)
    return rows


def _article(kind: DataType) -> str:
    return {Struct: "an object", Array: "an array"}.get(type(kind), "a map")


def _fault_owners(rows: Iterable[Any], inner: Faults, faults: Faults) -> None:
    """Give the faults of flattened elements to the records that hold them."""
    if not inner:
        return
    owners = [index for index, row in enumerate(rows) for _ in row or ()]
    for position, (rule, error) in inner.items():
        faults.setdefault(owners[position], (rule, f"element: {error}"))


def _offsets(rows: Sequence[Any]) -> pa.Array:
    """Arrow's list offsets; a NULL list is a NULL offset."""
    offsets: list[int | None] = []
    total = 0
    for row in rows:
        offsets.append(None if row is None else total)
        total += len(row) if row else 0
    offsets.append(total)
    return pa.array(offsets, pa.int32())
