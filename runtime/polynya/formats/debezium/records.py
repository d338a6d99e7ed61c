"""Debezium records from JSON lines, Avro containers, and messages that a stream landed.

JSON lines may follow the header of a landed batch of a capture, which holds their schemas. Avro
comes from sinks of Kafka Connect as containers, or as keys and values of messages whose schemas a
registry holds by number.

Each Avro record or message becomes the JSON line that Connect's JSON converter would have written,
with its schema. So one reader handles all events, and quarantine holds text that can be read again
without its file. A quarantined message is kept like a message of any stream, with its place in the
source.
"""

from __future__ import annotations

import base64
import copy
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, Final

from fastavro.schema import parse_schema
from typing_extensions import override

from polynya.formats.contents.avro import NumberedSchemas, read_datum
from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoders import registry_at
from polynya.formats.debezium.captured import MARK, CapturedRecords
from polynya.formats.debezium.types import form_of, without_logical_types, wrapper
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.landed import Messages, kept_message, opened_batch
from polynya.formats.records.avro import DAMAGE, check_schema, reader_of
from polynya.formats.records.columnar import RawRecord
from polynya.formats.records.json import open_json, parse_object, parse_value
from polynya.formats.values.exact import json_text
from polynya.model.config.settings import SchemaRegistry as RegistrySettings
from polynya.model.config.stream_content import LandedRegistryAvroContent, RegistryAvroContent
from polynya.model.headers import StreamSource
from polynya.store.schema_registry import RegisteredSchema, SchemaLookup

_AVRO: Final = b"Obj\x01"
_PARQUET: Final = b"PAR1"
#: The columns with the name of the stream, and with the key of a message.
_TOPIC: Final[dict[StreamSource, str]] = {
    "kafka": "hdr__kafka_topic",
    "kinesis": "hdr__kinesis_stream",
}
_KAFKA_KEY, _KINESIS_KEY, _HEADERS = "hdr__kafka_key", "hdr__kinesis_key", "hdr__kafka_headers"


def records_of(
    file: BinaryIO, start: int, path: str = "", access: RegistrySettings | None = None
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


def record_of(file: str, raw: bytes, access: RegistrySettings | None = None) -> RawRecord:
    """A record of a file from its raw bytes: JSON, or what was kept of a message."""
    if is_kept_message(raw):
        try:
            return record_of_message(file, raw, access)
        except (ValueError, KeyError, TypeError) as error:
            return raw, RecordError("bad_record", f"not what was kept of a message: {error}")
    (record,) = open_json(io.BytesIO(raw), 0).records
    return record


def record_of_message(file: str, raw: bytes, access: RegistrySettings | None) -> RawRecord:
    """The record of a message out of quarantine. Raises ValueError for other bytes."""
    return next(LandedRecords(kept_message(file, raw).messages, 0, access))


def is_kept_message(raw: bytes) -> bool:
    """Whether these bytes are what was kept of a message: a line of JSON, and then the message."""
    return b"\n" in raw


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


class LandedRecords(Iterator[RawRecord]):
    """The records of the messages from the `start`-th on.

    Iterating raises DependencyError when a schema registry does not answer.
    """

    def __init__(
        self, messages: Messages, start: int = 0, access: RegistrySettings | None = None
    ) -> None:
        self._messages = messages
        content = messages.content
        #: Reads the bytes of a key or a value, perhaps with its schema.
        self._value: Callable[[bytes], Any] = parse_value
        if isinstance(content, RegistryAvroContent | LandedRegistryAvroContent):
            self._value = ConnectMessages(registry_at(access, content)).of
        self._records = self._from(start)

    @classmethod
    def opened(
        cls, file: BinaryIO, path: str, start: int, access: RegistrySettings | None
    ) -> LandedRecords:
        """Those of a landed batch.

        Raises:
            UnreadableFileError: it is not a landed batch, or damaged.
            OperationError: POLYNYA-STR-020, a newer Polynya wrote it.
        """
        footer, reader = opened_batch(file, path)
        return cls(Messages.of(path, footer, reader), start, access)

    @override
    def __next__(self) -> RawRecord:
        return next(self._records)

    def whole(self, raw: bytes, offset: int) -> bytes:
        """What the message at an offset can be read again by."""
        del raw
        return self._messages.raw(offset)

    def _from(self, start: int) -> Iterator[RawRecord]:
        messages = self._messages
        headers = {name: column[start:].to_pylist() for name, column in messages.headers.items()}
        is_expanded = messages.content.may_be_compressed
        for at, value in enumerate(messages.values[start:].to_pylist()):
            message = value
            try:
                if message is not None and is_expanded:
                    message = expanded(message)
                record = self._record(message, {name: one[at] for name, one in headers.items()})
            except RecordError as error:
                yield message or b"", error
            else:
                yield message or b"", record

    def _record(self, message: bytes | None, headers: dict[str, Any]) -> dict[str, Any]:
        source = self._messages.source
        if source in {"files", "http"}:
            # A line or a document, which may have a key and headers beside its value.
            return parse_object(message or b"")
        return {
            "key": self._key(headers),
            "value": None if message is None else self._value(message),
            "headers": _pairs(headers.get(_HEADERS)),
            "destination": headers[_TOPIC[source]],
        }

    def _key(self, headers: dict[str, Any]) -> Any:
        """The key of a message; text that is none of its converter's stands for itself."""
        text = headers.get(_KAFKA_KEY)
        key = None if text is None else base64.b64decode(text)
        if _KINESIS_KEY in headers:
            # Debezium Server writes the key there; whatever stands there otherwise is none.
            key = str(headers[_KINESIS_KEY]).encode()
        if key is None:
            return None
        try:
            return self._value(key)
        except RecordError as error:
            if error.rule not in {"bad_json", "bad_avro"}:
                raise RecordError(error.rule, f"the key: {error.error}") from None
            return key.decode("utf-8", "replace")


def _pairs(text: str | None) -> list[list[Any]]:
    """Names and values of the headers of a Kafka record."""
    pairs = [] if text is None else json.loads(text)
    return [[pair["key"], _text(pair["value"])] for pair in pairs]


def _text(value: str | None) -> str | None:
    return None if value is None else base64.b64decode(value).decode("utf-8", "replace")


class ConnectMessages:
    """Reads Avro keys and values by the schemas of one registry."""

    def __init__(self, registry: SchemaLookup) -> None:
        self._schemas = NumberedSchemas(registry, _Schema.of)

    def of(self, message: bytes) -> Any:
        """The value in a message, with its schema. Raises as `NumberedSchemas.of`."""
        schema, datum = self._schemas.of(message)
        return schema.encode(read_datum(datum, schema.parsed))


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema as values are read with it, and what makes Connect's JSON of them."""

    parsed: Any
    encode: Callable[[Any], Any]

    @classmethod
    def of(cls, found: RegisteredSchema) -> _Schema:
        """Raises what parsing raises, also ValueError for one that Connect does not write."""
        if found.kind.upper() != "AVRO":
            raise ValueError(f"it is of type {found.kind}, not Avro")
        if found.references:
            raise ValueError("it refers to other schemas")
        schema = parse_schema(json.loads(found.text))
        check_schema(schema, {})
        form = form_of(schema)
        plain = copy.deepcopy(schema)
        # Values stay as Connect wrote them: what no calendar holds spoils its record only.
        without_logical_types(plain)
        encode = wrapper(form) if form.schema["type"] == "struct" else form.encode
        return cls(plain, encode)
