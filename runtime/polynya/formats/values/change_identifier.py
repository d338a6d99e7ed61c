"""Change identifiers from `sequence_by` columns: strings that sort as the values do.

A sequence becomes a pair `(identifier, tail)`. Comparing `(identifier, tail or "")` as Python
strings gives the same answer as comparing the tuples of values. The identifier has 35 to 50 digits;
what does not fit goes to the tail.

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
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from polynya.formats.values.instants import DAY_MICROS, stamp
from polynya.model.datatypes import (
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
)
from polynya.model.datatypes import Decimal as DecimalType

WIDTH = 35
MAX_WIDTH = 50

#: A change identifier and the rest of the sequence that it could not hold.
Place: TypeAlias = tuple[str, str | None]

_SIGN = 1 << 63
_UNSIGNED = (1 << 64) - 1
_DECIMAL_OFFSET = 10**38
_PREFIX_BYTES = 14
_EXACT = Context(prec=80)
_INTEGERS = {INT, BIGINT}
_FLOATS = {FLOAT, DOUBLE}
_INSTANTS = {TIMESTAMP, TIMESTAMP_NTZ}
_TEXTS = {STRING, BINARY}


def sequence_encoder(types: Sequence[DataType]) -> Callable[[Sequence[Any]], Place]:
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

    def encode(values: Sequence[Any]) -> Place:
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


def _single(kind: DataType) -> Callable[[Any], Place]:
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


def _text_place(data: bytes) -> Place:
    prefix = int.from_bytes(data[:_PREFIX_BYTES].ljust(_PREFIX_BYTES, b"\0"), "big")
    # Padding with NUL hides the length, so a text that contains one needs the tail to tell.
    whole = len(data) <= _PREFIX_BYTES and b"\0" not in data
    return f"{prefix:035d}", None if whole else data.hex()
