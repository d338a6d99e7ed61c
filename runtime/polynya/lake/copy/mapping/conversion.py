"""A value as one of another type, in SQL: exactly, or not at all."""

from __future__ import annotations

from polynya.model.contract.identifiers import literal, quote
from polynya.model.datatypes import (
    BIGINT,
    DOUBLE,
    EMPTY,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
    storage_type,
)

_ITEM = "`|item`"


def converted(sql: str, kind: DataType, target: DataType) -> str:
    """SQL of a value, that has a type, as one of another type: NULL where it is none.

    Structs are brought over field by field, by their names.
    """
    if kind == target or isinstance(target, Void):
        return sql
    if isinstance(kind, Void):
        return f"CAST(NULL AS {storage_type(target)})"
    if {kind, target} == {EMPTY, STRING}:
        # Empty objects are their text.
        return sql
    if isinstance(kind, Struct) and isinstance(target, Struct) and target != EMPTY:
        fields = dict(kind.fields)
        members = ", ".join(
            f"{literal(name)}, {_member(sql, name, fields.get(name), inner)}"
            for name, inner in target.fields
        )
        return f"IF({sql} IS NULL, NULL, named_struct({members}))"
    if isinstance(kind, Array) and isinstance(target, Array):
        item = f"`|item{sql.count('transform(')}`"
        return f"transform({sql}, {item} -> {converted(item, kind.element, target.element)})"
    if isinstance(kind, MapType) and isinstance(target, MapType) and kind.key == target.key:
        value = converted(_ITEM, kind.value, target.value)
        return f"transform_values({sql}, (`|key`, {_ITEM}) -> {value})"
    if target == STRING and isinstance(kind, Struct | Array | MapType):
        return f"to_json({sql})"
    return f"TRY_CAST({sql} AS {target})"


def holds_void(kind: DataType) -> bool:
    """Whether a part of a type is one of which only NULLs were seen."""
    match kind:
        case Void():
            return True
        case Array(element):
            return holds_void(element)
        case MapType(key, value):
            return holds_void(key) or holds_void(value)
        case Struct(fields):
            return any(holds_void(inner) for _, inner in fields)
        case _:
            return False


def as_void(sql: str, kind: DataType, depth: int = 0) -> str:
    """SQL of a value in which Spark knows no type either where only NULLs were seen.

    There it is stored as text, which an expression would pass on as the type of its result.
    """
    if not holds_void(kind):
        return sql
    match kind:
        case Array(element):
            item = f"`|void{depth}`"
            return f"transform({sql}, {item} -> {as_void(item, element, depth + 1)})"
        case MapType(key, _) if holds_void(key):
            return f"IF({sql} IS NULL, NULL, map())"
        case MapType(_, value):
            item = f"`|void{depth}`"
            inner = as_void(item, value, depth + 1)
            return f"transform_values({sql}, (`|key{depth}`, {item}) -> {inner})"
        case Struct(fields):
            members = ", ".join(
                f"{literal(name)}, {as_void(f'{sql}.{quote(name)}', inner, depth)}"
                for name, inner in fields
            )
            return f"IF({sql} IS NULL, NULL, named_struct({members}))"
        case _:
            return "NULL"


def _member(sql: str, name: str, kind: DataType | None, target: DataType) -> str:
    if kind is None:
        return f"CAST(NULL AS {target})"
    return converted(f"{sql}.{quote(name)}", kind, target)


def misfit(sql: str, made: str, kind: DataType, target: DataType) -> str:
    """SQL that tells whether a value was lost, or changed, when `made` was made of it."""
    lost = f"({sql} IS NOT NULL AND {made} IS NULL)"
    whole = target in (INT, BIGINT) or isinstance(target, Decimal)
    if not whole or isinstance(kind, Struct | Array | MapType):
        return lost
    if kind in (INT, BIGINT, DOUBLE) or isinstance(kind, Decimal):
        return f"({lost} OR coalesce({made} <> {sql}, false))"
    if kind == STRING:
        # Text of a number may have more places than the type.
        return f"({lost} OR coalesce(CAST({made} AS DOUBLE) <> TRY_CAST({sql} AS DOUBLE), false))"
    return lost
