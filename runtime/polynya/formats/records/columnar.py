"""Parquet and ORC files through Arrow; the raw bytes of a record are its JSON text.

Spark, Hive and Impala wrote times of 96 bits (INT96) to Parquet for years. Arrow reads them as
64-bit nanoseconds, which turns years before 1677 and after 2262 into other years. They are read as
microseconds instead, which hold every time of a table. A column with a finer time becomes text, and
the typing step then rejects exactly the records with such a time.

In ORC a list of equal items takes a few bytes, whatever its length. Arrow does not expose the
column statistics in the footer, so they are parsed here: they give the number of items before Arrow
decodes a stripe (https://orc.apache.org/specification/ORCv1/).
"""

from __future__ import annotations

import base64
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any, BinaryIO, Final, TypeAlias
from uuid import UUID

import cramjam
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc, parquet

from polynya.formats import limits
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.values.arrow_types import from_arrow
from polynya.formats.values.exact import json_text
from polynya.model.types import DataType

_UNIT: Final = "us"


def has_int96(reader: parquet.ParquetFile) -> bool:
    """Whether a Parquet file has INT96 times, nested ones too."""
    schema = reader.schema
    return any(schema.column(n).physical_type == "INT96" for n in range(len(schema)))


def exact_batches(
    file: BinaryIO,
    rows: int,
    groups: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, or of some of its row groups, with exact INT96 times.

    `columns`: only those of these names that it has.

    Raises what Arrow raises, and ValueError for a nested time that is finer than a microsecond.
    """
    reader = parquet.ParquetFile(file, coerce_int96_timestamp_unit=_UNIT)
    batches = reader.iter_batches(rows, row_groups=groups, columns=columns)
    if not has_int96(reader):
        yield from batches
        return
    # The same once more as nanoseconds, which wrap around: they tell what microseconds leave out.
    fine = parquet.ParquetFile(file).iter_batches(rows, row_groups=groups, columns=columns)
    for batch, nanos in zip(batches, fine, strict=True):
        columns = [_exact(*pair) for pair in zip(batch.columns, nanos.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _exact(column: pa.Array, nanos: pa.Array) -> pa.Array:
    wrapped = column.cast(nanos.type, safe=False)
    if nanos.equals(wrapped):
        return column
    if not pa.types.is_timestamp(column.type):
        raise ValueError("a nested time of 96 bits is finer than a microsecond")
    rest = pc.subtract(nanos.view(pa.int64()), wrapped.view(pa.int64())).to_pylist()
    texts = column.cast(pa.string()).to_pylist()
    return pa.array(
        [
            text if not digits else f"{text}{digits % 2**64:03d}"
            for text, digits in zip(texts, rest, strict=True)
        ],
        pa.string(),
    )


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Kinds of types, as the footer numbers them.
_NESTED: Final = frozenset({10, 11})
_TYPES, _STATISTICS = 4, 7
_KIND, _SUBTYPES = 1, 2
_VALUES, _COLLECTION = 1, 12
_CHILDREN: Final = 3

#: A field of a message: its number, and its value: a number, or bytes.
_Field = tuple[int, "int | bytes"]


def nested_values(reader: orc.ORCFile, file: BinaryIO, size: int) -> int:
    """How many values the lists and maps of an ORC file hold, by its statistics; 0 without them.

    `size` is that of the file, in bytes.
    """
    tail = reader.file_footer_length + reader.file_postscript_length + 1
    if not 0 < reader.file_footer_length <= min(size, limits.HEADER_BYTES):
        return 0
    file.seek(size - tail)
    try:
        footer = _uncompressed(
            file.read(reader.file_footer_length), reader.compression, reader.compression_size
        )
        return _counted(footer)
    except (ValueError, EOFError, zlib.error, zstd.ZstdError, cramjam.DecompressionError):
        # Whoever reads the rows says what is wrong.
        return 0


def _counted(footer: bytes) -> int:
    fields = [(number, value) for number, value in _fields(footer) if isinstance(value, bytes)]
    types = [list(_fields(value)) for number, value in fields if number == _TYPES]
    statistics = [list(_fields(value)) for number, value in fields if number == _STATISTICS]
    counts = [_sum(statistic, _VALUES) for statistic in statistics]
    total = 0
    for type_, own in zip(types, statistics, strict=False):
        if _sum(type_, _KIND) in _NESTED:
            inner = [kind for n, one in type_ if n == _SUBTYPES for kind in _packed(one)]
            total += max(_children(own), *(counts[at] for at in inner if at < len(counts)), 0)
    return total


def _sum(fields: list[_Field], wanted: int) -> int:
    return sum(one for number, one in fields if number == wanted and isinstance(one, int))


def _children(statistics: list[_Field]) -> int:
    """How many children the statistics of a list or a map tell, 0 where they tell none."""
    inner = (one for n, one in statistics if n == _COLLECTION and isinstance(one, bytes))
    return sum(_sum(list(_fields(kind)), _CHILDREN) for kind in inner)


def _packed(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield value
        return
    stream = io.BytesIO(value)
    while (number := _number(stream)) is not None:
        yield number


def _fields(message: bytes) -> Iterator[_Field]:
    """The fields of a message of Protocol Buffers. Raises ValueError."""
    stream = io.BytesIO(message)
    while (key := _number(stream)) is not None:
        number, kind = key >> 3, key & 7
        if number == 0:
            # Zeros behind a block of LZ4, which does not say how long it is.
            return
        if kind == 0:
            value = _number(stream)
            if value is None:
                raise ValueError("a number is cut off")
            yield number, value
        elif kind == 2:
            length = _number(stream)
            yield number, stream.read(min(length or 0, len(message)))
        elif kind in {1, 5}:
            stream.read(8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of kind {kind}")


def _number(stream: BinaryIO) -> int | None:
    """A number of variable length; None at the end."""
    found = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            return None
        found |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return found
    raise ValueError("a number is too long")


def _uncompressed(data: bytes, codec: str, block: int) -> bytes:
    """The content of chunks, each with its length in three bytes before it."""
    if codec in {"UNCOMPRESSED", "NONE"}:
        return data
    found = bytearray()
    at = 0
    while at + 3 <= len(data) and len(found) <= limits.HEADER_BYTES:
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        found += chunk if head & 1 else _expanded(chunk, codec, min(block, limits.HEADER_BYTES))
        at += 3 + (head >> 1)
    return bytes(found)


def _expanded(chunk: bytes, codec: str, most: int) -> bytes:
    match codec:
        case "ZLIB":
            return zlib.decompressobj(-15).decompress(chunk, most)
        case "ZSTD":
            return zstd.ZstdDecompressor().decompress(chunk, most)
        case "LZ4":
            return bytes(cramjam.lz4.decompress_block(chunk, output_len=most))
        case "SNAPPY" if cramjam.snappy.decompress_raw_len(chunk) <= most:
            return bytes(cramjam.snappy.decompress_raw(chunk))
        case _:
            raise ValueError(f"a chunk of {codec} that is too large, or not known")


#: raw bytes, and the record or why it is none
RawRecord: TypeAlias = "tuple[bytes, dict[str, Any] | RecordError]"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """Records from the asked one on; iterating may raise UnreadableFileError."""

    records: Iterator[RawRecord]
    types: Mapping[str, DataType] = field(default_factory=dict)


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
    if sum(max(part, 0) for part in sizes) > limits.content_bytes(size):
        raise limits.refuse_content("a Parquet file", size)
    return reader


def check_parquet(reader: parquet.ParquetFile, size: int) -> None:
    """Refuse a file of `size` bytes with far more columns, rows or values. Raises TooLargeError."""
    metadata, schema = reader.metadata, reader.schema
    limits.check_rows(metadata.num_rows, metadata.num_columns, size)
    nested = [n for n in range(len(schema)) if schema.column(n).max_repetition_level]
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)] if nested else []
    limits.check_nested(sum(group.column(n).num_values for group in groups for n in nested), size)


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
