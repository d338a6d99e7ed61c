"""Write rewritten Parquet files: the order of their rows, and one partition per file.

The keys and places of all rows are in memory, about 20 bytes per row, but never all rows. Where
keys are mixed across the files, the files are read once for each part of the rows that fits into
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type, as_stored
from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.files import DataFile, FilePartition
from polynya.lake.iceberg.partitions import Parting
from polynya.lake.iceberg.reading import TableFile, each_read, stored_file
from polynya.lake.iceberg.writing import footer_of, rows_of_group
from polynya.model.config.dataset import TableLayout
from polynya.model.headers import PARTITION, Partition
from polynya.store.data_files import DataFiles

Kind: TypeAlias = Literal["asc", "desc", "zorder"]
#: As Arrow calls the direction, and where it puts NULL: as Spark does.
_SORT_OPTIONS: Final[dict[str, tuple[str, str]]] = {
    "asc": ("ascending", "at_start"),
    "desc": ("descending", "at_end"),
}
#: No column of a table begins with it.
_NAN: Final = "\0nan"
#: Bits of a Z-order: what fits into a positive number of 64.
_ZORDER_BITS: Final = 60


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Columns by which rows are ordered, each with its direction; all of a Z-order have that.

    Columns are as Iceberg's specification writes them in JSON. `sources` are those that the
    partitions of the rows come from.
    """

    by: tuple[tuple[Mapping[str, Any], Kind], ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[Mapping[str, Any]],
        names: Sequence[tuple[str, Kind]],
        sources: Sequence[str] = (),
    ) -> Self:
        """By these columns of a table; none where one of them has values without an order."""
        columns_by_name = {column["name"]: column for column in columns}
        by = tuple((columns_by_name[name], kind) for name, kind in names if name in columns_by_name)
        if any(arrow_type(column["type"]) is None for column, _ in by):
            by = ()
        return cls(by, tuple(columns_by_name[name] for name in sources if name != PARTITION))

    @property
    def columns(self) -> list[Mapping[str, Any]]:
        """The columns that the order looks at."""
        return [column for column, _ in self.by]

    def indices(self, rows: pa.Table) -> pa.Array:
        """Where the rows of a table are found in their order; equal ones keep theirs."""
        if not self.by:
            return pa.arange(0, rows.num_rows)
        if self.by[0][1] == "zorder":
            return pc.sort_indices(_woven([rows.column(column["name"]) for column in self.columns]))
        keys: list[tuple[str, str, str]] = []
        for column, kind in self.by:
            if pa.types.is_floating(rows.schema.field(column["name"]).type):
                # Arrow has NaN next to NULL, Iceberg above all numbers.
                name = f"{_NAN}{len(keys)}"
                rows = rows.append_column(name, pc.is_nan(rows.column(column["name"])))
                keys.append((name, *_SORT_OPTIONS[kind]))
            keys.append((column["name"], *_SORT_OPTIONS[kind]))
        return pc.sort_indices(rows, sort_keys=keys)


def ordered_by(layout: TableLayout, shape: Shape, partition: str) -> list[tuple[str, Kind]]:
    """Columns that rows of a partition are ordered by in a new file; empty: they stay as they are.

    What the user asks for comes first. An apply finds records by ranges of their key. With history
    it looks into Prior for late events only, and finds them by age, the order in which the files
    are joined.
    """
    if layout.sort_by and partition in {Partition.CURRENT, Partition.PRIOR}:
        return [(column, term.order) for term in layout.sort_by for column in term.columns]
    if partition == Partition.CURRENT or (partition == Partition.PRIOR and not shape.history):
        return [(key, "asc") for key in shape.keys]
    return []


def _woven(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """The place of each row on a Z-order curve: rows that are alike in all columns are near.

    The bits of the ranks of a row's values, one of each column in turn.
    """
    bits = _ZORDER_BITS // len(columns)
    woven = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for number, column in enumerate(columns):
        rank = _rank(column, bits)
        for bit in range(bits):
            digit = pc.bit_wise_and(pc.shift_right(rank, bit), 1)
            place = bit * len(columns) + len(columns) - 1 - number
            woven = pc.bit_wise_or(woven, pc.shift_left(digit, place))
    return woven


def _rank(column: pa.ChunkedArray, bits: int) -> pa.Array:
    """Dense ranks of values, spread over a number of bits; NULL is lowest."""
    keys = [("", *_SORT_OPTIONS["asc"])]
    rank = pc.rank(column.combine_chunks(), sort_keys=keys, tiebreaker="dense")
    rank = pc.subtract(rank.cast(pa.int64()), 1)
    highest = pc.max(rank).as_py() or 1
    spare = max(0, bits - int(highest).bit_length())
    cut = max(0, int(highest).bit_length() - bits)
    return pc.shift_right(pc.shift_left(rank, spare), cut)


Column: TypeAlias = Mapping[str, Any]
#: A partition of Iceberg, and how many of the rows that follow each other are in it.
Cut: TypeAlias = tuple[FilePartition, int]
#: Bytes of decoded rows that are in memory at the same time, about, and rows at the most.
PART_BYTES: Final = 192 * 2**20
PART_ROWS: Final = 1_000_000
#: What a column of a row takes in memory at least, and its bytes in a file when they are decoded.
_COLUMN_BYTES, _DECODED = 8, 2


@dataclass(frozen=True, slots=True)
class Input:
    """A data file to rewrite: its number, and the positions of its deleted rows.

    A place is the number times FILE_STEP, plus the position in the file.
    """

    number: int
    file: DataFile
    dead: pa.Array

    def stored(self, store: DataFiles) -> TableFile:
        """Its footer, which is read once by a process. Raises OSError."""
        return stored_file(store, self.file.path)

    def live(self) -> pa.Array:
        """Positions of the rows that stay, ascending."""
        positions = pa.arange(0, self.file.rows)
        return positions.filter(pc.invert(pc.is_in(positions, value_set=self.dead)))


def places_in_order(
    store: DataFiles, inputs: Sequence[Input], order: RowOrder, parting: Parting | None = None
) -> tuple[pa.Array, list[Cut]]:
    """Places of all rows that stay, in their order, and how many of them each partition has.

    Without `parting` all rows stay in the partition of Iceberg that they are in. Raises OSError.
    """
    places = pa.concat_arrays(
        [
            pa.array([], pa.int64()),
            *(pc.add(source.live(), source.number * FILE_STEP) for source in inputs),
        ]
    )
    file = inputs[0].file
    if parting is None:
        cuts = [(file.slot, len(places))]
        if not order.columns:
            return places, cuts
        read = _read(store, inputs, order.columns)
        return places.take(order.indices(read)), cuts
    read = _read(store, inputs, [*order.columns, *order.sources])
    constant = pa.repeat(pa.scalar(file.partition, pa.string()), read.num_rows)
    codes, slots = parting.numbered(read.append_column(PARTITION, constant))
    places, codes = (array.take(order.indices(read)) for array in (places, codes))
    # The sort keeps the order of rows of one partition.
    by_slot = pc.sort_indices(codes)
    counts = {count["values"]: count["counts"] for count in pc.value_counts(codes).to_pylist()}
    return places.take(by_slot), [(slot, counts[n]) for n, slot in enumerate(slots)]


def _read(store: DataFiles, inputs: Sequence[Input], columns: Sequence[Column]) -> pa.Table:
    """Columns of the rows that stay, each once."""
    once = list({column["id"]: column for column in columns}.values())
    return pa.concat_tables(each_read(store, lambda source: _keys(store, source, once), inputs))


def _keys(store: DataFiles, source: Input, keys: Sequence[Column]) -> pa.Table:
    """Key columns of the rows that stay."""
    stored = source.stored(store)
    groups = [stored.read(group, keys) for group in stored.groups]
    return pa.concat_tables(groups).take(source.live())


def rows_in_order(
    store: DataFiles,
    inputs: Sequence[Input],
    columns: Sequence[Column],
    places: pa.Array,
    between: Callable[[], None],
) -> Iterator[pa.Table]:
    """The rows at these places in their order, in tables that fit into memory.

    `between` is called before each row group is read, and may raise. Raises OSError.
    """
    step = _part_rows(store, inputs, columns)
    for at in range(0, len(places), step):
        yield _rows_at(store, inputs, columns, places[at : at + step], between)


def _part_rows(store: DataFiles, inputs: Sequence[Input], columns: Sequence[Column]) -> int:
    rows = sum(source.file.rows for source in inputs)
    footers = [source.stored(store).footer for source in inputs]
    stored: int = sum(
        footer.row_group(group).total_byte_size
        for footer in footers
        for group in range(footer.num_row_groups)
    )
    width = _DECODED * stored // max(1, rows) + _COLUMN_BYTES * len(columns)
    return max(1, min(PART_ROWS, PART_BYTES // width))


def _rows_at(
    store: DataFiles,
    inputs: Sequence[Input],
    columns: Sequence[Column],
    places: pa.Array,
    between: Callable[[], None],
) -> pa.Table:
    """Rows at places: each row group that has some of them is read once."""
    order = pc.sort_indices(places)
    ascending = places.take(order)
    parts: list[tuple[Input, int, pa.Array]] = []
    for one in inputs:
        stored = one.stored(store)
        starts = pa.array([*stored.starts, one.file.rows], pa.int64())
        ends = pc.search_sorted(ascending, pc.add(starts, one.number * FILE_STEP)).to_pylist()
        for group in stored.groups:
            begin, end = ends[group], ends[group + 1]
            if begin < end:
                first = one.number * FILE_STEP + stored.starts[group]
                parts.append((one, group, pc.subtract(ascending[begin:end], first)))
    parts.sort(key=lambda part: (part[0].number, part[1]))

    def read(part: tuple[Input, int, pa.Array]) -> pa.Table:
        source, group, rows = part
        return rows_of_group(source.file, source.stored(store), group, columns).take(rows)

    tables: list[pa.Table] = []
    for at in range(0, len(parts), store.readers):
        between()
        tables += each_read(store, read, parts[at : at + store.readers])
    together = pa.concat_tables(tables, promote_options="default")
    # Where each place is among the ascending ones.
    return together.take(pc.sort_indices(order))


#: Rows of a row group: an apply skips those that have no touched key.
GROUP_ROWS: Final = 250_000


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file that was written; `footer` as `footer_of` gives it."""

    path: str
    slot: FilePartition
    rows: int
    size_bytes: int
    footer: bytes


@dataclass(slots=True)
class FileWriter:
    """New files of at most `most_rows` rows each.

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
