"""Some records of a file as columns, and the text of each for the day that one is rejected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import BinaryIO

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.batch import FilePart
from polynya.formats.columnar.columns import typed_columns
from polynya.formats.columnar.json_columns import is_met, typed_lines
from polynya.formats.columnar.lines import blocks, count_records, records_of, without_mark
from polynya.formats.records.columnar import records_of as columnar_records
from polynya.model.datatypes import DataType

_ROWS = 65_536
_BLOCK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
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

    def head(self, count: int) -> Chunk:
        """Its first records."""
        if count >= self.count:
            return self
        columns = {name: column.slice(0, count) for name, column in self.columns.items()}
        size = self.size_bytes * count // self.count
        return replace(self, count=count, size_bytes=size, columns=columns)


def chunk_of_rows(
    file: str, first: int, rows: pa.RecordBatch, schema: Mapping[str, DataType]
) -> Chunk | None:
    """A chunk of rows of a columnar file; None when they have to be read exactly.

    Raises `pa.ArrowInvalid` for a text that is not UTF-8.
    """
    columns = typed_columns(rows, schema)
    if columns is None:
        return None

    def raw(index: int) -> bytes:
        ((text, _),) = columnar_records(rows.slice(index, 1))
        return text

    return Chunk(file, first, rows.num_rows, rows.nbytes, columns, raw)


def chunk_of_lines(
    file: str, first: int, text: bytes, schema: Mapping[str, DataType], declared: Collection[str]
) -> Chunk | None:
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
    return Chunk(file, first, count, len(text), columns, lambda index: lines()[index], met)


def chunks_of_columns(
    reader: parquet.ParquetFile, part: FilePart, schema: Mapping[str, DataType]
) -> Iterator[Chunk | None]:
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
) -> Iterator[Chunk | None]:
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
