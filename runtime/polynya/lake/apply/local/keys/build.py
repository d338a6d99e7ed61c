"""Build the index of a data file: read its keys, sort them, keep the places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from polynya.lake.apply.local.events import POS
from polynya.lake.apply.local.keys.index_file import Identity
from polynya.lake.apply.local.keys.sorted_rows import SortedRows
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import StoredFile

#: Bytes of columns in memory; at its peak a build takes about three times as many.
MOST_BYTES: Final = 512 * 1024 * 1024
#: Positions in an index are four bytes, and two of them are added.
MOST_ROWS: Final = 1 << 30

Column = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A data file whose keys are wanted, and the columns that its index has.

    `kept` are values that are wanted of each row beside its place.
    """

    file: DataFile
    stored: StoredFile
    keys: Sequence[Column]
    kept: Sequence[Column]

    @property
    def identity(self) -> Identity:
        """What an index of it is of."""
        return Identity(
            self.file.path,
            self.file.size_bytes,
            self.file.rows,
            tuple((one["id"], one["type"]) for one in self.keys),
            tuple((one["id"], one["type"]) for one in self.kept),
        )


def sorted_keys(source: Source, *, most_bytes: int = MOST_BYTES) -> SortedRows | str:
    """The rows of a file by key, with their positions and what is kept of them; or why not.

    Raises OSError.
    """
    stored, size = source.stored, 0
    if sum(stored.footer.row_group(group).num_rows for group in stored.groups) != source.file.rows:
        return "the footer has another number of rows than the table"
    if source.file.rows > MOST_ROWS:
        return "too many rows"
    parts = []
    for group in stored.groups:
        part = stored.read(group, [*source.keys, *source.kept])
        size += part.nbytes
        if size > most_bytes:
            return f"its keys take more than {most_bytes:,} bytes"
        parts.append(part)
    read = pa.concat_tables(parts).combine_chunks()
    keys = [_whole(read, one) for one in source.keys]
    if any(key.null_count for key in keys):
        return "a key is NULL"
    return SortedRows.of(keys, POS, {one["name"]: _whole(read, one) for one in source.kept})


def _whole(table: pa.Table, column: Column) -> pa.Array:
    chunks = table.column(column["name"])
    # Text of more than 2 GiB would stay in pieces; `MOST_BYTES` is less.
    return pa.concat_arrays(chunks.chunks) if chunks.num_chunks else pa.array([], chunks.type)


def least_bytes(source: Source) -> int:
    """What an index takes at least: all but the text in it."""
    columns = [*source.keys, *source.kept]
    return source.file.rows * (4 + sum(_width(one["type"]) for one in columns))


def _width(stored: Any) -> int:
    kind = arrow_type(stored)
    try:
        return 4 if kind is None else kind.bit_width // 8
    except ValueError:  # text and bytes, which have an offset
        return 4
