"""By which columns rows are ordered in a new file, and the order that this gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.model.config.dataset import Layout
from polynya.model.contract.headers import PARTITION, Partition

Kind: TypeAlias = Literal["asc", "desc", "zorder"]
#: As Arrow calls the direction, and where it puts NULL: as Spark does.
_HOW: Final[dict[str, tuple[str, str]]] = {
    "asc": ("ascending", "at_start"),
    "desc": ("descending", "at_end"),
}
#: No column of a table begins with it.
_NAN: Final = "\0nan"
#: Bits of a Z-order: what fits into a positive number of 64.
_BITS: Final = 60


@dataclass(frozen=True, slots=True)
class Order:
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
        known = {one["name"]: one for one in columns}
        by = tuple((known[name], kind) for name, kind in names if name in known)
        if any(arrow_type(column["type"]) is None for column, _ in by):
            by = ()
        return cls(by, tuple(known[name] for name in sources if name != PARTITION))

    @property
    def columns(self) -> list[Mapping[str, Any]]:
        """The columns that the order looks at."""
        return [column for column, _ in self.by]

    def indices(self, rows: pa.Table) -> pa.Array:
        """Where the rows of a table are found in their order; equal ones keep theirs."""
        if not self.by:
            return pa.arange(0, rows.num_rows)
        if self.by[0][1] == "zorder":
            return pc.sort_indices(_woven([rows.column(one["name"]) for one in self.columns]))
        keys: list[tuple[str, str, str]] = []
        for column, kind in self.by:
            if pa.types.is_floating(rows.schema.field(column["name"]).type):
                # Arrow has NaN beside NULL, Iceberg above all numbers.
                name = f"{_NAN}{len(keys)}"
                rows = rows.append_column(name, pc.is_nan(rows.column(column["name"])))
                keys.append((name, *_HOW[kind]))
            keys.append((column["name"], *_HOW[kind]))
        return pc.sort_indices(rows, sort_keys=keys)


def ordered_by(layout: Layout, shape: Shape, partition: str) -> list[tuple[str, Kind]]:
    """Columns that rows of a partition are ordered by in a new file; empty: they stay as they are.

    What the user asks for comes first. An apply finds records by ranges of their key. With history
    it looks into Prior for late events only, and finds them by age, the order in which the files
    are joined.
    """
    if layout.sort_by and partition in {Partition.CURRENT, Partition.PRIOR}:
        return [(column, one.order) for one in layout.sort_by for column in one.columns]
    if partition == Partition.CURRENT or (partition == Partition.PRIOR and not shape.history):
        return [(key, "asc") for key in shape.keys]
    return []


def _woven(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """The place of each row on a curve on which rows that are alike in all columns are near.

    The bits of the ranks of a row's values, one of each column in turn.
    """
    each = _BITS // len(columns)
    found = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for number, column in enumerate(columns):
        rank = _rank(column, each)
        for bit in range(each):
            one = pc.bit_wise_and(pc.shift_right(rank, bit), 1)
            place = bit * len(columns) + len(columns) - 1 - number
            found = pc.bit_wise_or(found, pc.shift_left(one, place))
    return found


def _rank(column: pa.ChunkedArray, bits: int) -> pa.Array:
    """Dense ranks of values, spread over so many bits; NULL is lowest."""
    keys = [("", *_HOW["asc"])]
    rank = pc.rank(column.combine_chunks(), sort_keys=keys, tiebreaker="dense")
    rank = pc.subtract(rank.cast(pa.int64()), 1)
    highest = pc.max(rank).as_py() or 1
    spare = max(0, bits - int(highest).bit_length())
    cut = max(0, int(highest).bit_length() - bits)
    return pc.shift_right(pc.shift_left(rank, spare), cut)
