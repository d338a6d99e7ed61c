"""The messages of a landed batch as records of a capture.

Key, value and headers of a message become the line that the connector would have written to a file,
so there is one way to read an event. A message that is quarantined is kept as those of all streams
are, with its place in the source.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Protocol

from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoders import registry_at
from polynya.formats.debezium.landed.connect_messages import ConnectMessages
from polynya.formats.errors import RecordError
from polynya.formats.landed.batch import opened_batch
from polynya.formats.landed.messages import Messages, kept_message
from polynya.formats.records.json_text import parse_object, parse_value
from polynya.formats.records.opened import RawRecord
from polynya.model.config.delivery import SchemaRegistry
from polynya.model.config.streaming.content import LandedRegistryAvroContent, RegistryAvroContent
from polynya.model.contract.stream_headers import StreamSource

#: The columns with the name of the stream, and with the key of a message.
_TOPIC: Final[dict[StreamSource, str]] = {
    "kafka": "hdr__kafka_topic",
    "kinesis": "hdr__kinesis_stream",
}
_KAFKA_KEY, _KINESIS_KEY, _HEADERS = "hdr__kafka_key", "hdr__kinesis_key", "hdr__kafka_headers"


class _Values(Protocol):
    """Reads the bytes of a key or a value."""

    def of(self, message: bytes) -> Any:
        """What they hold, perhaps with its schema. Raises RecordError."""
        ...


class _Json:
    """Keys and values of a JSON converter."""

    def of(self, message: bytes) -> Any:
        """See `_Values`."""
        return parse_value(message)


class LandedRecords(Iterator[RawRecord]):
    """The records of the messages from the `start`-th on.

    Iterating raises DependencyError when a schema registry does not answer.
    """

    def __init__(
        self, messages: Messages, start: int = 0, access: SchemaRegistry | None = None
    ) -> None:
        self._messages = messages
        content = messages.content
        self._values: _Values = _Json()
        if isinstance(content, RegistryAvroContent | LandedRegistryAvroContent):
            self._values = ConnectMessages(registry_at(access, content))
        self._records = self._from(start)

    @classmethod
    def opened(
        cls, file: BinaryIO, path: str, start: int, access: SchemaRegistry | None
    ) -> LandedRecords:
        """Those of a landed batch.

        Raises:
            UnreadableFileError: it is no landed batch, or damaged.
            OperationError: POLYNYA-STR-020, a newer Polynya wrote it.
        """
        footer, reader = opened_batch(file, path)
        return cls(Messages.of(path, footer, reader), start, access)

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
        if source == "files":
            # A line or a document, which may have a key and headers beside its value.
            return parse_object(message or b"")
        return {
            "key": self._key(headers),
            "value": None if message is None else self._values.of(message),
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
            return self._values.of(key)
        except RecordError as error:
            if error.rule not in {"bad_json", "bad_avro"}:
                raise RecordError(error.rule, f"the key: {error.error}") from None
            return key.decode("utf-8", "replace")


def record_of_message(file: str, raw: bytes, access: SchemaRegistry | None) -> RawRecord:
    """The record of a message out of quarantine. Raises ValueError for other bytes."""
    return next(LandedRecords(kept_message(file, raw).messages, 0, access))


def is_kept_message(raw: bytes) -> bool:
    """Whether these bytes are what was kept of a message: a line of JSON, and then the message."""
    return b"\n" in raw


def _pairs(text: str | None) -> list[list[Any]]:
    """Names and values of the headers of a Kafka record."""
    pairs = [] if text is None else json.loads(text)
    return [[one["key"], _text(one["value"])] for one in pairs]


def _text(value: str | None) -> str | None:
    return None if value is None else base64.b64decode(value).decode("utf-8", "replace")
