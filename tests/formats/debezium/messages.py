"""Events of a capture as the messages of a topic, and as landed batches of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from polynya.formats.landed import SCHEMAS, Counts, StreamFooter, batch_name, write_batch
from polynya.model.config.stream_content import landed_content
from polynya.model.headers import StreamSource

AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Sent:
    """A message as a connector sends it."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    topic: str = "pg.w.t"


def sent(event: dict[str, Any], topic: str = "pg.w.t") -> Sent:
    """A line of a capture as the message that Connect's JSON converters make of it."""
    value, key = event["value"], event.get("key")
    headers = [(name, text.encode()) for name, text in event.get("headers") or ()]
    return Sent(
        None if value is None else json.dumps(value).encode(),
        None if key is None else json.dumps(key).encode(),
        headers,
        event.get("destination", topic),
    )


@dataclass
class LandedTopic:
    """Landed batches of Kafka, by path."""

    folder: str = "cdc/t"
    content: dict[str, Any] = field(default_factory=lambda: {"type": "json"})
    files: dict[str, bytes] = field(default_factory=dict)
    _offset: int = 0

    def land(self, *messages: Sent | dict[str, Any]) -> str:
        """One more batch; its path."""
        some = [one if isinstance(one, Sent) else sent(one) for one in messages]
        number = len(self.files) + 1
        path = f"{self.folder}/{batch_name(number)}"
        self.files[path] = write_batch(self._footer(number, len(some)), self._rows(some))
        self._offset += len(some)
        return path

    def _rows(self, messages: Sequence[Sent]) -> pa.Table:
        columns = {
            "hdr__kafka_topic": [one.topic for one in messages],
            "hdr__kafka_partition": [0] * len(messages),
            "hdr__kafka_offset": list(range(self._offset, self._offset + len(messages))),
            "hdr__kafka_key": [_base64(one.key) for one in messages],
            "hdr__kafka_headers": [_written(one.headers) for one in messages],
            "hdr__kafka_timestamp": [AT] * len(messages),
            "value": [one.value for one in messages],
        }
        return pa.table(columns, SCHEMAS["kafka"])

    def _footer(self, number: int, records: int, source: StreamSource = "kafka") -> StreamFooter:
        content, counts = landed_content(self.content), Counts(records)
        table = self.folder.rpartition("/")[2]
        return StreamFooter(
            "cdc", table, source, number, content, {}, {}, AT, counts, counts
        )  # fmt: skip


def _base64(text: bytes | None) -> str | None:
    return None if text is None else base64.b64encode(text).decode()


def _written(headers: Sequence[tuple[str, bytes]]) -> str | None:
    pairs = [{"key": name, "value": _base64(text)} for name, text in headers]
    return json.dumps(pairs) if pairs else None
