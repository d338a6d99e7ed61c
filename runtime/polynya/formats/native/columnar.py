"""Native files read as columns, if nothing in them needs the exact reader.

The rows, positions and rejected records are those of the exact reader. Only files whose columns are
all known and have their types are read this way. A property test compares both readers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from io import BytesIO
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
#: Files of lines up to this size are parsed together: one line takes 0.24 ms, a hundred 0.32 ms.
_SMALL_BYTES = 64 * 1024


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
        following: whole files whose records are the last ones, and how many each has.
    """

    file: str
    first: int
    count: int
    size_bytes: int
    columns: Mapping[str, pa.Array]
    raw: Callable[[int], bytes]
    met: frozenset[str] = frozenset()
    following: Sequence[tuple[str, int]] = ()

    def files(self) -> Iterator[tuple[str, int, int]]:
        """Each file, the index in it of its first record here, and how many there are."""
        yield self.file, self.first, self.count - sum(count for _, count in self.following)
        for file, count in self.following:
            yield file, 0, count

    def head(self, count: int) -> ColumnarRecords:
        """Its first records, of a chunk of one file."""
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


@dataclass(frozen=True, slots=True)
class _SmallFile:
    """A whole file of lines, without its byte order mark."""

    part: FilePart
    text: bytes
    rows: int


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
            self.add(kept)
            offset, complete = offset + kept.count, kept.count == chunk.count
            self.cut = not complete
        self.progress[part.path] = part.read(offset, complete=complete)

    def fits(self, rows: int, size_bytes: int) -> bool:
        """Whether all of so much still goes in."""
        in_rows = self.rows + rows <= self.limits.max_rows
        return in_rows and self.size_bytes + size_bytes <= self.limits.max_bytes

    def add(self, chunk: ColumnarRecords) -> None:
        """Take a chunk as a whole."""
        self.chunks.append(chunk)
        self.met |= chunk.met
        self.rows, self.size_bytes = self.rows + chunk.count, self.size_bytes + chunk.size_bytes

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
        small = _SmallFiles(request, taken)
        for part in request.files:
            if taken.is_full:
                break
            if not small.take(part):
                _take_file(request, part, taken)
        small.end()
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


@dataclass(slots=True)
class _SmallFiles:
    """Takes small files of lines that follow each other, and parses them as one text at the end."""

    request: ReadRequest
    taken: _Taken
    _waiting: list[_SmallFile] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def take(self, part: FilePart) -> bool:
        """Take a file if it is small and all of it fits; else end, and say that it is not taken."""
        small = self._read(part)
        if small is None or not self.taken.fits(
            self._rows + small.rows, self._bytes + len(small.text)
        ):
            self.end()
            return False
        self._waiting.append(small)
        self._rows, self._bytes = self._rows + small.rows, self._bytes + len(small.text)
        if self._bytes >= _BLOCK_BYTES or not self.taken.fits(self._rows + 1, self._bytes + 1):
            self.end()
        return True

    def end(self) -> None:
        """Parse what was taken."""
        waiting, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        chunk = self._chunk([small for small in waiting if small.rows])
        if chunk is not None:
            self.taken.add(chunk)
            for small in waiting:
                self.taken.progress[small.part.path] = small.part.read(small.rows, complete=True)
            return
        # Such as blank lines at the end of one.
        schema, declared = self._columns
        for small in waiting:
            chunks = chunks_of_lines(BytesIO(small.text), small.part, schema, declared)
            self.taken.take(small.part, map(_ordinary, chunks))

    def _read(self, part: FilePart) -> _SmallFile | None:
        landing = self.request.table.dataset.landing
        if landing.format != "json" or part.start or part.size > _SMALL_BYTES:
            return None
        with landed_file(
            self.request.store, part.path, landing.format, delivery=landing.delivery
        ) as file:
            text = without_mark(file.read(_SMALL_BYTES + 1))
        if len(text) > _SMALL_BYTES:
            return None
        return _SmallFile(part, text, count_records(text, at_start=False))

    def _chunk(self, files: Sequence[_SmallFile]) -> ColumnarRecords | None:
        """The records of files as one chunk; None where each has to be read by itself."""
        if not files:
            return None
        first, *others = files
        text = b"".join(
            small.text if small.text.endswith(b"\n") else small.text + b"\n" for small in files
        )
        chunk = chunk_of_lines(first.part.path, 0, text, *self._columns)
        if chunk is None or chunk.count != sum(small.rows for small in files):
            return None
        return replace(chunk, following=[(small.part.path, small.rows) for small in others])

    @property
    def _columns(self) -> tuple[Mapping[str, DataType], Mapping[str, DataType]]:
        known = self.request.table
        return known.schema, known.dataset.events.columns


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
    files = list(chunk.files())
    service = {
        "__file": pa.concat_arrays([pa.repeat(pa.scalar(file), rows) for file, _, rows in files]),
        "__offset": pa.concat_arrays([pa.arange(first, first + n) for _, first, n in files]),
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
        Rejected(
            service["__file"][index].as_py(),
            service["__offset"][index].as_py(),
            rule,
            error,
            chunk.raw(index),
        )
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


class _Texts:
    """The records of chunks as text."""

    def __init__(self, chunks: Iterable[ColumnarRecords]) -> None:
        #: By file: indices in it of records of a chunk, the index there of the first, the chunk.
        self._spans: dict[str, list[tuple[range, int, ColumnarRecords]]] = {}
        for chunk in chunks:
            before = 0
            for file, first, count in chunk.files():
                here = (range(first, first + count), before, chunk)
                self._spans.setdefault(file, []).append(here)
                before += count

    def of(self, file: str, offset: int) -> bytes:
        """The text of the record at an offset of a file."""
        ((indices, before, chunk),) = (one for one in self._spans[file] if offset in one[0])
        return chunk.raw(before + indices.index(offset))
