"""Rows of an answer: a stream of Arrow batches, and their values as JSON. Needs no Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a statement: their types, and the batches as they come, each read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as JSON values, by the names of their columns."""
    types = {field.name: field.type for field in batch.schema}
    for row in batch.to_pylist():
        yield {name: to_json(value, types[name]) for name, value in row.items()}


def to_json(value: Any, kind: pa.DataType) -> Any:
    """One value of an Arrow type as JSON.

    Instants are ISO 8601 in UTC with `Z`, and wall-clock times have no zone. Decimals and numbers
    that are none are text, binary is lower-case hex, a map is an object.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        # Arrow gives a map as a list of pairs.
        return {
            str(to_json(key, kind.key_type)): to_json(item, kind.item_type) for key, item in value
        }
    if pa.types.is_struct(kind):
        return {field.name: to_json(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return [to_json(item, kind.value_type) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            if value.tzinfo is None:
                return value.isoformat()
            return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case _:
            return str(value)
