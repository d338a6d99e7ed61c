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
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
    storage_type,
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

    The types are a pair that `is_rewritable`, or nested ones of which the second is what `widen`
    gives.
    """
    if isinstance(old, Array | MapType | Struct):
        return _grown(value, old, new)
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


def _grown(value: str, old: DataType, new: DataType, depth: int = 0) -> str:
    """SQL of a value in a type that grew out of its own.

    What is `void` in either type holds NULL only, whatever the table has it as: so the text is
    right for a column of the type `old`, and where both are the same, for one of any type that grew
    out of it.
    """
    item = f"x{depth}"
    match old, new:
        case (Void(), _) | (_, Void()):
            return f"CAST(NULL AS {storage_type(new)})"
        case Struct(()), Struct(()):
            return f"IF({value} IS NULL, NULL, '{{}}')"
        case Struct(before), Struct(after):
            known = dict(before)
            members = (
                f"{literal(name)}, "
                + (
                    _grown(f"{value}.{quote(name)}", known[name], kind, depth)
                    if name in known
                    else f"CAST(NULL AS {storage_type(kind)})"
                )
                for name, kind in after
            )
            return f"IF({value} IS NULL, NULL, named_struct({', '.join(members)}))"
        case Array(before), Array(after):
            return f"transform({value}, {item} -> {_grown(item, before, after, depth + 1)})"
        case MapType(Void(), _), MapType():
            return f"IF({value} IS NULL, NULL, CAST(map() AS {storage_type(new)}))"
        case MapType(_, before), MapType(_, after):
            inner = _grown(item, before, after, depth + 1)
            return f"transform_values({value}, (k{depth}, {item}) -> {inner})"
        case _:
            return f"CAST({value} AS {new})"


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
        columns[name] = _bridge(shape, name) if name in shape.bridged else quote(name)
    return f"(SELECT {selected(columns)} FROM {table})"


def _bridge(shape: Shape, name: str) -> str:
    kind = shape.columns[name]
    if isinstance(kind, Array | MapType | Struct):
        return _grown(quote(name), kind, kind)
    return f"CAST({quote(name)} AS {shape.type_of(name)})"
