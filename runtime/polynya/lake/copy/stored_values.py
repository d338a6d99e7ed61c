"""Which rows differ from the versions that a table has stored of them, reading few columns.

The rows of a step mostly differ in one and the same column, such as an amount or the time of a
change. Of a row group that column is read first which told most rows apart so far, and the others
only for the rows that have the same value there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.reading import TableFile, each_read
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles


@dataclass(slots=True)
class StoredValues:
    """The values of stored versions in data files, which PLACE numbers in their order.

    `columns` are those of the table by name, as Iceberg writes a schema in JSON. `keep`: the table
    is small, and what is read of it stays in memory.
    """

    store: DataFiles
    files: Sequence[TableFile]
    columns: Mapping[str, Mapping[str, Any]]
    keep: bool = False
    #: Of each column that was read, how many rows it was asked for, and how many it told apart.
    _told: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)

    @span("compare with stored values")
    def differ(self, rows: pa.Table, places: pa.Array) -> pa.Array:
        """Whether each row has another value in a column than its version at the same PLACE.

        The columns of `rows` are those to compare, in the types of the table. Raises OSError and
        pa.ArrowInvalid for a file that cannot be read.
        """
        if not rows.num_columns:
            return pa.repeat(pa.scalar(value=False), rows.num_rows)
        self._told = dict.fromkeys(rows.column_names, (0, 0)) | self._told
        order = pc.sort_indices(places)
        rows, places = rows.take(order), places.take(order)
        parts = self._parts(places)

        def differs(part: tuple[int, int, int, int]) -> pa.Array:
            number, group, start, stop = part
            first = number * FILE_STEP + self.files[number].starts[group]
            at = pc.subtract(places.slice(start, stop - start), first)
            return self._in_group(self.files[number], group, rows.slice(start, stop - start), at)

        found = each_read(self.store, differs, parts)
        return pa.concat_arrays([pa.array([], pa.bool_()), *found]).take(pc.sort_indices(order))

    def _parts(self, places: pa.Array) -> list[tuple[int, int, int, int]]:
        """A file, one of its row groups, and from where to where its rows are in sorted places."""
        groups = [
            (number, group) for number, file in enumerate(self.files) for group in file.groups
        ]
        first = [number * FILE_STEP + self.files[number].starts[group] for number, group in groups]
        bounds = [*pc.search_sorted(places, pa.array(first, pa.int64())).to_pylist(), len(places)]
        return [
            (*where, start, stop)
            for where, (start, stop) in zip(groups, pairwise(bounds), strict=True)
            if start < stop
        ]

    def _in_group(self, file: TableFile, group: int, rows: pa.Table, at: pa.Array) -> pa.Array:
        first = self._first(file, group, rows.column_names)
        if first is None or rows.num_columns == 1:
            return _any(self._unequal(file, group, rows, at).values())
        differs = self._unequal(file, group, rows.select([first]), at)[first]
        left = pc.indices_nonzero(pc.invert(differs))
        if not len(left):
            return differs
        others = rows.drop_columns([first]).take(left)
        more = _any(self._unequal(file, group, others, at.take(left)).values())
        return pc.replace_with_mask(differs, pc.invert(differs), more)

    def _first(self, file: TableFile, group: int, names: Sequence[str]) -> str | None:
        """The column to read before the others; None where no column told a row apart so far."""
        rates = {name: told / asked for name, (asked, told) in self._told.items() if asked}
        if not rates:
            return min(names, key=lambda name: file.size_bytes(group, self.columns[name]))
        best = max(rates, key=lambda name: rates[name])
        return best if rates[best] else None

    def _unequal(
        self, file: TableFile, group: int, rows: pa.Table, at: pa.Array
    ) -> dict[str, pa.Array]:
        """By column, whether each row has another value than is stored at these positions."""
        columns = [self.columns[name] for name in rows.column_names]
        stored = file.read_at(group, columns, at, keep=self.keep)
        found = {}
        for name in rows.column_names:
            found[name] = differs = unequal(rows.column(name), stored.column(name))
            # Threads may lose a count to each other: it only says what to read first.
            asked, told = self._told[name]
            self._told[name] = asked + len(differs), told + (pc.sum(differs).as_py() or 0)
        return found


def unequal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.Array:
    """Whether values are not the same for Spark's `<=>`: never NULL."""
    one, other = one.combine_chunks(), other.combine_chunks()
    same = pc.equal(one, other)
    if pa.types.is_floating(one.type):
        same = pc.or_(same, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    both = pc.and_(one.is_null(), other.is_null())
    return pc.invert(pc.or_(pc.fill_null(same, False), both))  # noqa: FBT003 - of Arrow


def any_unequal(rows: pa.Table, others: pa.Table) -> pa.Array:
    """Whether each of some rows has another value in a column than the other one in its place."""
    names = rows.column_names
    if not names:
        return pa.repeat(pa.scalar(value=False), rows.num_rows)
    return _any(unequal(rows.column(name), others.column(name)) for name in names)


def _any(masks: Iterable[pa.Array]) -> pa.Array:
    return reduce(pc.or_, masks)
