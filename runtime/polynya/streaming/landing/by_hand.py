"""A landed batch of messages that no source was asked for, such as those of a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from polynya.formats.landed.batch import (
    SCHEMAS,
    VALUE,
    Counts,
    StreamFooter,
    batch_name,
    write_batch,
)
from polynya.model.config.streaming.content import JSON_CONTENT, Content
from polynya.model.contract.stream_headers import STREAM_HEADERS, TIME_HEADERS, StreamSource

#: Of a source that has shards, the name of its only one.
_SHARD = "shardId-000000000000"


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and the header columns that it does not have by default."""

    value: bytes
    headers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ByHand:
    """A landed table: the task and the kind of source that landed it, and what messages mean."""

    task: str
    table: str
    source: StreamSource = "kafka"
    content: Content = JSON_CONTENT

    def batch(
        self, number: int, first: int, messages: Sequence[Message], at: datetime
    ) -> tuple[str, bytes]:
        """Path below the landing folder, and content, of the batch with this number.

        `first` is the position of its first message; all came at the time `at` to one partition.
        Raises ValueError when a header column is none of the source's, or of another type.
        """
        columns: dict[str, list[Any]] = {name: [] for name in SCHEMAS[self.source].names}
        for position, message in enumerate(messages, first):
            unknown = sorted(message.headers.keys() - STREAM_HEADERS[self.source].keys())
            if unknown:
                raise ValueError(f"{unknown[0]} is no header column of {self.source}")
            row = {**self._headers(position, message, at), VALUE: message.value}
            for name, values in columns.items():
                values.append(row.get(name))
        try:
            rows = pa.table(columns, SCHEMAS[self.source])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(f"a header column: {error}") from error
        counts = Counts(len(messages), sum(len(message.value) for message in messages))
        footer = StreamFooter(
            self.task, self.table, self.source, number, self.content, {}, {}, at, counts, counts
        )
        return f"{self.table}/{batch_name(number)}", write_batch(footer, rows)

    def _headers(self, position: int, message: Message, at: datetime) -> dict[str, Any]:
        usual: Mapping[StreamSource, dict[str, Any]] = {
            "kafka": {
                "hdr__kafka_topic": self.table,
                "hdr__kafka_partition": 0,
                "hdr__kafka_offset": position,
            },
            "kinesis": {
                "hdr__kinesis_stream": self.table,
                "hdr__kinesis_shard": _SHARD,
                "hdr__kinesis_offset": str(position),
            },
            "files": {
                "hdr__file_name": self.table,
                "hdr__file_size": len(message.value),
                "hdr__file_record": position,
            },
        }
        headers = dict(usual[self.source])
        time = TIME_HEADERS.get(self.source)
        if time is not None:
            headers[time] = at
            given = message.headers.get(time)
            if isinstance(given, str):
                return {**headers, **message.headers, time: datetime.fromisoformat(given)}
        return {**headers, **message.headers}
