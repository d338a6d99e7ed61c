"""The messages of one landed batch, and the bytes by which each can be read again by itself.

Those bytes are a line of JSON with what is known of the message, then the message as it came: its
header columns and what it means stand nowhere else once the landed batch is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed.batch import VALUE, StreamFooter
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.exact import json_text
from polynya.model.config.streaming.content import (
    Content,
    LandedContent,
    landed_content,
    written_content,
)
from polynya.model.contract.stream_headers import (
    LANDED_AT,
    PLACE_HEADERS,
    STREAM_HEADERS,
    StreamSource,
)
from polynya.model.datatypes import TIMESTAMP, DataType


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages of one source and one content.

    Attributes:
        file: path of the landed batch.
        source: the kind of source.
        content: what they mean.
        headers: a header column each.
        values: the messages, NULL for one without a value.
        direct: they never landed, so that only their source and the table know their places.
        before: how many messages had landed in their table before them.
    """

    file: str
    source: StreamSource
    content: Content | LandedContent
    headers: Mapping[str, pa.Array]
    values: pa.Array
    direct: bool = False
    before: int = 0

    @classmethod
    def of(cls, file: str, footer: StreamFooter, reader: parquet.ParquetFile) -> Messages:
        """The messages of an open landed batch. Raises UnreadableFileError."""
        try:
            rows = reader.read(use_threads=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableFileError(f"damaged: {error}") from error
        before = footer.totals.records - footer.counts.records
        return replace(cls.of_rows(file, footer.source, footer.content, rows), before=before)

    @classmethod
    def of_rows(
        cls, file: str, source: StreamSource, content: Content | LandedContent, rows: pa.Table
    ) -> Messages:
        """The messages in the rows of a landed batch."""
        columns = {name: _one_chunk(rows.column(name)) for name in rows.column_names}
        values = columns.pop(VALUE)
        return cls(file, source, content, columns, values)

    def with_time(self, written_at: datetime) -> Messages:
        """The same messages, each with the time at which their landed batch was made."""
        time = pa.scalar(written_at.astimezone(UTC), arrow_type(TIMESTAMP))
        return replace(self, headers={**self.headers, LANDED_AT: pa.repeat(time, len(self))})

    @property
    def types(self) -> Mapping[str, DataType]:
        """Types of the header columns."""
        return _types(self.source, self.headers)

    def __len__(self) -> int:
        return len(self.values)

    def place(self, index: int) -> str:
        """Where the source has a message, such as `kafka:clicks/3/1234`."""
        names = PLACE_HEADERS[self.source]
        return f"{self.source}:{'/'.join(str(self.headers[one][index].as_py()) for one in names)}"

    def raw(
        self,
        index: int,
        part: bytes | None = None,
        *,
        spelled: bool = False,
        place: str | None = None,
    ) -> bytes:
        """What a message can be read again by, or one record of it.

        `part` is the text of that record, `spelled` says that it is JSON whatever the content is.
        `place` is that of the record, where nothing else holds it.
        """
        value = self.values[index].as_py() if part is None else part
        said: dict[str, Any] = {
            "source": self.source,
            "content": {"type": "json"} if spelled else written_content(self.content),
            **{name: _plain(column[index].as_py()) for name, column in self.headers.items()},
            **({"spelled": True} if spelled else {}),
            **({"tombstone": True} if value is None else {}),
            **({} if place is None else {"place": place}),
        }
        return json_text(said).encode() + b"\n" + (value or b"")


@dataclass(frozen=True, slots=True)
class Kept:
    """A message out of quarantine.

    Attributes:
        messages: this one alone.
        spelled: it is JSON of a record that had types.
        place: of the record, None where file and offset say it.
    """

    messages: Messages
    spelled: bool
    place: str | None = None


def kept_message(file: str, raw: bytes) -> Kept:
    """Read what `Messages.raw` wrote. Raises ValueError for anything else."""
    head, line_end, value = raw.partition(b"\n")
    said = json.loads(head)
    if not line_end or not isinstance(said, dict) or said.get("source") not in STREAM_HEADERS:
        raise ValueError("this is no message of a stream")
    source = cast("StreamSource", said["source"])
    headers = {name: _column(said.get(name), kind) for name, kind in _types(source, said).items()}
    values = pa.array([None if said.get("tombstone") else value], pa.binary())
    messages = Messages(file, source, landed_content(said["content"]), headers, values)
    return Kept(messages, bool(said.get("spelled")), said.get("place"))


def _types(source: StreamSource, named: Mapping[str, Any]) -> dict[str, DataType]:
    """Types of the header columns of a source, and of the time of landing where that is named."""
    landed: dict[str, DataType] = {LANDED_AT: TIMESTAMP} if LANDED_AT in named else {}
    return {**STREAM_HEADERS[source], **landed}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _column(value: Any, kind: DataType) -> pa.Array:
    if kind == TIMESTAMP and value is not None:
        value = datetime.fromisoformat(value)
    return pa.array([value], arrow_type(kind))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        # To put chunks together copies them, also a single one.
        return column.chunk(0)
    chunks = column.combine_chunks()
    return chunks.chunk(0) if isinstance(chunks, pa.ChunkedArray) else chunks
