"""Parquet and ORC through Arrow. A record's raw bytes are its JSON text (`plain`)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.landing.arrow_types import from_arrow
from polynya.landing.errors import UnreadableFileError
from polynya.landing.exact import json_text
from polynya.landing.formats.base import OpenedFile, RawRecord
from polynya.model.datatypes import DataType

_BATCH_ROWS = 16_384


def open_parquet(file: BinaryIO, start: int) -> OpenedFile:
    """Read a Parquet file."""
    try:
        reader = parquet.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    return _opened(reader.schema_arrow, lambda: reader.iter_batches(_BATCH_ROWS), start)


def open_orc(file: BinaryIO, start: int) -> OpenedFile:
    """Read an ORC file."""
    try:
        reader = orc.ORCFile(file)
        schema = reader.schema
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole ORC file: {error}") from error

    def stripes() -> Iterator[pa.RecordBatch]:
        for index in range(reader.nstripes):
            yield reader.read_stripe(index)

    return _opened(schema, stripes, start)


def _opened(
    schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], start: int
) -> OpenedFile:
    if len(set(schema.names)) != len(schema.names):
        raise UnreadableFileError("two columns of the file have the same name")
    try:
        types: dict[str, DataType] = {field.name: from_arrow(field.type) for field in schema}
    except ValueError as error:
        raise UnreadableFileError(f"a column has a type that no table can hold: {error}") from error
    return OpenedFile(_records(batches, start), types)


def _records(batches: Callable[[], Iterator[pa.RecordBatch]], start: int) -> Iterator[RawRecord]:
    skip = start
    try:
        for batch in batches():
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            rows = batch.slice(skip)
            skip = 0
            names = rows.schema.names
            columns = [lossless(column).to_pylist() for column in rows.columns]
            for values in zip(*columns, strict=True):
                record = dict(zip(names, values, strict=True))
                yield json_text(plain(record)).encode(), record
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"damaged: {error}") from error


def lossless(column: pa.Array) -> pa.Array:
    """The column with types that Python has: no nanoseconds, times of day or dictionaries."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return lossless(column.dictionary_decode())
    if pa.types.is_timestamp(kind):
        return _microseconds(column)
    if pa.types.is_struct(kind) and column.null_count == 0 and len(kind):
        children = [lossless(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, names=[field.name for field in kind])
    if pa.types.is_time(kind):
        return column.cast(pa.string())
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column.cast(pa.float32()) if pa.types.is_float16(kind) else column


def _microseconds(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        # As text the exact ones still arrive, and the finer ones are refused by name.
        return column.cast(pa.string())


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
