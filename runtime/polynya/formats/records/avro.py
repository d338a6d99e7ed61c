"""Avro object container files with logical types. A record's raw bytes are its JSON text."""

from __future__ import annotations

import io
import lzma
import sys
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

import cramjam
import fastavro
from fastavro.schema import SchemaParseException

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.avro_guard import OF_A_FILE, Most, check_schema, checked, read_header
from polynya.formats.records.avro_types import record_types
from polynya.formats.records.columnar import as_text, plain
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.values.exact import json_text
from polynya.model.datatypes import DataType

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: What a damaged file makes the decoder and its codecs raise; it has no exception of its own.
DAMAGE = (
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    OSError,
    RuntimeError,
    UnicodeError,
    zlib.error,
    lzma.LZMAError,
    cramjam.DecompressionError,
    zstd.ZstdError,
    SchemaParseException,
)


_SYNC_BYTES = 16
#: Two numbers of at most ten bytes stand before a block.
_NUMBERS_BYTES = 20


def open_avro(file: BinaryIO, start: int) -> OpenedFile:
    """Read an Avro file."""
    types, values = opened_avro(file)
    return OpenedFile(records_of_values(islice(values, start, None)), types)


def opened_avro(file: BinaryIO) -> tuple[Mapping[str, DataType], Iterator[Any]]:
    """The types that an Avro file declares, and its records as the library decodes them.

    Raises UnreadableFileError, as reading the records may.
    """
    try:
        reader = reader_of(file)
        types = record_types(reader.writer_schema)
    except DAMAGE as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error
    return types, _decoded(reader)


def reader_of(file: BinaryIO, most: Most = OF_A_FILE) -> Any:
    """The library's reader of a container whose blocks are checked before they are decoded.

    Raises what DAMAGE names, and TooLargeError; reading the records does, too.
    """
    reader = fastavro.reader(checked(file, read_header(file), most))
    check_schema(reader.writer_schema, {})
    return reader


def _decoded(reader: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from reader
    except DAMAGE as error:
        raise _damaged(error) from error


def records_of_values(values: Iterator[Any]) -> Iterator[RawRecord]:
    """Decoded records with their JSON text. Raises UnreadableFileError."""
    try:
        for value in values:
            record = as_text(value)
            yield json_text(plain(record)).encode(), record
    except DAMAGE as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> UnreadableFileError:
    return UnreadableFileError(f"damaged: {type(error).__name__} {error}")


def header_of(file: BinaryIO) -> bytes:
    """The header of a file, which ends with the mark that ends each block.

    Raises UnreadableFileError.
    """
    file.seek(0)
    try:
        return read_header(file).raw
    except ValueError as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error


def blocks_of(file: BinaryIO, header: bytes, begin: int) -> Iterator[tuple[int, int, int]]:
    """Where each block from one on begins, its records and its bytes; nothing is decoded.

    From a block on that is damaged all that follows is one block: reading it says what is wrong.
    """
    mark = header[-_SYNC_BYTES:]
    size = file.seek(0, io.SEEK_END)
    while begin < size:
        file.seek(begin)
        numbers = io.BytesIO(file.read(_NUMBERS_BYTES))
        records, length = _number(numbers), _number(numbers)
        end = begin + numbers.tell() + length + _SYNC_BYTES
        file.seek(max(end - _SYNC_BYTES, begin))
        if records < 0 or length < 0 or file.read(_SYNC_BYTES) != mark:
            yield begin, 1, size - begin
            return
        yield begin, records, end - begin
        begin = end


def _number(stream: BinaryIO) -> int:
    """A zigzag number of variable length; -1 when it is cut off."""
    found = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            return -1
        found |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (found >> 1) ^ -(found & 1)
    return -1
