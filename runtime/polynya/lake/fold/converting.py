"""A value in another type as SQL, exactly or not at all.

Text is read as a declared column would read it, in the spellings that Spark and the readers agree
on; what only one of them can read counts as no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import selected
from polynya.model.contract.headers import HEADER_NAMES
from polynya.model.contract.identifiers import literal, quote
from polynya.model.datatypes import (
    BIGINT,
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

_INTEGER: Final = "^[+-]?[0-9]{1,40}$"
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = "[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_SPELLED: Final[Mapping[DataType, str]] = {
    INT: _INTEGER,
    BIGINT: _INTEGER,
    # So short that no number is beyond the largest double.
    DOUBLE: "^[+-]?[0-9]{1,200}([.][0-9]+)?([eE][+-]?[0-9]{1,2})?$",
    BOOLEAN: "^(true|True|TRUE|false|False|FALSE)$",
    DATE: f"^{_DAY}$",
    TIMESTAMP: f"^{_DAY}{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})?$",
    TIMESTAMP_NTZ: f"^{_DAY}{_TIME}$",
}

_FLOATS: Final = frozenset({FLOAT, DOUBLE})
#: The first number that an integer type does not hold. A floating one of it would be cast to the
#: last that it does.
_BEYOND: Final[Mapping[DataType, str]] = {INT: "2147483648D", BIGINT: "9223372036854775808D"}


def converted(value: str, old: DataType, new: DataType) -> str:
    """SQL of a value of the type `old` in the type `new`; NULL where it is none exactly.

    The types are a pair that `is_rewritable`.
    """
    cast = f"try_cast({value} AS {new})"
    if new == STRING:
        return cast
    if old == STRING:
        return f"IF({value} RLIKE {literal(_spelled(new))}, {cast}, NULL)"
    same = f"try_cast({cast} AS {old}) = {value}"
    for integer, floating, kind in ((old, new, cast), (new, old, value)):
        if integer in _BEYOND and floating in _FLOATS:
            same += f" AND {kind} < {_BEYOND[integer]}"
    return f"IF({same}, {cast}, NULL)"


def _spelled(kind: DataType) -> str:
    if isinstance(kind, Decimal):
        return f"^[+-]?[0-9]{{1,38}}([.][0-9]{{0,{kind.scale}}}0*)?$"
    return _SPELLED[kind]


def unconverted(value: str, old: DataType, new: DataType) -> str:
    """SQL condition that a value is there and that `converted` has none for it."""
    return f"{value} IS NOT NULL AND {converted(value, old, new)} IS NULL"


def bridged(shape: Shape, table: str) -> str:
    """The table as a relation in which the columns `shape.bridged` have the types of the shape.

    So it reads the same before and after the commit that gives them other types.
    """
    if not shape.bridged:
        return table
    columns = {name: name for name in HEADER_NAMES}
    for name in shape.data:
        kind = shape.type_of(name)
        columns[name] = f"CAST({quote(name)} AS {kind})" if name in shape.bridged else quote(name)
    return f"(SELECT {selected(columns)} FROM {table})"
