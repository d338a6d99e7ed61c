"""Native files read as columns, if nothing in them needs the exact reader.

The rows, positions and rejected records are those of the exact reader. Only files whose columns are
all known and have their types are read this way. A property test compares both readers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import BinaryIO

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import (
    NO_ORDER,
    OLD_KEY_FIELD,
    SERVICE_FIELDS,
    TIMESTAMP_UTC,
    DatasetBatch,
    FilePart,
    FileProgress,
    ReadLimits,
    Rejected,
)
from polynya.formats.columnar import places_of, typed_columns
from polynya.formats.errors import UnreadableFileError
from polynya.formats.json_columns import (
    blocks,
    count_records,
    is_met,
    reads,
    records_of,
    typed_lines,
    without_mark,
)
from polynya.formats.opening import landed_file
from polynya.formats.records.columnar import has_int96, opened_parquet
from polynya.formats.records.columnar import records_of as columnar_records
from polynya.formats.values.arrow import no_old_keys
from polynya.formats.values.arrow_types import arrow_type
from polynya.model.types import DataType
from polynya.observe.trace import span

_ROWS = 65_536
_BLOCK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ColumnarRecords:
    """Records that were read as columns.

    Attributes:
        file: path in the object store.
        first: index in the file of the first of them.
        count: how many there are.
        size_bytes: of their text, or of their columns in memory where the file has no text.
        columns: by name, of the types of the dataset.
        raw: the text of the record at an index of the chunk.
        met: names of columns that its records have, where the file does not declare them.
    """

    file: str
    first: int
    count: int
    size_bytes: int
    columns: Mapping[str, pa.Array]
    raw: Callable[[int], bytes]
    met: frozenset[str] = frozenset()

    def head(self, count: int) -> ColumnarRecords:
        """Its first records."""
        if count >= self.count:
            return self
        columns = {name: column.slice(0, count) for name, column in self.columns.items()}
        size = self.size_bytes * count // self.count
        return replace(self, count=count, size_bytes=size, columns=columns)


def chunk_of_rows(
    file: str, first: int, rows: pa.RecordBatch, schema: Mapping[str, DataType]
) -> ColumnarRecords | None:
    """A chunk of rows of a columnar file; None when they have to be read exactly.

    Raises `pa.ArrowInvalid` for a text that is not UTF-8.
    """
    columns = typed_columns(rows, schema)
    if columns is None:
        return None

    def raw(index: int) -> bytes:
        ((text, _),) = columnar_records(rows.slice(index, 1))
        return text

    return ColumnarRecords(file, first, rows.num_rows, rows.nbytes, columns, raw)


def chunk_of_lines(
    file: str, first: int, text: bytes, schema: Mapping[str, DataType], declared: Collection[str]
) -> ColumnarRecords | None:
    """A chunk of whole lines of JSON; None when they have to be read exactly.

    `declared` names columns whose type the settings say.
    """
    columns = typed_lines(text, schema, declared)
    if columns is None:
        return None

    @cache
    def lines() -> list[bytes]:
        return list(records_of(text))

    count = len(next(iter(columns.values())))
    met = frozenset(name for name, column in columns.items() if is_met(name, column, text))
    return ColumnarRecords(
        file, first, count, len(text), columns, lambda index: lines()[index], met
    )


def chunks_of_columns(
    reader: parquet.ParquetFile, part: FilePart, schema: Mapping[str, DataType]
) -> Iterator[ColumnarRecords | None]:
    """The rows of a Parquet file from `part.start` on; None: read it exactly."""
    at = 0
    for read in reader.iter_batches(_ROWS, use_threads=False):
        skip = min(max(part.start - at, 0), read.num_rows)
        at += read.num_rows
        if skip < read.num_rows:
            first = at - read.num_rows + skip
            yield chunk_of_rows(part.path, first, read.slice(skip), schema)


def chunks_of_lines(
    file: BinaryIO, part: FilePart, schema: Mapping[str, DataType], declared: Mapping[str, DataType]
) -> Iterator[ColumnarRecords | None]:
    """The lines of a file of JSON from `part.start` on; None: read it exactly."""
    at = 0
    for begin, block in blocks(file, _BLOCK_BYTES):
        text = without_mark(block) if begin == 0 else block
        count = count_records(text, at_start=False)
        skip = min(max(part.start - at, 0), count)
        at += count
        if skip < count:
            if skip:
                text = b"\n".join(list(records_of(text))[skip:])
            yield chunk_of_lines(part.path, at - count + skip, text, schema, declared)


class _OutOfTheOrdinaryError(Exception):
    """The exact reader has to look."""


@dataclass(slots=True)
class _Taken:
    """What was taken of the files so far.

    `declared` are the columns of the newest file that says them, `met` those of all files.
    """

    limits: ReadLimits
    chunks: list[ColumnarRecords] = field(default_factory=list)
    progress: dict[str, FileProgress] = field(default_factory=dict)
    declared: tuple[str, ...] | None = None
    met: frozenset[str] = frozenset()
    rows: int = 0
    size_bytes: int = 0
    cut: bool = False

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here."""
        full = self.rows >= self.limits.max_rows or self.size_bytes >= self.limits.max_bytes
        return full or self.cut

    def take(self, part: FilePart, chunks: Iterator[ColumnarRecords]) -> None:
        """Take the chunks of a file until the batch is full, and note how far it was read."""
        offset, complete = part.start, True
        for chunk in chunks:
            if self.is_full:
                complete = False
                break
            kept = chunk.head(self._room(chunk))
            self.chunks.append(kept)
            self.met |= kept.met
            self.rows, self.size_bytes = self.rows + kept.count, self.size_bytes + kept.size_bytes
            offset, complete = offset + kept.count, kept.count == chunk.count
            self.cut = not complete
        self.progress[part.path] = part.read(offset, complete=complete)

    def _room(self, chunk: ColumnarRecords) -> int:
        """How many records of a chunk still go in; one at least."""
        by_bytes = (
            (self.limits.max_bytes - self.size_bytes) * chunk.count // max(1, chunk.size_bytes)
        )
        return max(1, min(self.limits.max_rows - self.rows, by_bytes))


@span("read columns")
def columnar_batch(request: ReadRequest) -> DatasetBatch | None:
    """The next batch; see `Format.read`. None when it has to be read exactly."""
    known = request.table
    if not _may_be_read(known):
        return None
    taken = _Taken(request.limits)
    try:
        for part in request.files:
            if taken.is_full:
                break
            _take_file(request, part, taken)
        return _batch(known, taken, load=request.load)
    except (UnreadableFileError, _OutOfTheOrdinaryError, pa.ArrowException, OSError, ValueError):
        # Which record or file is to blame is for the exact reader to say.
        return None


def _may_be_read(known: KnownTable) -> bool:
    """Whether it is worth to open a file."""
    schema, dataset = known.schema, known.dataset
    if not schema or not all(key in schema for key in dataset.events.keys):
        return False
    if dataset.landing.format == "json":
        in_lines = dataset.landing.delivery.record_path is None
        return in_lines and dataset.is_spelled_as_usual and reads(schema, dataset.events.columns)
    return dataset.landing.format == "parquet"


def _take_file(request: ReadRequest, part: FilePart, taken: _Taken) -> None:
    dataset, schema = request.table.dataset, request.table.schema
    landing = dataset.landing
    with landed_file(request.store, part.path, landing.format, delivery=landing.delivery) as file:
        if landing.format == "json":
            chunks = chunks_of_lines(file, part, schema, dataset.events.columns)
        else:
            reader = opened_parquet(file)
            ordinary = typed_columns(_empty(reader.schema_arrow), schema) is not None
            if not ordinary or has_int96(reader):
                raise _OutOfTheOrdinaryError
            taken.declared = tuple(reader.schema_arrow.names)
            taken.met |= frozenset(taken.declared)
            chunks = chunks_of_columns(reader, part, schema)
        taken.take(part, (_ordinary(chunk) for chunk in chunks))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _ordinary(chunk: ColumnarRecords | None) -> ColumnarRecords:
    if chunk is None:
        raise _OutOfTheOrdinaryError
    return chunk


def _batch(known: KnownTable, taken: _Taken, *, load: bool) -> DatasetBatch:
    keys = known.dataset.events.keys
    schema = _schema(known)
    rows: list[pa.Table] = [schema.empty_table()]
    rejected: list[Rejected] = []
    for chunk in taken.chunks:
        made, refused = _rows(known, chunk, schema, load=load)
        rows.append(made)
        rejected += refused
    return DatasetBatch(
        rows=pa.concat_tables(rows),
        schema=known.schema,
        keys=keys,
        rejected=tuple(rejected),
        rows_in=taken.rows,
        rows_filtered=0,
        files=taken.progress,
        declared=taken.declared,
        met=taken.met,
        of_load=load,
        raw_of=_Texts(taken.chunks).of,
    )


def _rows(
    known: KnownTable, chunk: ColumnarRecords, schema: pa.Schema, *, load: bool
) -> tuple[pa.Table, list[Rejected]]:
    """The good records of a chunk, and the others."""
    places = places_of(chunk.columns, known.schema, known.dataset, count=chunk.count, load=load)
    count, identifiers = chunk.count, places.identifiers
    if identifiers is None:
        identifiers = pa.repeat(pa.scalar(NO_ORDER), count)
    service = {
        "__file": pa.repeat(pa.scalar(chunk.file), count),
        "__offset": pa.arange(chunk.first, chunk.first + count),
        "__op": pa.repeat(pa.scalar("L" if load else None, pa.string()), count),
        "__ci": identifiers,
        "__tail": places.tails,
        "__ts": places.times.cast(TIMESTAMP_UTC),
    }
    found = {**service, **chunk.columns}
    table = pa.table(
        [found.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema
    )
    if not places.faults:
        return table, []
    good = pa.array([index not in places.faults for index in range(count)], pa.bool_())
    refused = [
        Rejected(chunk.file, chunk.first + index, rule, error, chunk.raw(index))
        for index, (rule, error) in sorted(places.faults.items())
    ]
    return table.filter(good), refused


def _schema(known: KnownTable) -> pa.Schema:
    old = no_old_keys(known.dataset.events.keys, known.schema, 0)
    return pa.schema(
        [
            *SERVICE_FIELDS,
            pa.field(OLD_KEY_FIELD, old.array.type),
            *(pa.field(name, arrow_type(kind)) for name, kind in known.schema.items()),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Texts:
    """The records of chunks as text."""

    chunks: list[ColumnarRecords]

    def of(self, file: str, offset: int) -> bytes:
        """The text of the record at an offset of a file."""
        (chunk,) = (
            chunk
            for chunk in self.chunks
            if chunk.file == file and chunk.first <= offset < chunk.first + chunk.count
        )
        return chunk.raw(offset - chunk.first)
