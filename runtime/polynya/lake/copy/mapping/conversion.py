"""A value as one of another type, in SQL: exactly, or not at all."""

from __future__ import annotations

from polynya.model.contract.identifiers import literal, quote
from polynya.model.datatypes import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
)

_ITEM = "`|item`"


def converted(sql: str, kind: DataType, target: DataType) -> str:
    """SQL of a value, that has a type, as one of another type: NULL where it is none.

    Structs are brought over field by field, by their names.
    """
    if kind == target or isinstance(target, Void):
        return sql
    if isinstance(kind, Void):
        return f"CAST(NULL AS {target})"
    if isinstance(kind, Struct) and isinstance(target, Struct):
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
