"""The records of a file of a capture, told by its first bytes.

It holds JSON lines, an Avro container, or messages that a stream landed. Lines may follow a header
that Polynya's own captures write, which has their schemas.
Sinks of Kafka Connect write Avro. Each of its records becomes the JSON line that Connect's own
converter would have written, schema included; so there is one way to read an event, and quarantine
holds text that can be read again by itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO, Final

from polynya.formats.debezium.captured.batch import MARK
from polynya.formats.debezium.captured.lines import CapturedRecords
from polynya.formats.debezium.connect_avro import form_of, without_logical_types, wrapper
from polynya.formats.debezium.landed.records import (
    LandedRecords,
    is_kept_message,
    record_of_message,
)
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.avro import DAMAGE, reader_of
from polynya.formats.records.json_lines import open_json
from polynya.formats.records.opened import RawRecord
from polynya.formats.values.exact import json_text
from polynya.model.config.delivery import SchemaRegistry

_AVRO: Final = b"Obj\x01"
_PARQUET: Final = b"PAR1"


def records_of(
    file: BinaryIO, start: int, path: str = "", access: SchemaRegistry | None = None
) -> Iterator[RawRecord]:
    """The records from the `start`-th on; iterating may raise UnreadableFileError.

    `path` is where an error says that they are, `access` the registry to ask instead of the one
    that a landed batch names.
    """
    head = file.read(len(MARK))
    file.seek(0)
    if head.startswith(_AVRO):
        return _avro_lines(file, start)
    if head.startswith(_PARQUET):
        return LandedRecords.opened(file, path, start, access)
    if head == MARK:
        return CapturedRecords(file, path, start)
    return open_json(file, start).records


def record_of(file: str, raw: bytes, access: SchemaRegistry | None = None) -> RawRecord:
    """A record of a file from its raw bytes: JSON, or what was kept of a message."""
    if is_kept_message(raw):
        try:
            return record_of_message(file, raw, access)
        except (ValueError, KeyError, TypeError) as error:
            return raw, RecordError("bad_record", f"not what was kept of a message: {error}")
    (record,) = open_json(io.BytesIO(raw), 0).records
    return record


def _avro_lines(file: BinaryIO, start: int) -> Iterator[RawRecord]:
    """The records from the `start`-th on. Raises UnreadableFileError, also while iterating."""
    try:
        reader = reader_of(file)
        line = _line_of(reader.writer_schema)
        # The decoder reads by this very object: values stay as Connect wrote them, so that one
        # that no calendar holds spoils its record and not the file.
        without_logical_types(reader.writer_schema)
    except DAMAGE as error:
        raise UnreadableFileError(f"not a whole Avro file of events: {error}") from error
    return _records(reader, line, start)


def _records(
    reader: Iterator[Any], line: Callable[[Any], dict[str, Any]], start: int
) -> Iterator[RawRecord]:
    try:
        for value in islice(reader, start, None):
            record = line(value)
            yield json_text(record).encode(), record
    except DAMAGE as error:
        raise UnreadableFileError(f"damaged: {type(error).__name__} {error}") from error


def _line_of(schema: Any) -> Callable[[Any], dict[str, Any]]:
    """How a record of the file becomes a line: a bare value, or a value beside key and headers."""
    form = form_of(schema)
    if form.schema["type"] != "struct":
        raise ValueError("the file does not hold records")
    value = form.fields.get("value")
    if value is None or "op" in form.fields or value.schema["type"] != "struct":
        return wrapper(form)
    key = form.fields.get("key")
    is_message = (key is not None and key.schema["type"] == "struct") or "headers" in form.fields
    if not is_message and not any(name == "op" or name.startswith("__") for name in value.fields):
        # A row whose columns are called like the parts of a message.
        return wrapper(form)
    parts = {
        name: wrapper(part) if part.schema["type"] == "struct" else part.encode
        for name, part in form.fields.items()
    }
    return lambda record: {name: encode(record[name]) for name, encode in parts.items()}
