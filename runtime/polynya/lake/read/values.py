"""Rows of an answer: a stream of Arrow batches, and their values as JSON. Needs no Spark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    for row in batch.to_pylist():
        yield {name: to_json(value) for name, value in row.items()}


def to_json(value: Any) -> Any:
    """One value of a row as JSON. Source: issue text and docs/reference/cli.md."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo is not None else value
            return moment.replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping() | list():
            return _collection(value)
        case _:
            return str(value)


def _collection(value: Mapping[Any, Any] | list[Any]) -> Any:
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    # Arrow gives a map as a list of pairs.
    if value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return {str(to_json(key)): to_json(item) for key, item in value}
    return [to_json(item) for item in value]
