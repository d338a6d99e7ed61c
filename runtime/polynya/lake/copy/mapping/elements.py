"""Elements of arrays as rows, in Arrow: which record each row is of, its element, its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.values.arrow_types import arrow_type
from polynya.model.datatypes import INT, Array, DataType, Struct, Void
from polynya.transform.unnesting import ArrayPath, element_column, ordinal_column


@dataclass(frozen=True, slots=True)
class Typed:
    """A column with its type."""

    array: pa.Array
    kind: DataType


@dataclass(frozen=True, slots=True)
class Elements:
    """The rows of records.

    `records` has the index of the record of each row, ascending; None where each record is one row.
    `numbers` counts the rows of a record from 0. `columns` has the elements and their ordinals.
    """

    records: pa.Array | None
    numbers: pa.Array | None
    columns: Mapping[str, Typed]

    def of(self, values: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Values of the records, for each row."""
        whole = one_array(values)
        return whole if self.records is None else whole.take(self.records)


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    whole = values.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def nulls_of(kind: DataType, count: int) -> Typed:
    """A column of NULLs."""
    return Typed(pa.nulls(count, arrow_type(kind)), kind)


def at_path(column: Typed, names: Sequence[str]) -> Typed | None:
    """The field that names lead to through structs; None where something else is on the way."""
    for name in names:
        if isinstance(column.kind, Void):
            return column
        if not isinstance(column.kind, Struct):
            return None
        kind = dict(column.kind.fields).get(name)
        if kind is None:
            return nulls_of(Void(), len(column.array))
        place = [field for field, _ in column.kind.fields].index(name)
        column = Typed(pc.struct_field(column.array, [place]), kind)
    return column


def elements_of(rows: pa.Table, schema: Mapping[str, DataType], path: ArrayPath) -> Elements:
    """The rows that elements at a path make.

    A record without an element gives one row, whose element and ordinal are NULL. A value that is
    no array counts as its own only element.
    """
    count = rows.num_rows
    records: pa.Array = pa.array(range(count), pa.int64())
    columns: dict[str, Typed] = {}
    top = path.steps[0][0]
    source = (
        Typed(one_array(rows.column(top)), schema[top])
        if top in schema
        else nulls_of(Void(), count)
    )
    for depth, names in enumerate(path.steps, start=1):
        found = at_path(source, names[1:] if depth == 1 else names)
        parents, ordinals, source = _exploded(found or nulls_of(Void(), len(records)))
        records = records.take(parents)
        columns = {name: Typed(one.array.take(parents), one.kind) for name, one in columns.items()}
        columns[element_column(depth)] = source
        columns[ordinal_column(depth)] = Typed(ordinals, INT)
    return Elements(records, _numbers(records, count), columns)


def _exploded(column: Typed) -> tuple[pa.Array, pa.Array, Typed]:
    """For each element the index of its array, its ordinal, and the element."""
    count = len(column.array)
    if not isinstance(column.kind, Array):
        ordinals = pc.if_else(pc.is_valid(column.array), 1, None)
        return pa.array(range(count), pa.int64()), ordinals.cast(pa.int32()), column
    lengths = pc.fill_null(pc.list_value_length(column.array), 0).cast(pa.int64())
    flat = pc.list_flatten(column.array)
    parents = pc.list_parent_indices(column.array).cast(pa.int64())
    places: pa.Array = pa.array(range(len(flat)), pa.int64())
    empty = pc.indices_nonzero(pc.equal(lengths, 0)).cast(pa.int64())
    if len(empty):
        parents = pa.concat_arrays([parents, empty])
        places = pa.concat_arrays([places, pa.nulls(len(empty), pa.int64())])
        order = pc.sort_indices(
            pa.table({"p": parents, "n": places}), [("p", "ascending"), ("n", "ascending")]
        )
        parents, places = parents.take(order), places.take(order)
    ordinals = pc.add(pc.subtract(places, _starts(lengths).take(parents)), 1).cast(pa.int32())
    return parents, ordinals, Typed(flat.take(places), column.kind.element)


def _starts(lengths: pa.Array) -> pa.Array:
    """Where each of parts with these lengths begins."""
    return pc.subtract(pc.cumulative_sum(lengths), lengths)


def _numbers(records: pa.Array, count: int) -> pa.Array:
    """The number of each row within its record; every record has one row at least."""
    if not count:
        return records
    sizes: Any = pc.value_counts(records).field("counts")
    places = pa.array(range(len(records)), pa.int64())
    return pc.subtract(places, _starts(sizes).take(records))
