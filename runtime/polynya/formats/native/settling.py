"""Types of columns that were read in parts: the same as if one batch had held all values.

A batch gives a new column the type of its first value, widened as far as its numbers need
(`polynya.formats.values.columns`). Parts joined in reading order give the same type, except for a
few mixtures whose type depends on all values together. Those are not joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polynya.formats.batch import DatasetBatch
from polynya.formats.values.buffer import RecordBuffer
from polynya.model.types import (
    BIGINT,
    DOUBLE,
    EMPTY,
    STRING,
    Array,
    DataType,
    Decimal,
    Struct,
    Void,
)

_TYPE_RULES = frozenset({"type_mismatch", "bad_number", "bad_value"})
_EXACT_INTEGERS = 1 << 53
_BIGINT_DIGITS = 19


def joined(before: DataType, here: DataType) -> DataType | None:
    """The type of a column from its values so far and some more; None when these cannot tell."""
    if before == here or isinstance(here, Void):
        return before
    if isinstance(before, Void):
        return here
    if EMPTY in {before, here} and STRING in {before, here}:
        return None
    if _is_number(before) and _is_number(here):
        return _joined_numbers(before, here)
    if isinstance(before, Struct | Array) and type(before) is type(here):
        return _nested(before, here)
    # The first value decides what a column is made of.
    return before


def _joined_numbers(before: DataType, here: DataType) -> DataType | None:
    match before, here:
        case Decimal(), Decimal():
            # The scale that holds most of the numbers: only all of them together tell.
            return None
        case Decimal(precision, scale), _:
            return before if here == BIGINT and scale <= precision - _BIGINT_DIGITS else None
        case _, Decimal(precision, scale):
            return here if before == BIGINT and scale <= precision - _BIGINT_DIGITS else None
    return DOUBLE


def _nested(before: DataType, here: DataType) -> DataType | None:
    """Containers join where the one only has fields that the other lacks."""
    match before, here:
        case Array(left), Array(right):
            element = _inner(left, right)
            return None if element is None else Array(element)
        case Struct(left), Struct(right):
            fields = dict(left)
            for name, kind in right:
                both = _inner(fields.get(name, Void()), kind)
                if both is None:
                    return None
                fields[name] = both
            return Struct(tuple(fields.items()))
    return None


def _inner(left: DataType, right: DataType) -> DataType | None:
    if left == right or isinstance(right, Void):
        return left
    return right if isinstance(left, Void) else _nested(left, right)


def _is_number(kind: DataType) -> bool:
    return kind in {BIGINT, DOUBLE} or isinstance(kind, Decimal)


def unforeseen(batch: DatasetBatch, schema: Mapping[str, DataType]) -> str | None:
    """Why records that were read one by one do not go into columns that were settled before."""
    for name, kind in batch.schema.items():
        if schema.get(name) != kind:
            return f"column {name} is {kind}, and {schema.get(name, 'no such column')} was expected"
    return f"the columns change: {batch.changes[0]}" if batch.changes else None


def has_say(
    batch: DatasetBatch, records: Sequence[Mapping[str, Any]], schema: Mapping[str, DataType]
) -> bool:
    """Whether records that were read as columns of `schema` might have given it other types."""
    if dict(batch.schema) != dict(schema):
        return True
    if any(record.rule in _TYPE_RULES for record in batch.rejected):
        return True
    return any(holds_untold(records, name, kind) for name, kind in schema.items())


def records_with_say(batch: DatasetBatch, buffer: RecordBuffer) -> list[Mapping[str, Any]]:
    """The records of a batch but for those that no other types of columns would save."""
    gone = {record.offset for record in batch.rejected if record.rule not in _TYPE_RULES}
    pairs = zip(buffer.offsets, buffer.records, strict=True)
    return [record for offset, record in pairs if offset not in gone]


def holds_untold(records: Sequence[Mapping[str, Any]], name: str, kind: DataType) -> bool:
    """Whether a column has values whose type only all values of the column together tell.

    Integers among doubles may not be exact ones, and an empty object may be one of objects.
    """
    values = (record.get(name) for record in records)
    if kind == DOUBLE:
        return any(type(value) is int and abs(value) > _EXACT_INTEGERS for value in values)
    return kind == STRING and any(type(value) is dict for value in values)
