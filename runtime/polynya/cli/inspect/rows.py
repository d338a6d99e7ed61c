"""Rows of a statement as a table, JSON lines, CSV or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

from rich.table import Table
from rich.text import Text

from polynya.cli.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from polynya.lake.read.values import Answer

#: Rows of one row group of a Parquet file.
_GROUP: Final = 100_000


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def as_table(answer: Answer, most: int | None) -> tuple[Table | str, bool]:
    """The first `most` rows for people, and whether there are more."""
    table = Table(*answer.schema.names)
    for batch in answer.batches:
        types = [column.type for column in batch.columns]
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            if table.row_count == most:
                return table, True
            table.add_row(*map(_cell, row, types))
    return (table if table.row_count else "no rows"), False


def write_csv(answer: Answer, out: TextIO) -> None:
    """Write a header line and the rows. NULL is an empty field, empty text is `""`.

    What has no plain text, such as times, binary and nested values, is written as in JSON.
    """
    # Start-up time: pyarrow.
    import pyarrow as pa
    from pyarrow import csv

    schema = pa.schema([(field.name, _plain(field.type)) for field in answer.schema])
    batches = (_plain_batch(batch, schema) for batch in answer.batches)
    for batch, has_header in _first_and_rest(batches, schema):
        text = io.BytesIO()
        csv.write_csv(batch, text, csv.WriteOptions(include_header=has_header))
        content = text.getvalue().decode("utf-8")
        # A program gets the values as they are.
        out.write(visible(content, out.encoding) if out.isatty() else content)


def write_parquet(answer: Answer, out: BinaryIO) -> None:
    """Write one Parquet file with the types of the rows."""
    # Start-up time: pyarrow.
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetWriter(out, answer.schema) as writer:
        group: list[pa.RecordBatch] = []
        for batch in answer.batches:
            group.append(batch)
            if sum(one.num_rows for one in group) >= _GROUP:
                writer.write_table(pa.Table.from_batches(group, answer.schema))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group, answer.schema))


def _cell(value: object, kind: pa.DataType) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(_text(value, kind))


def _text(value: object, kind: pa.DataType) -> str:
    # Start-up time: pyarrow.
    from polynya.lake.read.values import to_json

    simple = to_json(value, kind)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type itself if Arrow writes it as people expect, else text."""
    import pyarrow as pa

    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return kind if is_plain else pa.string()


def _plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns: list[Any] = []
    for column, field in zip(batch.columns, schema, strict=True):
        if column.type == field.type:
            columns.append(column)
        else:
            values, kind = column.to_pylist(), column.type
            texts = [None if value is None else _text(value, kind) for value in values]
            columns.append(pa.array(texts, pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _first_and_rest(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Each batch, and whether it is the first; an empty one if there is none."""
    import pyarrow as pa

    first = next(batches, pa.RecordBatch.from_pylist([], schema))
    yield first, True
    for batch in batches:
        yield batch, False
