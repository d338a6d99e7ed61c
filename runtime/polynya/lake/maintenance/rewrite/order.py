"""In which order rows of several files are written, and how rows are read in that order.

Keys and places of all rows are in memory, about 20 bytes for each, but never all rows. Where keys
are mixed in the files, these are read once for each part of the rows that fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.deletes.positions import FILE_STEP
from polynya.lake.iceberg.files import DataFile, Slot
from polynya.lake.iceberg.parting.specs import Parting
from polynya.lake.iceberg.reading import StoredFile, each_read, stored_file
from polynya.lake.iceberg.rewriting import rows_of_group
from polynya.lake.maintenance.rewrite.sorting import Order
from polynya.model.contract.headers import PARTITION
from polynya.store.data_files import DataFiles

Column: TypeAlias = Mapping[str, Any]
#: A partition of Iceberg, and how many of the rows that follow each other are in it.
Cut: TypeAlias = tuple[Slot, int]
#: Bytes of decoded rows that are in memory at the same time, about, and rows at the most.
PART_BYTES: Final = 192 * 2**20
PART_ROWS: Final = 1_000_000
#: What a column of a row takes in memory at least, and its bytes in a file when they are decoded.
_COLUMN_BYTES, _DECODED = 8, 2


@dataclass(frozen=True, slots=True)
class Input:
    """A data file that is written again: its number, and the positions that are deleted.

    A place is the number times FILE_STEP, plus the position in the file.
    """

    number: int
    file: DataFile
    dead: pa.Array

    def stored(self, store: DataFiles) -> StoredFile:
        """Its footer, which is read once by a process. Raises OSError."""
        return stored_file(store, self.file.path)

    def live(self) -> pa.Array:
        """Positions of the rows that stay, ascending."""
        positions = pa.arange(0, self.file.rows)
        return positions.filter(pc.invert(pc.is_in(positions, value_set=self.dead)))


def places_in_order(
    store: DataFiles, inputs: Sequence[Input], order: Order, parting: Parting | None = None
) -> tuple[pa.Array, list[Cut]]:
    """Places of all rows that stay, in their order, and how many of them each partition has.

    Without `parting` all rows stay in the partition of Iceberg that they are in. Raises OSError.
    """
    places = pa.concat_arrays(
        [pa.array([], pa.int64()), *(pc.add(one.live(), one.number * FILE_STEP) for one in inputs)]
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
    places, codes = (one.take(order.indices(read)) for one in (places, codes))
    # The sort keeps the order of rows of one partition.
    by_slot = pc.sort_indices(codes)
    counts = {one["values"]: one["counts"] for one in pc.value_counts(codes).to_pylist()}
    return places.take(by_slot), [(slot, counts[n]) for n, slot in enumerate(slots)]


def _read(store: DataFiles, inputs: Sequence[Input], columns: Sequence[Column]) -> pa.Table:
    """Columns of the rows that stay, each once."""
    once = list({one["id"]: one for one in columns}.values())
    return pa.concat_tables(each_read(store, lambda one: _keys(store, one, once), inputs))


def _keys(store: DataFiles, one: Input, keys: Sequence[Column]) -> pa.Table:
    """Key columns of the rows that stay."""
    stored = one.stored(store)
    groups = [stored.read(group, keys) for group in stored.groups]
    return pa.concat_tables(groups).take(one.live())


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
    rows = sum(one.file.rows for one in inputs)
    footers = [one.stored(store).footer for one in inputs]
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
        one, group, rows = part
        return rows_of_group(one.file, one.stored(store), group, columns).take(rows)

    found: list[pa.Table] = []
    for at in range(0, len(parts), store.readers):
        between()
        found += each_read(store, read, parts[at : at + store.readers])
    together = pa.concat_tables(found, promote_options="default")
    # Where each place is among the ascending ones.
    return together.take(pc.sort_indices(order))
