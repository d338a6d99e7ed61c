"""Where the splits of a file begin and end, and what the file declares about its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.batch import FilePart
from polynya.formats.errors import UnreadableFileError
from polynya.formats.loads import Split
from polynya.formats.native.columnar.lines import blocks, count_records
from polynya.formats.records.columnar import column_types
from polynya.model.datatypes import DataType

_BLOCK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """Records that stand together: how many, of how many bytes, and where they begin."""

    begin: int
    records: int
    size: int


@dataclass(frozen=True, slots=True)
class Opened:
    """The pieces of a file, from its start on, and the types that it declares."""

    pieces: Iterator[Piece]
    types: Mapping[str, DataType] = field(default_factory=dict)


#: (content, most bytes of a piece of text) → pieces
Opener: TypeAlias = Callable[[BinaryIO, int], Opened]


def parquet_pieces(file: BinaryIO, size: int) -> Opened:
    """The row groups of a Parquet file. Raises UnreadableFileError."""
    del size
    try:
        reader = parquet.ParquetFile(file)
        types = column_types(reader.schema_arrow)
        groups = [reader.metadata.row_group(n) for n in range(reader.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    return Opened((_group(n, group) for n, group in enumerate(groups)), types)


def _group(number: int, group: parquet.RowGroupMetaData) -> Piece:
    sizes = (group.column(n).total_compressed_size for n in range(group.num_columns))
    return Piece(number, group.num_rows, sum(sizes))


def json_pieces(file: BinaryIO, size: int) -> Opened:
    """Blocks of whole lines."""
    return Opened(_line_pieces(file, min(size, _BLOCK_BYTES)))


def _line_pieces(file: BinaryIO, size: int) -> Iterator[Piece]:
    for begin, block in blocks(file, size):
        yield Piece(begin, count_records(block, at_start=begin == 0), len(block))


PIECES: dict[str, Opener] = {
    "parquet": parquet_pieces,
    "json": json_pieces,
}


def splits_of(
    part: FilePart, pieces: Iterator[Piece], *, number: int, split_bytes: int, most_bytes: int
) -> tuple[list[Split], bool]:
    """Splits of a file from its record `part.start` on, and whether they reach its end.

    `number` is that of the first. They end after the one with which `most_bytes` are reached.
    """
    cut = _Cut(part, number)
    for piece in pieces:
        if cut.held and cut.held_bytes + piece.size > split_bytes:
            cut.close(piece.begin)
            if sum(split.size for split in cut.splits) >= most_bytes:
                return cut.splits, False
        cut.take(piece)
    if cut.held:
        cut.close(None)
    return cut.splits, True


@dataclass(slots=True)
class _Cut:
    """The splits of a file so far, and the pieces of the next one."""

    part: FilePart
    number: int
    splits: list[Split] = field(default_factory=list)
    held: list[Piece] = field(default_factory=list)
    held_bytes: int = 0
    records: int = 0
    before: int = 0

    def take(self, piece: Piece) -> None:
        """Hold a piece, unless all of it was read before."""
        if not self.held and self.records + piece.records <= self.part.start:
            self.records += piece.records
            self.before += piece.size
            return
        self.held.append(piece)
        self.held_bytes += piece.size

    def close(self, end: int | None) -> None:
        """Make a split of what is held."""
        self.splits.append(
            Split(
                number=self.number + len(self.splits),
                file=self.part.path,
                first=self.records,
                skip=max(self.part.start - self.records, 0),
                before=self.before,
                size=self.held_bytes,
                begin=self.held[0].begin,
                end=end,
            )
        )
        self.records += sum(piece.records for piece in self.held)
        self.before += self.held_bytes
        self.held, self.held_bytes = [], 0
