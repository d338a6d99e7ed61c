"""Parquet and ORC through Arrow. A record's raw bytes are its JSON text (`plain`)."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from typing import Any, BinaryIO
from uuid import UUID

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats import limits
from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.int96 import exact_batches
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.records.orc_footer import nested_values
from polynya.formats.values.arrow_types import from_arrow
from polynya.formats.values.exact import json_text
from polynya.model.datatypes import DataType

_BATCH_ROWS = 16_384


def open_parquet(file: BinaryIO, start: int) -> OpenedFile:
    """Read a Parquet file."""
    try:
        reader = opened_parquet(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    return _opened(reader.schema_arrow, lambda: exact_batches(file, _BATCH_ROWS), start)


def opened_parquet(file: BinaryIO) -> parquet.ParquetFile:
    """A Parquet file that does not say it holds far more than its bytes can.

    Raises TooLargeError, and what Arrow raises.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    reader = parquet.ParquetFile(file)
    check_parquet(reader, size)
    sizes = (reader.metadata.row_group(n).total_byte_size for n in range(reader.num_row_groups))
    if sum(max(one, 0) for one in sizes) > limits.content_bytes(size):
        raise limits.refuse_content("a Parquet file", size)
    return reader


def check_parquet(reader: parquet.ParquetFile, size: int) -> None:
    """Refuse a file of `size` bytes with far more columns, rows or values. Raises TooLargeError."""
    metadata, schema = reader.metadata, reader.schema
    limits.check_rows(metadata.num_rows, metadata.num_columns, size)
    nested = [n for n in range(len(schema)) if schema.column(n).max_repetition_level]
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)] if nested else []
    limits.check_nested(sum(one.column(n).num_values for one in groups for n in nested), size)


def open_orc(file: BinaryIO, start: int) -> OpenedFile:
    """Read an ORC file."""
    reader = opened_orc(file)

    def stripes() -> Iterator[pa.RecordBatch]:
        for number in range(reader.nstripes):
            stripe = reader.read_stripe(number)
            for first in range(0, stripe.num_rows, _BATCH_ROWS):
                yield stripe.slice(first, _BATCH_ROWS)

    return _opened(reader.schema, stripes, start)


def opened_orc(file: BinaryIO) -> orc.ORCFile:
    """Open an ORC file. Raises UnreadableFileError."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        reader = orc.ORCFile(file)
        columns, rows = sum(map(_leaves, reader.schema.types)), reader.nrows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole ORC file: {error}") from error
    limits.check_rows(rows, columns, size)
    if any(pa.types.is_nested(kind) for kind in reader.schema.types):
        limits.check_nested(nested_values(reader, file, size), size)
    return reader


def _leaves(kind: pa.DataType) -> int:
    """How many columns of a file a column takes, at all depths."""
    inner = (kind.field(index).type for index in range(kind.num_fields))
    return max(sum(map(_leaves, inner)), 1)


def column_types(schema: pa.Schema) -> dict[str, DataType]:
    """The types of the columns of a file. Raises UnreadableFileError: no table can hold them."""
    try:
        if len(set(schema.names)) != len(schema.names):
            raise UnreadableFileError("two columns of the file have the same name")
        return {field.name: from_arrow(field.type) for field in schema}
    except UnicodeDecodeError as error:
        raise UnreadableFileError("the name of a column is not UTF-8") from error
    except ValueError as error:
        raise UnreadableFileError(f"a column has a type that no table can hold: {error}") from error


def _opened(
    schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], start: int
) -> OpenedFile:
    types = column_types(schema)
    return OpenedFile(_records(batches, start), types)


def _records(batches: Callable[[], Iterator[pa.RecordBatch]], start: int) -> Iterator[RawRecord]:
    skip = start
    try:
        for batch in batches():
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            yield from records_of(batch.slice(skip))
            skip = 0
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"damaged: {error}") from error


def records_of(rows: pa.RecordBatch) -> Iterator[RawRecord]:
    """The records of Arrow columns. Raises ValueError for a text that is not UTF-8."""
    names = rows.schema.names
    columns = [_values(column) for column in rows.columns]
    for values in zip(*columns, strict=True):
        record = dict(zip(names, values, strict=True))
        yield json_text(plain(record)).encode(), record


def _values(column: pa.Array) -> list[Any]:
    """The values as Python types, without loss."""
    try:
        values = column.cast(_python_type(column.type)).to_pylist()
    except (ValueError, OverflowError):
        # Finer than a microsecond, or no day of the calendar. As text the exact ones still arrive,
        # and the others are refused by name.
        values = column.cast(_python_type(column.type, times_as_text=True)).to_pylist()
    return [as_text(value) for value in values] if _holds_uuid(column.type) else values


def _python_type(kind: pa.DataType, *, times_as_text: bool = False) -> pa.DataType:
    def inner(part: pa.DataType) -> pa.DataType:
        return _python_type(part, times_as_text=times_as_text)

    types = pa.types
    if types.is_dictionary(kind):
        return inner(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, inner(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_type))
    if types.is_map(kind):
        return pa.map_(inner(kind.key_type), inner(kind.item_type))
    if types.is_time(kind) or (times_as_text and (types.is_date(kind) or types.is_timestamp(kind))):
        return pa.string()
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_duration(kind):
        return pa.int64()
    return pa.float32() if types.is_float16(kind) else kind


def _holds_uuid(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.UuidType):
        return True
    return any(_holds_uuid(kind.field(index).type) for index in range(kind.num_fields))


def as_text(value: Any) -> Any:
    """A value with its times of day and UUIDs as text, also those inside."""
    if isinstance(value, dict):
        return {name: as_text(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_text(inner) for inner in value]
    return str(value) if isinstance(value, time | UUID) else value


def plain(value: Any) -> Any:
    """A value as JSON can spell it, so that its declared type reads it back: binary as base64."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value
