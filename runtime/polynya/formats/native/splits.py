"""Splits of native files by format: Avro blocks, lines, row groups and stripes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final, TypeAlias

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats.columnar import typed_columns
from polynya.formats.errors import UnreadableFileError
from polynya.formats.json_columns import blocks, count_records, records_of, without_mark
from polynya.formats.loads import Split
from polynya.formats.native.columnar import ColumnarRecords, chunk_of_lines, chunk_of_rows
from polynya.formats.records.avro import blocks_of, header_of, opened_avro, records_of_values
from polynya.formats.records.columnar import (
    RawRecord,
    column_types,
    exact_batches,
    opened_orc,
    opened_parquet,
)
from polynya.formats.records.columnar import records_of as columnar_records_of
from polynya.formats.records.csv import (
    CsvLayout,
    column_names,
    open_csv,
    placed_pieces,
    refuse_other_delimiter,
    text_builder,
)
from polynya.formats.records.json import parsed
from polynya.formats.records.json_documents import open_documents, refuse_document
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.columns import Builder, build
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import Array, DataType, MapType, Struct, Void

_BUFFER_BYTES = 1024 * 1024


def part_of(file: BinaryIO, head: bytes, begin: int, end: int | None) -> io.BufferedReader:
    """`head`, then the bytes of a file from `begin` to `end`; None: to its own end."""
    file.seek(begin)
    return io.BufferedReader(_Part(head, file, None if end is None else end - begin), _BUFFER_BYTES)


class _Part(io.RawIOBase):
    def __init__(self, head: bytes, file: BinaryIO, left: int | None) -> None:
        self._head, self._file, self._left = head, file, left

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, from the head first."""
        room = len(buffer)
        if self._head:
            found, self._head = self._head[:room], self._head[room:]
        else:
            wanted = room if self._left is None else min(room, self._left)
            found = self._file.read(wanted) if wanted else b""
            self._left = None if self._left is None else self._left - len(found)
        buffer[: len(found)] = found
        return len(found)


@dataclass(frozen=True, slots=True)
class RecordGroup:
    """Records that stand together: how many, of how many bytes, and where they begin."""

    begin: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class OpenedFileSplit:
    """Pieces of a file, to its end, and the types that it declares."""

    pieces: Iterator[RecordGroup]
    types: Mapping[str, DataType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SplitTarget:
    """What records are read for: a dataset, and the columns that are assumed."""

    dataset: ResolvedDataset
    schema: Mapping[str, DataType]


def _no_columns(first: int) -> ColumnarRecords | None:
    del first
    return None


@dataclass(frozen=True, slots=True)
class Portion:
    """Some records of a split, in their order.

    Attributes:
        count: how many there are.
        records: each of them, for the exact reader.
        chunk: all of them as columns, given the index in the file of the first; None when a value
            must be looked at.
    """

    count: int
    records: Callable[[], Iterator[RawRecord]]
    chunk: Callable[[int], ColumnarRecords | None] = _no_columns


#: (content, dataset, most bytes of a piece of text, where the first piece begins) → pieces. Raises
#: UnreadableFileError.
Opener: TypeAlias = Callable[[BinaryIO, ResolvedDataset, int, int], OpenedFileSplit]
#: (content, split, what is wanted) → portions. Raises UnreadableFileError.
Reader: TypeAlias = Callable[[BinaryIO, Split, SplitTarget], Iterator[Portion]]


@dataclass(frozen=True, slots=True)
class SplitFormat:
    """A format.

    Attributes:
        pieces: where a file may be cut.
        portions: the records of a split.
        damage: what a portion raises when its file is damaged.
        builder: types columns.
        declares_types: whether files say what their columns are; else the values do.
        is_read_whole: whether a compressed file is read by one task, uncut.
    """

    pieces: Opener
    portions: Reader
    damage: tuple[type[Exception], ...] = ()
    builder: Builder = build
    declares_types: bool = True
    is_read_whole: bool = False


_AVRO_ROWS = 16_384
_NOT_PLAIN = (Array, MapType, Struct, Void)


def _pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> OpenedFileSplit:
    del dataset, size
    types, _ = opened_avro(file)
    header = header_of(file)
    blocks = blocks_of(file, header, max(begin, len(header)))
    return OpenedFileSplit((RecordGroup(*block) for block in blocks), types)


def _portions(file: BinaryIO, split: Split, wanted: SplitTarget) -> Iterator[Portion]:
    opened_avro(file)
    header = header_of(file)
    # One that is read whole begins where its header does.
    begin = max(split.begin, len(header))
    types, values = opened_avro(part_of(file, header, begin, split.end))
    while portion := list(islice(values, _AVRO_ROWS)):
        yield Portion(
            len(portion),
            partial(records_of_values, iter(portion)),
            partial(_chunk, portion, types, split, wanted),
        )


def _chunk(
    values: Sequence[Mapping[str, Any]],
    types: Mapping[str, DataType],
    split: Split,
    wanted: SplitTarget,
    first: int,
) -> ColumnarRecords | None:
    """The records as columns, where the file declares the types that the columns have."""
    for name, kind in types.items():
        if isinstance(kind, _NOT_PLAIN) or wanted.schema.get(name) != kind:
            return None
    try:
        arrays = {
            name: pa.array([value[name] for value in values], arrow_type(kind))
            for name, kind in types.items()
        }
        rows = pa.RecordBatch.from_pydict(arrays)
        columns = typed_columns(rows, wanted.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # UUIDs, times of day, and what does not fit: the exact reader knows.
        return None
    if columns is None:
        return None

    def raw(index: int) -> bytes:
        ((text, _),) = records_of_values(iter(values[index : index + 1]))
        return text

    return ColumnarRecords(split.file, first, len(values), rows.nbytes, columns, raw)


AVRO: Final = SplitFormat(_pieces, _portions)


_PIECE_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 4 * 1024 * 1024
_ROWS = 16_384


def _json_pieces(
    file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int
) -> OpenedFileSplit:
    del dataset
    if not begin:
        refuse_document(file)
    return OpenedFileSplit(_line_pieces(file, min(size, _PIECE_BYTES), begin))


def _line_pieces(file: BinaryIO, size: int, first: int) -> Iterator[RecordGroup]:
    for begin, block in blocks(file, size, begin=first):
        yield RecordGroup(begin, count_records(block, at_start=begin == 0), len(block))


def _json_portions(file: BinaryIO, split: Split, wanted: SplitTarget) -> Iterator[Portion]:
    keys = wanted.dataset.landing.delivery.record_keys
    if keys is not None:
        yield from _in_portions(open_documents(file, 0, keys).records)
        return
    if not split.begin:
        # The planner does not look into a file that is read whole.
        refuse_document(file)
    for begin, block in blocks(file, _BLOCK_BYTES, begin=split.begin, end=split.end):
        text = without_mark(block) if begin == 0 else block
        yield _json_portion(text, split, wanted)


def _json_portion(text: bytes, split: Split, wanted: SplitTarget) -> Portion:
    declared = wanted.dataset.events.columns
    count = count_records(text, at_start=False)
    if not wanted.dataset.is_spelled_as_usual:
        return Portion(count, lambda: map(parsed, records_of(text)))
    return Portion(
        count,
        lambda: map(parsed, records_of(text)),
        lambda first: chunk_of_lines(split.file, first, text, wanted.schema, declared),
    )


def _csv_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> OpenedFileSplit:
    """Pieces of whole records; a header line declares columns without types."""
    layout = CsvLayout.of(dataset)
    if not begin:
        refuse_other_delimiter(file, layout)
    records = placed_pieces(file, layout.dialect, skip=layout.skip_lines)
    types: dict[str, DataType] = {}
    if layout.names is None:
        _, header = next(records, (0, b""))
        types = dict.fromkeys(column_names(header, layout.dialect), Void()) if header else {}
    if begin:
        records = placed_pieces(file, layout.dialect, begin=begin)
    return OpenedFileSplit(_record_pieces(file, records, min(size, _PIECE_BYTES)), types)


def _record_pieces(
    file: BinaryIO, records: Iterator[tuple[int, bytes]], size: int
) -> Iterator[RecordGroup]:
    begin, count = -1, 0
    for place, _ in records:
        if begin < 0:
            begin = place
        elif place - begin >= size:
            yield RecordGroup(begin, count, place - begin)
            begin, count = place, 0
        count += 1
    if count:
        yield RecordGroup(begin, count, file.tell() - begin)


def _csv_portions(file: BinaryIO, split: Split, wanted: SplitTarget) -> Iterator[Portion]:
    """Records of a split as those of a file of its own, with the header line of its file."""
    layout = CsvLayout.of(wanted.dataset)
    header = b""
    if layout.names is None:
        _, header = next(placed_pieces(file, layout.dialect, skip=layout.skip_lines), (0, b""))
    # A line of its own also where there is no header: only the first may have a byte order mark.
    head = header + b"\n" if split.begin else b""
    own = part_of(file, head, split.begin, split.end)
    yield from _in_portions(open_csv(own, 0, layout.of_one_record()).records)


def _in_portions(records: Iterator[RawRecord]) -> Iterator[Portion]:
    held: list[RawRecord] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record[0])
        if len(held) >= _ROWS or size >= _PIECE_BYTES:
            yield Portion(len(held), partial(_given, held))
            held, size = [], 0
    if held:
        yield Portion(len(held), partial(_given, held))


def _given(records: list[RawRecord]) -> Iterator[RawRecord]:
    return iter(records)


JSON: Final = SplitFormat(_json_pieces, _json_portions, declares_types=False, is_read_whole=True)
CSV: Final = SplitFormat(_csv_pieces, _csv_portions, builder=text_builder, declares_types=False)


_COLUMNAR_ROWS = 65_536
_DAMAGE = (pa.ArrowException, OSError, ValueError)


def _parquet_pieces(
    file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int
) -> OpenedFileSplit:
    del dataset, size
    try:
        reader = opened_parquet(file)
        types = column_types(reader.schema_arrow)
        groups = [(n, reader.metadata.row_group(n)) for n in range(begin, reader.num_row_groups)]
    except _DAMAGE as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    return OpenedFileSplit((_group(n, group) for n, group in groups), types)


def _group(number: int, group: parquet.RowGroupMetaData) -> RecordGroup:
    sizes = (group.column(n).total_compressed_size for n in range(group.num_columns))
    return RecordGroup(number, group.num_rows, sum(sizes))


def _parquet_portions(file: BinaryIO, split: Split, wanted: SplitTarget) -> Iterator[Portion]:
    reader = parquet.ParquetFile(file)
    end = reader.num_row_groups if split.end is None else split.end
    for rows in exact_batches(file, _COLUMNAR_ROWS, list(range(split.begin, end))):
        yield _portion(rows, split, wanted)


def _orc_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> OpenedFileSplit:
    del dataset, size
    reader = opened_orc(file)
    return OpenedFileSplit(_stripes(reader, begin), column_types(reader.schema))


def _stripes(reader: orc.ORCFile, begin: int) -> Iterator[RecordGroup]:
    """Stripes of a file from one on. How many records one has, only one of its columns tells."""
    count, names = reader.nstripes, reader.schema.names
    size = reader.content_length // max(count, 1)
    if count == 1 or not names:
        yield RecordGroup(0, reader.nrows, reader.content_length)
        return
    for number in range(begin, count):
        try:
            rows = reader.read_stripe(number, names[:1]).num_rows
        except _DAMAGE:
            # The task that reads it says what is wrong.
            yield RecordGroup(number, 1, size)
            return
        yield RecordGroup(number, rows, size)


def _orc_portions(file: BinaryIO, split: Split, wanted: SplitTarget) -> Iterator[Portion]:
    reader = opened_orc(file)
    end = reader.nstripes if split.end is None else split.end
    for number in range(split.begin, end):
        stripe = reader.read_stripe(number)
        for first in range(0, stripe.num_rows, _COLUMNAR_ROWS):
            yield _portion(stripe.slice(first, _COLUMNAR_ROWS), split, wanted)


def _portion(rows: pa.RecordBatch, split: Split, wanted: SplitTarget) -> Portion:
    return Portion(
        rows.num_rows,
        partial(columnar_records_of, rows),
        lambda first: chunk_of_rows(split.file, first, rows, wanted.schema),
    )


PARQUET: Final = SplitFormat(_parquet_pieces, _parquet_portions, damage=_DAMAGE)
ORC: Final = SplitFormat(_orc_pieces, _orc_portions, damage=_DAMAGE)


KINDS: Final[Mapping[str, SplitFormat]] = {
    "avro": AVRO,
    "csv": CSV,
    "json": JSON,
    "orc": ORC,
    "parquet": PARQUET,
}
