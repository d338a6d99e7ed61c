"""Order and time of records from `sequence_by` and `timestamp`, as change identifiers.

A change identifier is a string that sorts as the values of `sequence_by` do. A sequence becomes a
pair `(identifier, tail)`. Comparing `(identifier, tail or "")` as Python strings gives the same
answer as comparing the tuples of values. The identifier has 35 to 50 digits; the rest goes to the
tail.

| sequence | digits |
|---|---|
| one timestamp or date | `YYYYMMDDHHmmSShh`, then the rest in microseconds as 19 digits |
| one integer | value + 2**63, 35 digits |
| one float or double | order-preserving IEEE bits as an unsigned number, 35 digits |
| one decimal(p,s) | unscaled value at scale s + 10**38, 39 digits |
| one boolean | 0 or 1, 35 digits |
| one string or binary | first 14 bytes as a number, 35 digits; longer: tail = hex of all |
| several columns | fixed widths one after the other; a string: 3 digits a byte, then `000` |
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from polynya.formats.batch import NO_ORDER
from polynya.formats.values import times
from polynya.formats.values.columns import Faults, TypedColumn
from polynya.formats.values.exact import shown
from polynya.formats.values.times import DAY_MICROS, instants_of, stamp
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
    DataType,
    Void,
)
from polynya.model.types import Decimal as DecimalType

WIDTH = 35
MAX_WIDTH = 50

#: A change identifier and the rest of the sequence that it could not hold.
OrderPosition: TypeAlias = tuple[str, str | None]

_SIGN = 1 << 63
_UNSIGNED = (1 << 64) - 1
_DECIMAL_OFFSET = 10**38
_PREFIX_BYTES = 14
_EXACT = Context(prec=80)
_INTEGERS = {INT, BIGINT}
_FLOATS = {FLOAT, DOUBLE}
_INSTANTS = {TIMESTAMP, TIMESTAMP_NTZ}
_TEXTS = {STRING, BINARY}


def sequence_encoder(types: Sequence[DataType]) -> Callable[[Sequence[Any]], OrderPosition]:
    """The encoder of a sequence of columns with these types.

    It takes plain values (`plain_values`): microseconds for timestamps, days for dates, otherwise
    Python's own. It raises ValueError for a value without a place in the order, such as NaN.

    Raises:
        ValueError: a type that has no order, such as a struct.
    """
    if len(types) == 1:
        single = _single(types[0])
        return lambda values: single(values[0])
    parts = [_part(kind) for kind in types]

    def encode(values: Sequence[Any]) -> OrderPosition:
        text = "".join([part(value) for part, value in zip(parts, values, strict=True)])
        return text[:MAX_WIDTH].ljust(WIDTH, "0"), text[MAX_WIDTH:] or None

    return encode


def has_order(kind: DataType) -> bool:
    """Whether a column of this type can be a sequence."""
    return isinstance(kind, DecimalType) or kind in {
        BOOLEAN,
        DATE,
        *_INTEGERS,
        *_FLOATS,
        *_INSTANTS,
        *_TEXTS,
    }


def plain_values(array: pa.Array | pa.ChunkedArray, kind: DataType) -> list[Any]:
    """The values of a typed column as `sequence_encoder` takes them."""
    if kind in _INSTANTS:
        array = array.cast(pa.timestamp("us")).cast(pa.int64())
    elif kind == DATE:
        array = array.cast(pa.int32())
    values: list[Any] = array.to_pylist()
    return values


def _single(kind: DataType) -> Callable[[Any], OrderPosition]:
    if kind in _INTEGERS:
        return lambda value: (f"{value + _SIGN:035d}", None)
    if kind in _INSTANTS:
        return lambda value: (stamp(value), None)
    if kind == DATE:
        return lambda value: (stamp(value * DAY_MICROS), None)
    if kind in _TEXTS:
        return lambda value: _text_place(_bytes(value))
    part = _part(kind)
    return lambda value: (part(value).rjust(WIDTH, "0"), None)


def _part(kind: DataType) -> Callable[[Any], str]:
    """One column among several: fixed width, or ending where no other value goes on."""
    if kind in _INTEGERS or kind in _INSTANTS or kind == DATE:
        return lambda value: f"{value + _SIGN:020d}"
    if kind in _FLOATS:
        return lambda value: f"{_ordered_bits(value):020d}"
    if kind == BOOLEAN:
        return lambda value: "1" if value else "0"
    if kind in _TEXTS:
        return lambda value: "".join([f"{byte + 1:03d}" for byte in _bytes(value)]) + "000"
    if isinstance(kind, DecimalType):
        scale = kind.scale
        return lambda value: f"{_unscaled(value, scale) + _DECIMAL_OFFSET:039d}"
    raise ValueError(f"a column of type {kind} has no order, it cannot be in sequence_by")


def _ordered_bits(value: float) -> int:
    """IEEE bits as an unsigned number that sorts as the value; both zeros are the same."""
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in an order")
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return int(bits ^ _UNSIGNED if bits & _SIGN else bits | _SIGN)


def _unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, context=_EXACT))


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _text_place(data: bytes) -> OrderPosition:
    prefix = int.from_bytes(data[:_PREFIX_BYTES].ljust(_PREFIX_BYTES, b"\0"), "big")
    # Padding with NUL hides the length, so a text that contains one needs the tail to tell.
    whole = len(data) <= _PREFIX_BYTES and b"\0" not in data
    return f"{prefix:035d}", None if whole else data.hex()


@dataclass(frozen=True, slots=True)
class RecordOrder:
    """One change identifier and tail a record; None where `faults` says why there is none."""

    identifiers: list[str | None]
    tails: list[str | None]
    faults: Faults


def order_by(
    columns: Mapping[str, TypedColumn], names: Sequence[str], first_load: Sequence[bool]
) -> RecordOrder:
    """Encode the sequence columns.

    Args:
        columns: typed columns of the batch.
        names: `sequence_by`; with none, every record has the same place.
        first_load: for each record whether it may lack a sequence: then it stands before all others
            instead of being refused.
    """
    count = len(first_load)
    if not names:
        return RecordOrder([NO_ORDER] * count, [None] * count, {})
    order = RecordOrder([NO_ORDER if first else None for first in first_load], [None] * count, {})
    present = [columns.get(name) or TypedColumn(Void(), pa.nulls(count), {}) for name in names]
    for name, column in zip(names, present, strict=True):
        if not has_order(column.type) and not isinstance(column.type, Void):
            fault = ("bad_sequence", f"column {name} of type {column.type} has no order")
            return RecordOrder(order.identifiers, order.tails, dict.fromkeys(range(count), fault))
    _encode(names, present, first_load, order)
    return order


def _encode(
    names: Sequence[str],
    columns: Sequence[TypedColumn],
    first_load: Sequence[bool],
    order: RecordOrder,
) -> None:
    # A column of NULLs has no type yet; its records end before they would be encoded.
    types = [STRING if isinstance(column.type, Void) else column.type for column in columns]
    encode = sequence_encoder(types)
    values = [plain_values(column.array, kind) for column, kind in zip(columns, types, strict=True)]
    for index, row in enumerate(zip(*values, strict=True)):
        if None in row:
            if not first_load[index]:
                name = names[row.index(None)]
                order.faults[index] = ("null_sequence", f"sequence column {name} is NULL")
            continue
        try:
            order.identifiers[index], order.tails[index] = encode(row)
        except ValueError as error:
            order.faults[index] = ("bad_sequence", str(error))


def times_of(
    columns: Mapping[str, TypedColumn], timestamp: str | None, sequence: Sequence[str], count: int
) -> tuple[list[int | None], Faults]:
    """Microseconds of each record's `__ts`, None where the copy time stands in."""
    if timestamp is not None:
        column = columns.get(timestamp)
        return ([None] * count, {}) if column is None else _parsed_times(column)
    if len(sequence) == 1 and sequence[0] in columns:
        return _sequence_times(columns[sequence[0]], count), {}
    return [None] * count, {}


def _parsed_times(column: TypedColumn) -> tuple[list[int | None], Faults]:
    if column.type == STRING:
        at_once = instants_of(column.array)
        if at_once is not None:
            return plain_values(at_once, TIMESTAMP), {}
    times: list[int | None] = []
    faults: Faults = {}
    for index, value in enumerate(_time_values(column)):
        try:
            times.append(None if value is None else time_micros(value))
        except (ValueError, OverflowError) as error:
            times.append(None)
            faults[index] = ("bad_timestamp", str(error))
    return times, faults


def _time_values(column: TypedColumn) -> list[Any]:
    values: list[Any] = column.array.to_pylist()
    return values


def time_micros(value: object) -> int:
    """Microseconds of a `timestamp:` value: text, number, date or time. Raises ValueError."""
    match value:
        case str():
            return times.iso_micros(value)
        case datetime():
            return times.datetime_micros(value)
        case date():
            return times.date_days(value) * times.DAY_MICROS
        case bool():
            raise ValueError(f"{value} is not a time")
        case int() | float() | Decimal():
            return times.epoch_micros(value)
        case _:
            raise ValueError(f"{shown(value)} is not a time")


def _sequence_times(column: TypedColumn, count: int) -> list[int | None]:
    if column.type in {TIMESTAMP, TIMESTAMP_NTZ, DATE}:
        values = plain_values(column.array, column.type)
        return [
            None if v is None else v * (times.DAY_MICROS if column.type == DATE else 1)
            for v in values
        ]
    if column.type == STRING:
        at_once = instants_of(column.array)
        if at_once is not None:
            return plain_values(at_once, TIMESTAMP)
        texts: list[str | None] = column.array.to_pylist()
        return [
            times.iso_micros(text) if text and times.is_date_time(text) else None for text in texts
        ]
    return [None] * count
