"""The landed batch of a stream: its Parquet object, its messages, and how far a table copied it.

This object is the contract between stream landing and the readers of the landing zone. It holds
messages and the position after them and is written with one put, so a reader never sees one without
the other.

A message in quarantine is a line of JSON about the message, followed by the message itself. The
line has the header columns and the content settings, because nothing else records them once the
landed batch is gone.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, BinaryIO, Final, cast, get_args

import pyarrow as pa
from pyarrow import parquet
from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter

from polynya.formats.batch import FileProgress
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files import folder_of
from polynya.formats.records.columnar import check_parquet
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.exact import json_text
from polynya.model.config.stream_content import (
    Content,
    LandedContent,
    landed_content,
    written_content,
)
from polynya.model.documents.stored import Items, Moment, from_stored
from polynya.model.error_catalogue.streams import LANDED_BATCH_TOO_NEW
from polynya.model.headers import LANDED_AT, PLACE_HEADERS, STREAM_HEADERS, StreamSource
from polynya.model.positions import Gone, Reached, Read, Span, gone
from polynya.model.types import TIMESTAMP, DataType

VERSION: Final = 1
#: The column with the messages; NULL is a message without a value.
VALUE: Final = "value"
#: The entry of the footer that holds what `StreamFooter` has, as UTF-8 JSON.
METADATA_KEY: Final = b"polynya.stream"

_DIGITS: Final = 20
_NAME: Final = re.compile(rf"batch-([0-9]{{{_DIGITS}}})\.parquet", re.ASCII)
_GROUP_BYTES: Final = 64 * 1024 * 1024


def _schema(source: StreamSource) -> pa.Schema:
    headers = [pa.field(name, arrow_type(kind)) for name, kind in STREAM_HEADERS[source].items()]
    return pa.schema([*headers, pa.field(VALUE, pa.binary())])


#: The columns of a landed batch, by the kind of its source.
SCHEMAS: Final[Mapping[StreamSource, pa.Schema]] = {
    source: _schema(source) for source in get_args(StreamSource)
}


@dataclass(frozen=True, slots=True)
class Counts:
    """Records and bytes of messages that landed, and records that the source had no more."""

    records: int = 0
    bytes: int = 0
    lost: int = 0

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            self.records + other.records, self.bytes + other.bytes, self.lost + other.lost
        )


@dataclass(frozen=True, slots=True)
class Lost:
    """Records that the source had no more when they were to be read.

    Attributes:
        at: where they were, such as `clicks/3` for a partition of a topic.
        begin: position of the first of them, as the source writes it.
        end: position after the last of them.
        why: such as `retention`.
    """

    at: str
    begin: Annotated[str, Field(alias="from")]
    end: Annotated[str, Field(alias="to")]
    why: str


@dataclass(frozen=True, slots=True)
class StreamFooter:
    """What a landed batch says of itself.

    Attributes:
        task: name of the task that landed it.
        table: the landed table, which is its folder.
        source: the kind of source, which says what its columns are.
        number: of the batch among those of its table, from 1.
        content: what a message means; secrets are never in it.
        begin: position before its records. Only the source understands it.
        end: position after them.
        written_at: when it was made, with a time zone.
        counts: of this batch.
        totals: of all batches of the table up to this one.
        lost: what was lost before or between its records.
        began: position before the first record of the table; None where an older version wrote the
            first batch.
    """

    task: str
    table: str
    source: StreamSource
    number: int
    content: Annotated[
        Content | LandedContent, PlainSerializer(written_content), PlainValidator(landed_content)
    ]
    begin: Annotated[Mapping[str, Any], Field(alias="from")]
    end: Annotated[Mapping[str, Any], Field(alias="to")]
    written_at: Moment
    counts: Counts = field(default_factory=Counts)
    totals: Counts = field(default_factory=Counts)
    lost: Items[Lost] = ()
    began: Mapping[str, Any] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batch."""
        return SCHEMAS[self.source]

    def to_json(self) -> str:
        """The text in the footer."""
        values = _FOOTER.dump_python(self, mode="json", by_alias=True, exclude_none=True)
        text = {"version": VERSION, **values}
        return json.dumps(text, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "") -> StreamFooter:
        """Read the text; keys that this version does not know are ignored.

        Raises:
            OperationError: POLYNYA-STR-020, a newer version wrote it.
            UnreadableFileError: it says something that no version writes.
        """
        try:
            values = json.loads(text)
            version = values["version"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_footer(error) from error
        if version != VERSION:
            raise LANDED_BATCH_TOO_NEW(where=where, version=version, supported=VERSION)
        try:
            return from_stored(_FOOTER, values, ("counts", "totals", "lost"))
        except (ValueError, TypeError) as error:
            raise _no_footer(error) from error


_FOOTER: Final = TypeAdapter(StreamFooter)


def batch_name(number: int) -> str:
    """The name of the object of a batch: names sort as numbers do."""
    return f"batch-{number:0{_DIGITS}d}.parquet"


def batch_number(path: str) -> int | None:
    """The number in the name of a landed batch; None for any other file."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else None


def is_landed_batch(path: str) -> bool:
    """Whether a file is named like a landed batch."""
    return batch_number(path) is not None


def write_batch(footer: StreamFooter, rows: pa.Table) -> bytes:
    """The object of a batch: Parquet with Zstandard, in row groups of 64 MiB at most.

    Raises ValueError when the columns are not those of the footer's source.
    """
    if rows.schema.remove_metadata() != footer.schema:
        raise ValueError(f"columns {rows.schema.names} are not those of {footer.source}")
    buffer = io.BytesIO()
    schema = footer.schema.with_metadata({METADATA_KEY: footer.to_json().encode()})
    # Values are seldom alike, and a dictionary of them is made in vain.
    dictionaries = [name for name in schema.names if name != VALUE]
    with parquet.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=dictionaries,
        write_statistics=dictionaries,
    ) as writer:
        for part in _groups(rows.cast(schema)):
            writer.write_table(part, row_group_size=max(1, part.num_rows))
    return buffer.getvalue()


def read_footer(file: BinaryIO, where: str = "") -> StreamFooter:
    """What a landed batch says of itself; only the end of the file is read.

    Args:
        file: the object, seekable.
        where: its path, for errors.

    Raises:
        OperationError: POLYNYA-STR-020, a newer version wrote it.
        UnreadableFileError: it is not a landed batch.
    """
    return opened_batch(file, where)[0]


def opened_batch(file: BinaryIO, where: str = "") -> tuple[StreamFooter, parquet.ParquetFile]:
    """What a landed batch says of itself, and its columns. Raises as `read_footer`."""
    try:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        reader = parquet.ParquetFile(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    check_parquet(reader, size)
    text = (reader.metadata.metadata or {}).get(METADATA_KEY)
    if text is None:
        raise UnreadableFileError("not a landed batch: its footer has no position of a stream")
    footer = StreamFooter.from_json(text, where)
    if reader.schema_arrow.remove_metadata() != footer.schema:
        raise UnreadableFileError(
            f"not a landed batch of {footer.source}: its columns are {reader.schema_arrow.names}"
        )
    return footer, reader


def _groups(rows: pa.Table) -> list[pa.Table]:
    """Slices of at most a row group, which are equal in rows."""
    size = rows.nbytes
    if not rows.num_rows:
        return []
    parts = min(rows.num_rows, -(-size // _GROUP_BYTES))
    step = -(-rows.num_rows // max(1, parts))
    return [rows.slice(begin, step) for begin in range(0, rows.num_rows, step)]


def _no_footer(error: Exception) -> UnreadableFileError:
    return UnreadableFileError(f"not a landed batch: its footer cannot be read: {error!r}")


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
        return f"{self.source}:{'/'.join(str(self.headers[name][index].as_py()) for name in names)}"

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
class KeptMessage:
    """A message out of quarantine.

    Attributes:
        messages: this one alone.
        spelled: it is JSON of a record that had types.
        place: of the record, None where file and offset say it.
    """

    messages: Messages
    spelled: bool
    place: str | None = None


def kept_message(file: str, raw: bytes) -> KeptMessage:
    """Read what `Messages.raw` wrote. Raises ValueError for anything else."""
    head, line_end, value = raw.partition(b"\n")
    said = json.loads(head)
    if not line_end or not isinstance(said, dict) or said.get("source") not in STREAM_HEADERS:
        raise ValueError("this is not a message of a stream")
    source = cast("StreamSource", said["source"])
    headers = {name: _column(said.get(name), kind) for name, kind in _types(source, said).items()}
    values = pa.array([None if said.get("tombstone") else value], pa.binary())
    messages = Messages(file, source, landed_content(said["content"]), headers, values)
    return KeptMessage(messages, bool(said.get("spelled")), said.get("place"))


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


def before_copy(
    known: Reached | None, files: Mapping[str, FileProgress], folder: str
) -> Reached | None:
    """How far a table had copied a folder, None when it has nothing of it.

    `known` is what its state says of that, `files` how far its files were read: tables of older
    versions, and those that were loaded again, have only these.
    """
    inside = [path for path in files if folder_of(path) == folder]
    numbers = {batch_number(path) or 0: files[path] for path in inside}
    newest = max(numbers, default=0)
    if not newest:
        return None
    told = known if known is not None and known.folder == folder else None
    if told is not None and told.number == newest:
        return told
    return Reached(folder, newest, numbers[newest].complete)


def gone_between(
    done: Mapping[str, FileProgress], read: Mapping[str, FileProgress]
) -> dict[str, tuple[Gone, ...]]:
    """The landed batches that were gone before a task copied them, by folder.

    For tasks whose tables share their files, which may have several folders. `done` is how far they
    were read before `read`, which is in the order of names.
    """
    spans: dict[str, list[Read]] = {}
    for path, progress in read.items():
        number = batch_number(path)
        if number is not None:
            spans.setdefault(folder_of(path), []).append(Read(number, progress.complete))
    found = {
        folder: gone(before_copy(None, done, folder), Span(folder, tuple(parts)))
        for folder, parts in spans.items()
    }
    return {folder: missing for folder, missing in found.items() if missing}


def next_unread(files: Mapping[str, FileProgress], folder: str) -> int:
    """The number of the first landed batch of a folder that was not copied to its end."""
    newest = before_copy(None, files, folder)
    if newest is None:
        return 1
    return newest.number + 1 if newest.whole else newest.number
