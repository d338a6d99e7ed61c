"""Write a group of data files again, as Arrow; nothing is committed, and no lock is held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.deletes.positions import positions
from polynya.lake.iceberg.files import DataFile, Slot
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.reading import is_read_by, stored_file
from polynya.lake.iceberg.rewriting import no_rows
from polynya.lake.iceberg.staging import footer_of, new_location, written_file
from polynya.lake.maintenance.rewrite.facts import Seen
from polynya.lake.maintenance.rewrite.order import (
    Column,
    Cut,
    Input,
    places_in_order,
    rows_in_order,
)
from polynya.lake.maintenance.rewrite.plan import Group
from polynya.lake.maintenance.rewrite.sorting import Kind, Order
from polynya.observe.trace import count, span
from polynya.store.data_files import DataFiles

#: Rows of a row group: an apply skips those that have no touched key.
GROUP_ROWS: Final = 250_000


class GaveWayError(Exception):
    """Somebody wants the machine or the table, and what was begun was removed."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A staged file, and the place that each of its rows had before, in their order."""

    file: DataFile
    places: pa.Array


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """A group, and the files that are to take its place."""

    group: Group
    files: tuple[Rewritten, ...]

    @property
    def paths(self) -> list[str]:
        """Of the files that nobody needs if they are not committed."""
        return [one.file.path for one in self.files]

    @property
    def written_bytes(self) -> int:
        """What was written."""
        return sum(one.file.size_bytes for one in self.files)


def inputs_of(table: IcebergTable, seen: Seen, group: Group) -> list[Input] | str:
    """The files of a group as they are read, or why Arrow does not read them. Raises OSError."""
    store = table.reach()
    for why in (store.reads, store.writes):
        if isinstance(why, str):
            return why
    assert not isinstance(store.reads, str)
    columns = table.columns()
    found: list[Input] = []
    for one in group.files:
        if not is_read_by(store.reads, one.file.path):
            return "a file is in another place than the table"
        stored = stored_file(store.reads, one.file.path)
        if not stored.reads_all(columns):
            return "a file has columns that Arrow does not read as the table is now"
        dead = positions(seen.deleted.places, one.number)
        found.append(Input(one.number, one.file, stored, dead))
    return found


@span("write rows again", by="Arrow")
def stage_group(
    table: IcebergTable,
    group: Group,
    inputs: Sequence[Input],
    by: Sequence[tuple[str, Kind]],
    give_way: Callable[[], bool],
) -> StagedGroup:
    """Write the rows of a group that stay, ordered by columns of these names.

    Raises GaveWayError, with what it wrote removed, when it is to give way, and OSError.
    """
    reads, writes = table.reach().reads, table.reach().writes
    assert not isinstance(reads, str), "somebody looked"
    assert not isinstance(writes, str), "somebody looked"
    columns, java_files = table.columns(), table.java_files()
    moves = group.kind == "part" and java_files.parts_of(group.partition)
    parting = java_files.parting if moves else None
    # A single file keeps the order that it has.
    names = by if len(group.files) > 1 or group.kind == "part" else ()
    sources = () if parting is None else [name for name, _ in parting.sources]
    order = Order.of(columns, names, sources)
    places, cuts = places_in_order(reads, inputs, order, parting)
    if group.kind == "part" and parting is None:
        cuts = [(Slot(group.partition), len(places))]
    out = _Files(table, writes, columns, inputs, _sizes(len(places), group), cuts)

    def between() -> None:
        if give_way():
            raise GaveWayError

    try:
        for rows in rows_in_order(reads, inputs, columns, places, between):
            out.write(rows)
        written = out.close()
    except BaseException:
        out.remove()
        raise
    count("files_rewritten", len(inputs))
    at, files = 0, []
    for file in written:
        files.append(Rewritten(file, places[at : at + file.rows]))
        at += file.rows
    return StagedGroup(group, tuple(files))


def _sizes(rows: int, group: Group) -> int:
    """Rows of each new file but the last."""
    return ceil(rows / max(1, group.outputs))


@dataclass(slots=True)
class _Files:
    """New files of so many rows each at most, as they are written; each in one partition."""

    table: IcebergTable
    store: DataFiles
    columns: Sequence[Column]
    inputs: Sequence[Input]
    most_rows: int
    cuts: Sequence[Cut]
    _empty: pa.Table = field(init=False)
    _done: list[DataFile] = field(default_factory=list)
    _begun: list[str] = field(default_factory=list)
    _held: list[pa.Table] = field(default_factory=list)
    _held_rows: int = 0
    _rows: int = 0
    _cut: int = 0
    _in_cut: int = 0
    _stream: Any = None
    _writer: Any = None
    _footers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._empty = no_rows([one.stored for one in self.inputs], self.columns)

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

    def close(self) -> list[DataFile]:
        """End the last file; all that were written."""
        self._flush()
        self._end()
        return self._done

    def remove(self) -> None:
        """Take away what was written."""
        if self._stream is not None:
            self._stream.close()
        self.table.drop_files(self._begun)

    def _flush(self) -> None:
        if not self._held_rows:
            return
        rows = pa.concat_tables([self._empty, *self._held], promote_options="default")
        rows = as_stored(rows, self.columns)
        if self._stream is None:
            self._begun.append(new_location(self.table, ".parquet"))
            self._stream = self.store.create(self._begun[-1])
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
        count("files_written")
        slot, _ = self.cuts[self._cut]
        self._done.append(
            written_file(
                self.table, self._begun[-1], slot, footer_of(self._footers.pop()),
                rows=self._rows, size_bytes=size,
            )
        )  # fmt: skip
        self._stream, self._rows = None, 0
