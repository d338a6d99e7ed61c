"""Rows of an answer: a stream of Arrow batches, as such, as JSON and as CSV. Needs no Spark."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import csv


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


def to_text(value: Any, kind: pa.DataType) -> str:
    """One value that is not NULL as text: what has no plain text is written as in JSON."""
    simple = to_json(value, kind)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def csv_parts(answer: Answer) -> Iterator[bytes]:
    """A header line and the rows as CSV in UTF-8. NULL is an empty field, empty text is `""`."""
    schema = pa.schema([(field.name, _plain(field.type)) for field in answer.schema])
    batches = (_plain_batch(batch, schema) for batch in answer.batches)
    first = next(batches, pa.RecordBatch.from_pylist([], schema))
    has_header = True
    for batch in chain([first], batches):
        text = io.BytesIO()
        csv.write_csv(batch, text, csv.WriteOptions(include_header=has_header))
        yield text.getvalue()
        has_header = False


def arrow_parts(answer: Answer) -> Iterator[bytes]:
    """The rows as a stream of Arrow's IPC format."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, answer.schema) as writer:
        for batch in answer.batches:
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type itself if Arrow writes it as people expect, else text."""
    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return kind if is_plain else pa.string()


def _plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns: list[Any] = []
    for column, field in zip(batch.columns, schema, strict=True):
        if column.type == field.type:
            columns.append(column)
        else:
            values, kind = column.to_pylist(), column.type
            texts = [None if value is None else to_text(value, kind) for value in values]
            columns.append(pa.array(texts, pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
