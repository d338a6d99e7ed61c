"""Values of mapped columns: conversions, elements of arrays, expressions in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.spark.api import DataFrame, PySparkException, SparkSession
from polynya.lake.spark.arrow import kind_of
from polynya.model.names import literal, quote
from polynya.model.promotion import storage_type
from polynya.model.types import (
    BIGINT,
    DOUBLE,
    EMPTY,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
)
from polynya.transform.functions.core import ExpressionContext
from polynya.transform.mapping import ArrayPath, element_column, ordinal_column

#: The place of a record: the same on every run.
_ROW = "concat_ws(':', __file, CAST(__offset AS STRING))"


def place_of(landed: DataFrame, *, row: str = _ROW) -> ExpressionContext:
    """Rows that landed, as the place where expressions run; `row` is SQL that tells one of them."""

    def kinds(fragments: Sequence[str]) -> list[DataType]:
        named = [f"{sql} AS c{index}" for index, sql in enumerate(fragments)]
        return [kind_of(field.dataType) for field in landed.selectExpr(*named).schema.fields]

    spark = landed.sparkSession
    return ExpressionContext(kinds, lambda sql: _works(spark, sql), row)


@lru_cache(maxsize=1024)
def _works(spark: SparkSession, sql: str) -> bool:
    """Whether Spark computes an expression over nothing; the optimizer does it, without a job."""
    try:
        spark.sql(f"SELECT {sql}").collect()
    except PySparkException:
        return False
    return True


_ITEM = "`|item`"


def converted(sql: str, kind: DataType, target: DataType) -> str:
    """SQL of a value, that has a type, as one of another type: NULL where it is none.

    Structs are brought over field by field, by their names.
    """
    if kind == target or isinstance(target, Void):
        return sql
    if isinstance(kind, Void):
        return f"CAST(NULL AS {storage_type(target)})"
    if {kind, target} == {EMPTY, STRING}:
        # Empty objects are their text.
        return sql
    if isinstance(kind, Struct) and isinstance(target, Struct) and target != EMPTY:
        fields = dict(kind.fields)
        members = ", ".join(
            f"{literal(name)}, {_member(sql, name, fields.get(name), inner)}"
            for name, inner in target.fields
        )
        return f"IF({sql} IS NULL, NULL, named_struct({members}))"
    if isinstance(kind, Array) and isinstance(target, Array):
        item = f"`|item{sql.count('transform(')}`"
        return f"transform({sql}, {item} -> {converted(item, kind.element, target.element)})"
    if isinstance(kind, MapType) and isinstance(target, MapType) and kind.key == target.key:
        value = converted(_ITEM, kind.value, target.value)
        return f"transform_values({sql}, (`|key`, {_ITEM}) -> {value})"
    if target == STRING and isinstance(kind, Struct | Array | MapType):
        return f"to_json({sql})"
    return f"TRY_CAST({sql} AS {target})"


def holds_void(kind: DataType) -> bool:
    """Whether a type has a part that only had NULLs so far."""
    match kind:
        case Void():
            return True
        case Array(element):
            return holds_void(element)
        case MapType(key, value):
            return holds_void(key) or holds_void(value)
        case Struct(fields):
            return any(holds_void(inner) for _, inner in fields)
        case _:
            return False


def as_void(sql: str, kind: DataType, depth: int = 0) -> str:
    """SQL of a value in which Spark knows no type either where only NULLs were seen.

    There it is stored as text, which an expression would pass on as the type of its result.
    """
    if not holds_void(kind):
        return sql
    match kind:
        case Array(element):
            item = f"`|void{depth}`"
            return f"transform({sql}, {item} -> {as_void(item, element, depth + 1)})"
        case MapType(key, _) if holds_void(key):
            return f"IF({sql} IS NULL, NULL, map())"
        case MapType(_, value):
            item = f"`|void{depth}`"
            inner = as_void(item, value, depth + 1)
            return f"transform_values({sql}, (`|key{depth}`, {item}) -> {inner})"
        case Struct(fields):
            members = ", ".join(
                f"{literal(name)}, {as_void(f'{sql}.{quote(name)}', inner, depth)}"
                for name, inner in fields
            )
            return f"IF({sql} IS NULL, NULL, named_struct({members}))"
        case _:
            return "NULL"


def _member(sql: str, name: str, kind: DataType | None, target: DataType) -> str:
    if kind is None:
        return f"CAST(NULL AS {target})"
    return converted(f"{sql}.{quote(name)}", kind, target)


def misfit(sql: str, made: str, kind: DataType, target: DataType) -> str:
    """SQL that tells whether a value was lost, or changed, when `made` was made of it."""
    lost = f"({sql} IS NOT NULL AND {made} IS NULL)"
    whole = target in (INT, BIGINT) or isinstance(target, Decimal)
    if not whole or isinstance(kind, Struct | Array | MapType):
        return lost
    if kind in (INT, BIGINT, DOUBLE) or isinstance(kind, Decimal):
        return f"({lost} OR coalesce({made} <> {sql}, false))"
    if kind == STRING:
        # Text of a number may have more places than the type.
        return f"({lost} OR coalesce(CAST({made} AS DOUBLE) <> TRY_CAST({sql} AS DOUBLE), false))"
    return lost


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

    @property
    def without(self) -> pa.Array:
        """Whether a row is of a record, or of an outer element, that has no element."""
        depth = len(self.columns) // 2
        return pc.is_null(self.columns[ordinal_column(depth)].array)

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
    records: pa.Array = pa.arange(0, count)
    columns: dict[str, Typed] = {}
    top = path.steps[0][0]
    source = (
        Typed(one_array(rows.column(top)), schema[top])
        if top in schema
        else nulls_of(Void(), count)
    )
    for depth, names in enumerate(path.steps, start=1):
        array = at_path(source, names[1:] if depth == 1 else names)
        parents, ordinals, source = _exploded(array or nulls_of(Void(), len(records)))
        records = records.take(parents)
        columns = {
            name: Typed(column.array.take(parents), column.kind) for name, column in columns.items()
        }
        columns[element_column(depth)] = source
        columns[ordinal_column(depth)] = Typed(ordinals, INT)
    return Elements(records, _numbers(records, count), columns)


def _exploded(column: Typed) -> tuple[pa.Array, pa.Array, Typed]:
    """For each element the index of its array, its ordinal, and the element."""
    count = len(column.array)
    if not isinstance(column.kind, Array):
        ordinals = pc.if_else(pc.is_valid(column.array), 1, None)
        return pa.arange(0, count), ordinals.cast(pa.int32()), column
    lengths = pc.fill_null(pc.list_value_length(column.array), 0).cast(pa.int64())
    flat = pc.list_flatten(column.array)
    parents = pc.list_parent_indices(column.array).cast(pa.int64())
    places: pa.Array = pa.arange(0, len(flat))
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
    places = pa.arange(0, len(records))
    return pc.subtract(places, _starts(sizes).take(records))
