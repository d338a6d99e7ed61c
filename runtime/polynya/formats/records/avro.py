"""Avro object container files with logical types. A record's raw bytes are its JSON text."""

from __future__ import annotations

import lzma
import sys
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import cramjam
import fastavro
from fastavro.schema import SchemaParseException

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.avro_types import record_types
from polynya.formats.records.columnar import as_text, plain
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.values.exact import json_text

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


def open_avro(file: BinaryIO, start: int) -> OpenedFile:
    """Read an Avro file."""
    try:
        reader = fastavro.reader(file)
        types = record_types(reader.writer_schema)
    except DAMAGE as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error
    return OpenedFile(_records(reader, start), types)


def _records(reader: Iterator[Any], start: int) -> Iterator[RawRecord]:
    try:
        for value in islice(reader, start, None):
            record = as_text(value)
            yield json_text(plain(record)).encode(), record
    except DAMAGE as error:
        raise UnreadableFileError(f"damaged: {type(error).__name__} {error}") from error
