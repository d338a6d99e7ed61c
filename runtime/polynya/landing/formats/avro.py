"""Avro object container files with logical types. A record's raw bytes are its JSON text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import time
from itertools import islice
from typing import Any, BinaryIO
from uuid import UUID

import fastavro

from polynya.landing.errors import UnreadableFileError
from polynya.landing.exact import json_text
from polynya.landing.formats.avro_types import record_types
from polynya.landing.formats.base import OpenedFile, RawRecord
from polynya.landing.formats.columnar import plain

#: What a damaged file makes the decoder raise; it has no exception of its own.
_DAMAGE = (
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    OSError,
    UnicodeError,
)


def open_avro(file: BinaryIO, start: int) -> OpenedFile:
    """Read an Avro file."""
    try:
        reader = fastavro.reader(file)
        types = record_types(reader.writer_schema)
    except (*_DAMAGE, RuntimeError) as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error
    return OpenedFile(_records(reader, start), types)


def _records(reader: Iterator[Any], start: int) -> Iterator[RawRecord]:
    try:
        for value in islice(reader, start, None):
            record = _python(value)
            yield json_text(plain(record)).encode(), record
    except _DAMAGE as error:
        raise UnreadableFileError(f"damaged: {type(error).__name__} {error}") from error


def _python(value: Any) -> Any:
    """Times of day and UUIDs as text, everything else as it is."""
    if isinstance(value, dict):
        return {name: _python(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_python(inner) for inner in value]
    if isinstance(value, time | UUID):
        return str(value)
    return value
