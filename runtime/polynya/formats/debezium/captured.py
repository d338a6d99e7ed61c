"""The landed batch of a capture: event lines, their schemas and the position after them.

This object is the contract between a capture and the readers of the landing zone. It holds events
and position together and is written with one put, so a reader never sees one without the other. It
is Zstandard with two frames: the header line, then the event lines.

A line has no schema: its schema is in the header. A quarantined line gets its schema back, so that
it can be read again without the batch.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

import pyarrow as pa
from pydantic import AfterValidator, Field, TypeAdapter

from polynya.formats.debezium.envelope import HEADER, UNSENT
from polynya.formats.debezium.tables import table_of
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.columnar import RawRecord
from polynya.formats.records.json import parse_object, parsed
from polynya.formats.values.exact import json_text
from polynya.model.config.dataset import ReloadMode
from polynya.model.documents.stored import Entries, Moment, from_stored
from polynya.model.error_catalogue.capture import CAPTURED_BATCH_TOO_NEW

#: From 2 on a batch says which one is before it.
VERSION: Final = 2
#: How a header line begins.
MARK: Final = f'{{"{HEADER}":'.encode()

_DIGITS: Final = 20
_NAME: Final = re.compile(rf"capture-([0-9]{{{_DIGITS}}})\.jsonl\.zst", re.ASCII)
_MAX_HEADER_BYTES: Final = 256 * 1024 * 1024
_PIECE_BYTES: Final = 64 * 1024


Count: TypeAlias = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True, slots=True)
class EventSchema:
    """From an event line of a batch on, the schema of a table's events; 1 is the first line.

    `schema` is that of the envelope, as Connect's JSON converter writes it.
    """

    first: Annotated[Count, Field(alias="from")]
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoadChunk:
    """Says that the rows of a table in a batch are a chunk of a load that is compared with it.

    Attributes:
        load: number of the load; a load that begins again, after a kill too, gets another one.
        chunk: number of the chunk in the load, from 1 without gaps.
        is_last: the load is complete with it.
        mode: what becomes of the rows that differ.
    """

    load: Count
    chunk: Count
    is_last: Annotated[bool, Field(strict=True)]
    mode: ReloadMode


def _in_order(shapes: Sequence[EventSchema]) -> Sequence[EventSchema]:
    firsts = [shape.first for shape in shapes]
    if firsts != sorted(set(firsts)):
        raise ValueError("schemas out of order")
    return tuple(shapes)


@dataclass(frozen=True, slots=True)
class CaptureHeader:
    """What a batch says of itself.

    Attributes:
        task: name of the landing.
        number: of the batch, from 1.
        written_at: when it was made, by the clock of the capture.
        events: how many lines follow.
        position: where the capture goes on after it; only the capture understands it.
        schemas: by table, in the order of the lines.
        writer: what tells the capture that put it from any other; no reader needs it.
        unsent: the text that means that a column was not sent, another one in each process that
            captures, so that no value can be it; empty where the source sends all columns. None:
            that of Debezium, in batches before 2026-11-27.
        follows: `digest` of the batch before it, empty for the first one; None: it does not say,
            as those of version 1.
        loads: by table, of which load its rows are, where they are compared with the table.
        digest: of the header line that was read; no part of it.
    """

    task: str
    number: Count
    written_at: Moment
    events: Count
    position: Mapping[str, Any] = field(default_factory=dict)
    schemas: Entries[str, Annotated[Sequence[EventSchema], AfterValidator(_in_order)]] = field(
        default_factory=dict
    )
    writer: str = ""
    unsent: str | None = None
    follows: str | None = None
    loads: Entries[str, LoadChunk] = field(default_factory=dict)
    digest: str = field(default="", compare=False)

    def line(self) -> bytes:
        """The header line, with its end."""
        values = _STORED.dump_python(
            self,
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude={"digest"} if self.loads else {"digest", "loads"},
        )
        header = {HEADER: {"version": VERSION, **values}}
        return json.dumps(header, separators=(",", ":")).encode() + b"\n"


_STORED: Final = TypeAdapter(CaptureHeader)


def batch_name(number: int) -> str:
    """The name of a batch in its folder."""
    return f"capture-{number:0{_DIGITS}d}.jsonl.zst"


def batch_number(path: str) -> int | None:
    """The number in the name of a batch; None for a path that is none."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else int(match[1])


def write_batch(header: CaptureHeader, lines: bytes) -> bytes:
    """The bytes of a batch."""
    return joined(header, packed_lines(lines))


def packed_lines(lines: bytes) -> bytes:
    """Event lines as the second frame of a batch."""
    return _frame(lines) if lines else b""


def joined(header: CaptureHeader, packed: bytes) -> bytes:
    """The bytes of a batch from its header and `packed_lines`."""
    return _frame(header.line()) + packed


def _frame(text: bytes) -> bytes:
    data: bytes = pa.compress(text, codec="zstd", asbytes=True)
    return data


def read_header(file: BinaryIO, path: str) -> CaptureHeader:
    """What a batch says of itself; reads no more of it than that.

    Raises:
        UnreadableFileError: it is not a batch of a capture, or damaged.
        OperationError: POLYNYA-GTW-002, a newer Polynya wrote it.
    """
    try:
        with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as content:
            line = b""
            while b"\n" not in line and (piece := content.read(_PIECE_BYTES)):
                line += piece
                if len(line) > _MAX_HEADER_BYTES:
                    raise UnreadableFileError("its first line is too long for a header")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UnreadableFileError(f"not a batch of a capture: {error}") from error
    line, end, _ = line.partition(b"\n")
    if not end:
        raise UnreadableFileError("not a batch of a capture: its first line has no end")
    return header_of(line, path)


def header_of(line: bytes, path: str) -> CaptureHeader:
    """The header of its line. Raises as `read_header`."""
    try:
        found = _header(parse_object(line)[HEADER], path)
    except (RecordError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableFileError(f"the header of the capture cannot be read: {error}") from error
    return replace(found, digest=digest_of(line))


def digest_of(line: bytes) -> str:
    """What the next batch calls a batch by: a hash of its header line."""
    return hashlib.sha256(line.rstrip(b"\r\n")).hexdigest()


def _header(says: Mapping[str, Any], path: str) -> CaptureHeader:
    version = says["version"]
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"version {str(version)[:40]!r}")
    if version > VERSION:
        raise CAPTURED_BATCH_TOO_NEW(where=path, version=version, readable=VERSION)
    return from_stored(_STORED, says, ("position", "schemas"))


class CapturedLines:
    """Schemas of the events of one batch, by table and line; line 0 is the header."""

    def __init__(self, header: CaptureHeader) -> None:
        self._shapes = header.schemas
        self._more = {} if header.unsent is None else {UNSENT: header.unsent}

    def with_schema(self, record: dict[str, Any], line: int) -> dict[str, Any]:
        """An event with its schema and the text for unsent columns; other records stay as they are.

        Raises:
            RecordError: bad_schema, the header has none for its table.
        """
        value = record.get("value")
        if not isinstance(value, dict) or "op" not in value or value["op"] == "m":
            return record
        source = value.get("source")
        table = table_of(source if isinstance(source, dict) else {})
        schema = self._schema(self._shapes.get(table, ()), line)
        if schema is None:
            raise RecordError("bad_schema", f"the header of the batch has no schema of {table}")
        return {**record, "value": {"schema": schema, "payload": value}, **self._more}

    def whole(self, raw: bytes, line: int) -> bytes:
        """The text of an event with its schema; what is not an event stays as it is."""
        try:
            record = parse_object(raw)
            found = self.with_schema(record, line)
        except RecordError:
            return raw
        return raw if found is record else json_text(found).encode()

    @staticmethod
    def _schema(shapes: Sequence[EventSchema], line: int) -> Mapping[str, Any] | None:
        if len(shapes) == 1 and shapes[0].first <= line:
            return shapes[0].schema
        index = bisect_right(shapes, line, key=lambda shape: shape.first)
        return shapes[index - 1].schema if index else None


class CapturedRecords(Iterator[RawRecord]):
    """The records of a batch from the `start`-th on, the header being the first."""

    def __init__(self, file: BinaryIO, path: str, start: int) -> None:
        """Read the header.

        Raises:
            UnreadableFileError: it is broken. Without it no line has its types.
            OperationError: POLYNYA-GTW-002, a newer Polynya wrote it.
        """
        line = file.readline()
        header = header_of(line, path)
        self.lines = CapturedLines(header)
        self.header = header
        self._records = self._from(line, file, start)

    def __next__(self) -> RawRecord:
        return next(self._records)

    def whole(self, raw: bytes, offset: int) -> bytes:
        """See `CapturedLines.whole`."""
        return self.lines.whole(raw, offset)

    def _from(self, header: bytes, file: BinaryIO, start: int) -> Iterator[RawRecord]:
        if start == 0:
            yield parsed(header.rstrip(b"\r\n"))
        for number, line in enumerate(islice(file, max(start - 1, 0), None), max(start, 1)):
            raw, record = parsed(line.rstrip(b"\r\n"))
            if not isinstance(record, RecordError):
                try:
                    record = self.lines.with_schema(record, number)
                except RecordError as error:
                    record = error
            yield raw, record
