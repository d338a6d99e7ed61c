"""Parquet files by row groups and ORC files by stripes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, Final

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats.errors import UnreadableFileError
from polynya.formats.loads import Split
from polynya.formats.native.columnar.chunks import chunk_of_rows
from polynya.formats.native.loads.kinds.kind import Kind, Opened, Piece, Portion, Wanted
from polynya.formats.records.columnar import (
    column_types,
    opened_orc,
    opened_parquet,
    records_of,
)
from polynya.formats.records.int96 import exact_batches
from polynya.model.config.dataset import ResolvedDataset

_ROWS = 65_536
_DAMAGE = (pa.ArrowException, OSError, ValueError)


def _parquet_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> Opened:
    del dataset, size
    try:
        reader = opened_parquet(file)
        types = column_types(reader.schema_arrow)
        groups = [(n, reader.metadata.row_group(n)) for n in range(begin, reader.num_row_groups)]
    except _DAMAGE as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    return Opened((_group(n, group) for n, group in groups), types)


def _group(number: int, group: parquet.RowGroupMetaData) -> Piece:
    sizes = (group.column(n).total_compressed_size for n in range(group.num_columns))
    return Piece(number, group.num_rows, sum(sizes))


def _parquet_portions(file: BinaryIO, split: Split, wanted: Wanted) -> Iterator[Portion]:
    reader = parquet.ParquetFile(file)
    end = reader.num_row_groups if split.end is None else split.end
    for rows in exact_batches(file, _ROWS, list(range(split.begin, end))):
        yield _portion(rows, split, wanted)


def _orc_pieces(file: BinaryIO, dataset: ResolvedDataset, size: int, begin: int) -> Opened:
    del dataset, size
    reader = opened_orc(file)
    return Opened(_stripes(reader, begin), column_types(reader.schema))


def _stripes(reader: orc.ORCFile, begin: int) -> Iterator[Piece]:
    """Stripes of a file from one on. How many records one has, only one of its columns tells."""
    count, names = reader.nstripes, reader.schema.names
    size = reader.content_length // max(count, 1)
    if count == 1 or not names:
        yield Piece(0, reader.nrows, reader.content_length)
        return
    for number in range(begin, count):
        try:
            rows = reader.read_stripe(number, names[:1]).num_rows
        except _DAMAGE:
            # The task that reads it says what is wrong.
            yield Piece(number, 1, size)
            return
        yield Piece(number, rows, size)


def _orc_portions(file: BinaryIO, split: Split, wanted: Wanted) -> Iterator[Portion]:
    reader = opened_orc(file)
    end = reader.nstripes if split.end is None else split.end
    for number in range(split.begin, end):
        stripe = reader.read_stripe(number)
        for first in range(0, stripe.num_rows, _ROWS):
            yield _portion(stripe.slice(first, _ROWS), split, wanted)


def _portion(rows: pa.RecordBatch, split: Split, wanted: Wanted) -> Portion:
    return Portion(
        rows.num_rows,
        partial(records_of, rows),
        lambda first: chunk_of_rows(split.file, first, rows, wanted.schema),
    )


PARQUET: Final = Kind(_parquet_pieces, _parquet_portions, damage=_DAMAGE)
ORC: Final = Kind(_orc_pieces, _orc_portions, damage=_DAMAGE)
