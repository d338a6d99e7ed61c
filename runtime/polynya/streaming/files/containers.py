"""Large files that are containers by their nature, cut into messages that are containers too."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats.errors import UnreadableFileError
from polynya.formats.records.avro import blocks_of, header_of, opened_avro
from polynya.formats.records.columnar import opened_orc, opened_parquet
from polynya.formats.records.int96 import exact_batches

#: A file is cut when it is larger, into parts of about so many bytes.
WHOLE_BYTES: Final = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Piece:
    """A message.

    Attributes:
        record: number of its first record in the file, from 0; for a line that of the line.
        value: its bytes.
        following: number of the first record after it.
        byte: where that one begins in the file, 0 when it is found by its number.
    """

    record: int
    value: bytes
    following: int
    byte: int = 0


#: (file, number of the first record that is wanted, size in bytes) → the messages
Cutter: TypeAlias = Callable[[BinaryIO, int, int], Iterator[Piece]]


def _parquet(file: BinaryIO, record: int, size: int) -> Iterator[Piece]:
    reader = opened_parquet(file)
    rows = _rows(reader.metadata.num_rows, size)
    at = 0
    # Group by group: the library would read ahead, and what is not wanted is not read.
    for group in range(reader.num_row_groups):
        end = at + reader.metadata.row_group(group).num_rows
        if end > record:
            batches = exact_batches(file, rows, [group])
            yield from _tables(batches, record, parquet.write_table, at)
        at = end


def _orc(file: BinaryIO, record: int, size: int) -> Iterator[Piece]:
    reader = opened_orc(file)
    rows = _rows(reader.nrows, size)
    stripes = (reader.read_stripe(number) for number in range(reader.nstripes))
    batches = (part.slice(at, rows) for part in stripes for at in range(0, part.num_rows, rows))
    yield from _tables(batches, record, orc.write_table)


def _rows(rows: int, size: int) -> int:
    """How many rows make a part of a file."""
    return max(1, rows * WHOLE_BYTES // max(1, size))


def _tables(
    batches: Iterator[pa.RecordBatch],
    record: int,
    write: Callable[[pa.Table, Any], None],
    at: int = 0,
) -> Iterator[Piece]:
    """The records of batches from one on; `at` is the number of the first one there."""
    for batch in batches:
        begin, at = at, at + batch.num_rows
        if at <= record:
            continue
        buffer = io.BytesIO()
        write(pa.Table.from_batches([batch.slice(max(0, record - begin))]), buffer)
        yield Piece(max(begin, record), buffer.getvalue(), at)


def _avro(file: BinaryIO, record: int, size: int) -> Iterator[Piece]:
    """The header again before some of the blocks; nothing is decoded."""
    del size
    opened_avro(file)
    header = header_of(file)
    at = 0
    held: list[bytes] = []
    first = at
    for begin, records, length in list(blocks_of(file, header, len(header))):
        if at >= record:
            file.seek(begin)
            held.append(file.read(length))
        else:
            first = at + records
        at += records
        if sum(map(len, held)) >= WHOLE_BYTES:
            yield Piece(first, header + b"".join(held), at)
            held, first = [], at
    if held:
        yield Piece(first, header + b"".join(held), at)


def _guarded(cut: Cutter) -> Cutter:
    def pieces(file: BinaryIO, record: int, size: int) -> Iterator[Piece]:
        try:
            yield from cut(file, record, size)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableFileError(f"damaged: {type(error).__name__} {error}") from error

    return pieces


#: By type of content. A damaged file raises UnreadableFileError.
CUTTERS: Final = {
    "parquet": _guarded(_parquet),
    "orc": _guarded(_orc),
    "avro": _guarded(_avro),
}
