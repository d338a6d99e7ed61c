"""Parquet files written from rows that come in pieces, each file in one partition of Iceberg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.files import Slot
from polynya.lake.iceberg.staging import footer_of
from polynya.lake.maintenance.rewrite.order import Column, Cut
from polynya.store.data_files import DataFiles

#: Rows of a row group: an apply skips those that have no touched key.
GROUP_ROWS: Final = 250_000


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that was written; `footer` as `footer_of` gives it."""

    path: str
    slot: Slot
    rows: int
    size_bytes: int
    footer: bytes


@dataclass(slots=True)
class FileWriter:
    """New files of so many rows each at most.

    Attributes:
        store: gets the files, each at the location that `path` has for its number.
        columns: of the table.
        empty: a table without rows that has the columns of the files.
        most_rows: of a file.
        cuts: how many rows go to each partition of Iceberg, in the order in which they come.
    """

    store: DataFiles
    path: Callable[[int], str]
    columns: Sequence[Column]
    empty: pa.Table
    most_rows: int
    cuts: Sequence[Cut]
    _done: list[NewFile] = field(default_factory=list)
    _held: list[pa.Table] = field(default_factory=list)
    _held_rows: int = 0
    _rows: int = 0
    _cut: int = 0
    _in_cut: int = 0
    _stream: Any = None
    _writer: Any = None
    _footers: list[Any] = field(default_factory=list)

    def write(self, rows: pa.Table) -> None:
        """Add rows; they are in files when they are many enough."""
        at = 0
        while at < rows.num_rows:
            left = self.cuts[self._cut][1] - self._in_cut
            room = min(GROUP_ROWS, self.most_rows - self._rows, left) - self._held_rows
            some = rows.slice(at, room)
            self._held.append(some)
            self._held_rows += some.num_rows
            at += some.num_rows
            if some.num_rows == room:
                self._flush()

    def close(self) -> list[NewFile]:
        """End the last file; all that were written."""
        self._flush()
        self._end()
        return self._done

    def abandon(self) -> None:
        """Hold no file open. What was written is left."""
        if self._stream is not None:
            self._stream.close()

    def _flush(self) -> None:
        if not self._held_rows:
            return
        rows = pa.concat_tables([self.empty, *self._held], promote_options="default")
        rows = as_stored(rows, self.columns)
        if self._stream is None:
            self._stream = self.store.create(self.path(len(self._done)))
            self._writer = pq.ParquetWriter(
                self._stream, rows.schema, compression="zstd", compression_level=1,
                metadata_collector=self._footers,
            )  # fmt: skip
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        self._in_cut += rows.num_rows
        self._held, self._held_rows = [], 0
        if self._in_cut >= self.cuts[self._cut][1]:
            self._end()
            self._cut, self._in_cut = self._cut + 1, 0
        elif self._rows >= self.most_rows:
            self._end()

    def _end(self) -> None:
        if self._stream is None:
            return
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        slot, _ = self.cuts[self._cut]
        path, footer = self.path(len(self._done)), footer_of(self._footers.pop())
        self._done.append(NewFile(path, slot, self._rows, size, footer))
        self._stream, self._rows = None, 0
