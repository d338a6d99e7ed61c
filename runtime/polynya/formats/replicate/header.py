"""The `header__` columns of a change: operation, place in the order, time, what was not sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polynya.formats.batch import NO_ORDER
from polynya.formats.errors import RecordError
from polynya.formats.replicate.metadata import HEADER_COLUMNS, HEADER_PREFIX
from polynya.formats.values.exact import shown
from polynya.formats.values.sequence import time_micros

SEQUENCE: Final = f"{HEADER_PREFIX}change_seq"
OPERATION: Final = f"{HEADER_PREFIX}change_oper"
_LONG_OPERATION = f"{HEADER_PREFIX}operation"
MASK: Final = f"{HEADER_PREFIX}change_mask"
_TIMESTAMP = f"{HEADER_PREFIX}timestamp"

#: 16 digits of time and 19 of the change: a change identifier as it is.
_CHANGE_SEQUENCE = re.compile(r"[0-9]{35}", re.ASCII)
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{1,8192})", re.ASCII)
_OPERATIONS = frozenset("IUDB")
_TRUNCATE = "TRUNCATE"

BEFORE_IMAGE: Final = "B"


@dataclass(frozen=True, slots=True)
class Header:
    """What a record says of itself.

    Attributes:
        operation: L I U D, T for a truncate, B for the state before an update.
        sequence: 35 digits that sort as the changes happened.
        micros: time of the change in microseconds since 1970 UTC, None where it is not known.
        unsent: columns of an update that keep the value valid just before.
    """

    operation: str
    sequence: str
    micros: int | None = None
    unsent: tuple[str, ...] = ()


#: Of every row of a full load.
LOADED: Final = Header("L", NO_ORDER)


def header_of(record: Mapping[str, Any], bits: Mapping[str, int]) -> Header:
    """Read the header columns of a change; `bits` are those of the columns in a change mask.

    Raises:
        RecordError: unknown_op, null_sequence, bad_sequence, bad_timestamp or bad_header.
    """
    operation = _operation(record)
    changed = _mask(record.get(MASK), bits)
    return Header(
        operation,
        _sequence(record.get(SEQUENCE)),
        _micros(record.get(_TIMESTAMP)),
        _unsent(record, bits, changed) if operation == "U" and changed is not None else (),
    )


def _operation(record: Mapping[str, Any]) -> str:
    if str(record.get(_LONG_OPERATION)).upper() == _TRUNCATE:
        return "T"
    # Text first: in JSON it may be anything, also what cannot be in a set.
    operation = str(record.get(OPERATION))
    if operation not in _OPERATIONS:
        raise RecordError("unknown_op", f"operation {operation[:20]!r} is not known")
    return operation


def _sequence(value: Any) -> str:
    if value is None:
        raise RecordError("null_sequence", f"{SEQUENCE} is NULL")
    if not isinstance(value, str) or not _CHANGE_SEQUENCE.fullmatch(value):
        raise RecordError("bad_sequence", f"{SEQUENCE} {shown(value)} has not 35 digits")
    return value


def _micros(value: Any) -> int | None:
    try:
        return None if value is None else time_micros(value)
    except (ValueError, OverflowError) as error:
        raise RecordError("bad_timestamp", f"{_TIMESTAMP}: {error}") from None


def _mask(value: Any, bits: Mapping[str, int]) -> int | None:
    """The mask as a number whose lowest bit belongs to the first column; None when it is empty.

    Text is a hexadecimal number; bytes begin with the lowest bits.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bytes):
        mask = int.from_bytes(value, "little")
    else:
        match = _HEX.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise RecordError("bad_header", f"{MASK} {shown(value)} is no hexadecimal number")
        mask = int(match[1], 16)
    if mask.bit_length() > max(bits.values(), default=-1) + 1:
        raise RecordError("bad_header", f"{MASK} has more bits than there are columns")
    return mask or None


def _unsent(record: Mapping[str, Any], bits: Mapping[str, int], changed: int) -> tuple[str, ...]:
    """Columns that did not change, by the mask, and are NULL.

    Either the source did not log them, or they were NULL before: the value before is right.
    """
    return tuple(
        name
        for name, value in record.items()
        if value is None and not changed >> bits[name] & 1 and name not in HEADER_COLUMNS
    )
