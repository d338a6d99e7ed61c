"""Which columns of a table can be compared, and by which text of their values: pure.

Both sides write each value as the same text, whatever their types are called, and hash it. A column
for which there is no such text is left out, and said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
    Decimal,
)


class Kind(StrEnum):
    """The text by which values of a column are compared."""

    WHOLE = "whole"  # digits, with a sign where it is negative
    NUMBER = "number"  # digits with a point, without trailing zeros
    DOUBLE = "double"  # the 64 bits of IEEE 754 as a signed whole number
    FLOAT = "float"  # the 32 bits, likewise
    BOOLEAN = "boolean"  # true, false
    TEXT = "text"  # itself
    BYTES = "bytes"  # lower-case hex
    DATE = "date"  # days since 1970-01-01
    TIME = "time"  # HH:MM:SS, with six digits of a fraction where there is one
    MICROS = "micros"  # microseconds since 1970-01-01T00:00:00


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of the source; `kind` None: it cannot be compared, for the reason `why`."""

    name: str
    kind: Kind | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that is not compared, and why."""

    column: str
    why: str


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a table is compared.

    Attributes:
        columns: name and text of each column, in one order for both sides.
        key: the columns by which rows are told apart; () where rows are compared as a whole, each
            with the number of its copies.
        left_out: the others.
    """

    columns: tuple[tuple[str, Kind], ...]
    key: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def layout_of(
    source: Sequence[ComparedColumn],
    current: Mapping[str, DataType],
    *,
    key: Sequence[str],
    masked: Collection[str] = (),
) -> Layout:
    """What of a table is compared, column by column.

    Args:
        source: columns as the database has them now.
        current: columns of the view Current with their types.
        key: primary key of the source.
        masked: columns that never leave the database as they are.
    """
    compared: list[tuple[str, Kind]] = []
    left_out: list[LeftOut] = []
    for column in source:
        why = _why_not(column, current, masked)
        if why is None and column.kind is not None:
            compared.append((column.name, column.kind))
        else:
            left_out.append(LeftOut(column.name, why or column.why))
    known = {column.name for column in source}
    left_out += [
        LeftOut(name, "the source has no such column any more")
        for name in current
        if name not in known
    ]
    names = {name for name, _ in compared}
    usable = tuple(key) if key and names.issuperset(key) else ()
    return Layout(tuple(compared), usable, tuple(left_out))


def _why_not(
    column: ComparedColumn, current: Mapping[str, DataType], masked: Collection[str]
) -> str | None:
    if column.name in masked:
        return "it is masked"
    if column.name not in current:
        return "Current has no such column yet: no event has told it"
    if column.kind is None:
        return column.why
    if not _holds(column.kind, current[column.name]):
        return f"it is {current[column.name]} in Current, which has no text in common with it"
    return None


def _holds(kind: Kind, datatype: DataType) -> bool:
    """Whether values of a type of Current have the text of a kind."""
    if isinstance(datatype, Decimal):
        return kind is Kind.NUMBER or (kind is Kind.WHOLE and datatype.scale == 0)
    return datatype in _TYPES[kind]


_TYPES: Final[Mapping[Kind, frozenset[DataType]]] = {
    Kind.WHOLE: frozenset({INT, BIGINT}),
    Kind.NUMBER: frozenset({STRING}),  # more digits than a decimal column holds
    Kind.DOUBLE: frozenset({DOUBLE}),
    Kind.FLOAT: frozenset({FLOAT}),
    Kind.BOOLEAN: frozenset({BOOLEAN}),
    Kind.TEXT: frozenset({STRING}),
    Kind.BYTES: frozenset({BINARY}),
    Kind.DATE: frozenset({DATE}),
    Kind.TIME: frozenset({STRING}),
    Kind.MICROS: frozenset({TIMESTAMP, TIMESTAMP_NTZ}),
}
