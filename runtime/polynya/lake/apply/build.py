"""Build the index of a data file: read its keys, sort them, keep their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from polynya.lake.apply.key_index_file import Identity, SortedRows, sorting
from polynya.lake.apply.records import POS
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import TableFile

#: Bytes of all key columns; at its peak a build takes three times as many and 16 for each row.
MOST_BYTES: Final = 256 * 1024 * 1024
#: Positions in an index are four bytes, and two of them are added.
MOST_ROWS: Final = 1 << 30

Column = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IndexSource:
    """A data file whose keys are wanted, and the columns that its index has.

    `kept` are values that are wanted of each row beside its place.
    """

    file: DataFile
    stored: TableFile
    keys: Sequence[Column]
    kept: Sequence[Column]

    @property
    def identity(self) -> Identity:
        """What an index of it is of."""
        return Identity(
            self.file.path,
            self.file.size_bytes,
            self.file.rows,
            tuple((key["id"], key["type"]) for key in self.keys),
            tuple((column["id"], column["type"]) for column in self.kept),
        )


def sorted_keys(source: IndexSource, *, most_bytes: int = MOST_BYTES) -> SortedRows | str:
    """The rows of a file by key, with their positions and what is kept of them; or why not.

    One column after the other, so that no more than two of them are in memory twice. Raises
    OSError.
    """
    stored = source.stored
    if sum(stored.footer.row_group(group).num_rows for group in stored.groups) != source.file.rows:
        return "the footer has another number of rows than the table"
    if source.file.rows > MOST_ROWS:
        return "too many rows"
    read: list[pa.Array] = []
    for column in source.keys:
        values = _column(stored, column, most_bytes - sum(key.nbytes for key in read))
        if values is None:
            return f"its keys take more than {most_bytes:,} bytes"
        if values.null_count:
            return "a key is NULL"
        read.append(values)
    order = sorting(read)
    keys = []
    while read:
        keys.append(read.pop(0).take(order))
    columns = [order.cast(pa.int32())]
    for column in source.kept:
        values = _column(stored, column, most_bytes)
        if values is None:
            return f"{column['name']} takes more than {most_bytes:,} bytes"
        columns.append(values.take(order))
    names = [POS, *(column["name"] for column in source.kept)]
    return SortedRows(tuple(keys), pa.RecordBatch.from_arrays(columns, names))


def _column(stored: TableFile, column: Column, most_bytes: int) -> pa.Array | None:
    """A column of a file in one piece; None when it takes more bytes. Raises OSError."""
    parts, size = [pa.array([], arrow_type(column["type"]))], 0
    for group in stored.groups:
        part = stored.read(group, [column]).column(0).combine_chunks()
        size += part.nbytes
        if size > most_bytes:
            return None
        parts.append(part)
    return pa.concat_arrays(parts)


def least_bytes(source: IndexSource) -> int:
    """What an index takes at least: all but the text in it."""
    columns = [*source.keys, *source.kept]
    return source.file.rows * (4 + sum(_width(column["type"]) for column in columns))


def _width(stored: Any) -> int:
    kind = arrow_type(stored)
    try:
        return 4 if kind is None else kind.bit_width // 8
    except ValueError:  # text and bytes, which have an offset
        return 4
