"""Decisions of a comparison: which key ranges and rows differ, and what that proves. Pure.

The hash of a row's key is a number of 32 bits; its first bits give the range of the row. Each side
returns the number of rows and the sum of their hashes for each range. Ranges that differ are read
row by row, as hashes, which gives the keys.

While changes arrive, Current may be ahead of the moment at which the source was read, so one
differing row proves nothing. The row is read again at a later moment. If the source shows the same
row at both moments, it did not change in between, and Current must have shown that row in the
meantime: otherwise the difference is real. A row that keeps changing stays undecided.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

#: Rows for which one range is made, about; and most bits of a range's number.
_ROWS_A_RANGE: Final = 16
_MOST_BITS: Final = 18


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of a range of keys, and the sum of the first 60 bits of their hashes."""

    rows: int
    total: int


Ranges: TypeAlias = Mapping[int, Range]
"""Ranges that have rows, by number."""


@dataclass(frozen=True, slots=True)
class RowState:
    """A row as one side has it.

    Attributes:
        key: text of its key, for messages.
        digest: hash of its compared columns.
        copies: how many there are of it; more than one only without a key.
        version: changes with every change of the row in the source, also to the same values.
    """

    key: str
    digest: str
    copies: int = 1
    version: str = ""


Rows: TypeAlias = Mapping[str, RowState]
"""Rows by the hash of their key."""


class Fault(StrEnum):
    """How a row differs."""

    MISSING = "missing in Current"
    SURPLUS = "only in Current"
    DIFFERENT = "other values"


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs, and how many copies of it each side has."""

    key: str
    fault: Fault
    source: int = 1
    current: int = 1


def bits_for(rows: int) -> int:
    """How many bits of the key's hash number a range, for a table of about so many rows."""
    return min(max(rows // _ROWS_A_RANGE, 1).bit_length(), _MOST_BITS)


def unlike(source: Ranges, current: Ranges) -> list[int]:
    """The ranges that are not the same on both sides, in order."""
    return sorted(
        number
        for number in source.keys() | current.keys()
        if source.get(number) != current.get(number)
    )


def affordable(differing: Collection[int], source: Ranges, current: Ranges, most: int) -> list[int]:
    """The first of the differing ranges, with at most so many rows, but at least one of them."""
    chosen: list[int] = []
    rows = 0
    none = Range(0, 0)
    for number in differing:
        rows += max(source.get(number, none).rows, current.get(number, none).rows)
        if chosen and rows > most:
            break
        chosen.append(number)
    return chosen


def differing_rows(source: Rows, current: Rows) -> dict[str, DifferingRow]:
    """Rows that are not the same on both sides, by the hash of their key."""
    differences = {}
    for key in source.keys() | current.keys():
        left, right = source.get(key), current.get(key)
        if right is None:
            assert left is not None
            differences[key] = DifferingRow(left.key, Fault.MISSING, left.copies, 0)
        elif left is None:
            differences[key] = DifferingRow(right.key, Fault.SURPLUS, 0, right.copies)
        elif (left.digest, left.copies) != (right.digest, right.copies):
            differences[key] = DifferingRow(left.key, Fault.DIFFERENT, left.copies, right.copies)
    return differences


def unchanged(keys: Collection[str], before: Rows, after: Rows) -> set[str]:
    """The keys whose rows the source had alike before and after Current was read."""
    return {key for key in keys if before.get(key) == after.get(key)}


def rounds_needed(row: RowState | None) -> int:
    """In how many rounds a difference has to be seen.

    A version tells every change. Without one, and of a row that is not there, it is only known that
    it was the same at both moments: it may have changed and changed back in between, once.
    """
    return 1 if row is not None and row.version else 2
