"""Rows of a step compared with Current in memory: the events that `reload.differences` would make.

Where a step has few affected keys, and these are the keys of the table, its rows come to the
driver. Their stored versions are found as an apply finds them, once for the comparison and for the
apply. Values are equal here when they are for Spark: NULL equals NULL, NaN equals NaN, and 0.0
equals -0.0. Tables with nested values are left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.records import DELETES, IN_CURRENT, PLACE, TouchedRecords, is_exact
from polynya.lake.apply.run import ApplyRun, FoundVersions
from polynya.lake.copy.rows import can_hash, key_hashes
from polynya.lake.copy.stored_search import StoredSearch
from polynya.lake.copy.stored_values import StoredValues, any_unequal
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import key_hash
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.reading import stored_file
from polynya.lake.spark.api import DataFrame, PySparkException, SparkSession
from polynya.lake.spark.arrow import collected_rows, spark_schema
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Reloading
from polynya.model import headers as h
from polynya.model.types import DOUBLE, FLOAT, DataType
from polynya.observe.trace import span

#: Whether each of some rows has other values than the stored row beside it (PLACE, and columns that
#: are known). Raises OSError and pa.ArrowInvalid for a file that cannot be read.
Compare: TypeAlias = Callable[[pa.Table, pa.Table], pa.Array]


@dataclass(frozen=True, slots=True)
class CountedKeys:
    """How many rows there are, how many lack a value in their key, how many keys there are."""

    rows: int
    lacking: int
    distinct: int


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The events of a step, in the columns of Changes with `KEY_HASH`, and their versions."""

    events: pa.Table
    found: FoundVersions

    def count(self) -> int:
        """How many events there are."""
        return int(self.events.num_rows)


def few_rows(
    run: ApplyRun,
    search: StoredSearch,
    rows: DataFrame | pa.Table,
    schema: Mapping[str, DataType],
) -> FewRows | str:
    """The rows of a step in the memory of the driver, or why they stay in Spark, as a sentence.

    `schema` has the types of the table, in which the rows are. Their stored versions are looked for
    while Spark computes them.
    """
    reason = search.why_not or _why_not_few(run, schema)
    if reason is not None:
        return reason
    if isinstance(rows, pa.Table):
        rows = rows.combine_chunks()
        hashes = hashes_of(run.target, run.shape, rows.select(list(run.shape.keys)))
        return FewRows(run.shape, rows.append_column(h.KEY_HASH, hashes), search.found(run))
    hashed = rows.selectExpr("*", f"{key_hash(run.shape)} AS {h.KEY_HASH}")
    try:
        computed = collected_rows(hashed).combine_chunks()
    except PySparkException as error:
        # Such as more bytes than the driver takes, where keys repeat. Spark says what is wrong.
        return f"its rows were not collected: {str(error).splitlines()[0][:200]}"
    return FewRows(run.shape, computed, search.found(run))


def _why_not_few(run: ApplyRun, schema: Mapping[str, DataType]) -> str | None:
    if not all(is_exact(schema[key]) for key in run.shape.keys):
        return "a key has a type whose values are not compared exactly"
    if not all(is_exact(kind) or kind in (FLOAT, DOUBLE) for kind in schema.values()):
        return "a column has a type that Spark compares"
    return None


@dataclass(frozen=True, slots=True)
class FewRows:
    """The rows of a step in memory, in the types of the table, with `KEY_HASH`.

    `stored` are the versions that the table has of the records with affected keys, or why Spark
    finds them.
    """

    shape: Shape
    rows: pa.Table
    stored: FoundVersions | str

    @property
    def counted(self) -> CountedKeys:
        """The keys of the rows."""
        rows, keys = self.rows, list(self.shape.keys)
        lacking = pa.repeat(pa.scalar(value=False), rows.num_rows)
        for key in keys:
            lacking = pc.or_(lacking, rows.column(key).combine_chunks().is_null())
        distinct = rows.select(keys).group_by(keys).aggregate([]).num_rows
        return CountedKeys(rows.num_rows, pc.sum(lacking).as_py() or 0, distinct)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows for Spark."""
        return in_spark(spark, self.rows.drop_columns([h.KEY_HASH]))

    @span("compare in memory")
    def compared(self, run: ApplyRun, step: Reloading) -> ComparedRows | str:
        """The events that turn the rows with affected keys into these, or why Spark finds them.

        `run` has the shape of the table as the step leaves it.
        """
        shape, found = run.shape, self.stored
        if isinstance(found, str):
            return found
        if shape.columns != self.shape.columns:
            return "its columns change with this step"
        columns = {column["name"]: column for column in run.target.table.columns()}
        types = {name: arrow_type(columns[name]["type"]) for name in shape.data}
        try:
            rows = _in_types(self.rows, types)
        except pa.ArrowException as error:
            return f"a value does not fit the table: {error}"
        try:
            changed, gone = _differing(
                rows, _live(found, types, shape), shape, _compare(run, found)
            )
        except (OSError, pa.ArrowInvalid) as error:
            run.target.table.forget_deletes()
            return f"a file was not read: {error}"
        hashes = hashes_of(run.target, shape, gone.select(list(shape.keys)))
        gone = gone.append_column(h.KEY_HASH, hashes)
        events = pa.concat_tables(
            [events_of(changed, shape, types, step), events_of(gone, shape, types, step)]
        )
        return ComparedRows(events, found)


def _in_types(rows: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The rows in the types of the table; a column that they lack is NULL."""
    arrays = {
        name: rows.column(name).combine_chunks().cast(kind)
        if name in rows.column_names
        else pa.nulls(rows.num_rows, kind)
        for name, kind in types.items()
    }
    return pa.table({**arrays, h.KEY_HASH: rows.column(h.KEY_HASH)})


def _live(found: FoundVersions, types: Mapping[str, pa.DataType], shape: Shape) -> pa.Table:
    """The rows that Current shows of the versions that were found: PLACE, and what they know."""
    if not found.rows.num_rows:
        data = {name: pa.array([], kind) for name, kind in types.items()}
        return pa.table({PLACE: pa.array([], pa.int64()), **data})
    deleted = pc.is_in(found.rows.column(h.OPERATION), value_set=DELETES)
    live = pc.and_not(found.rows.column(IN_CURRENT), deleted)
    known = [name for name in shape.data if name in found.rows.column_names]
    return found.rows.filter(live).select([PLACE, *known])


def _compare(run: ApplyRun, found: FoundVersions) -> Compare:
    """Compares values with those that are known of stored rows, or reads these."""
    store = run.target.table.reach().reads

    def compared(rows: pa.Table, stored: pa.Table) -> pa.Array:
        if isinstance(store, str) or set(rows.column_names) <= set(stored.column_names):
            return any_unequal(rows, stored)
        files = [stored_file(store, path) for path in found.paths]
        columns = {column["name"]: column for column in run.target.table.columns()}
        values = StoredValues(store, files, columns, found.is_small)
        return values.differ(rows, stored.column(PLACE).combine_chunks())

    return compared


def _differing(
    rows: pa.Table, stored: pa.Table, shape: Shape, compare: Compare
) -> tuple[pa.Table, pa.Table]:
    """Rows that are new or not as they are stored, and the keys of stored rows not among them.

    The first ones with their operation, `i` or `u`, the others with `d`.
    """
    records = TouchedRecords([rows.column(key).combine_chunks() for key in shape.keys])
    of_stored = records.of([stored.column(key).combine_chunks() for key in shape.keys])
    at = records.places(of_stored).take(records.numbers)
    known = at.is_valid()
    same_keys = rows.select(list(shape.values)).filter(known)
    unlike = compare(same_keys.combine_chunks(), stored.take(at.drop_null()))
    differs = pc.replace_with_mask(pc.invert(known), known, unlike)
    operations = pc.if_else(known, "u", "i")
    changed = rows.append_column(h.OPERATION, operations).filter(differs)
    gone = stored.select(list(shape.keys)).filter(of_stored.is_null())
    return changed, gone.append_column(h.OPERATION, pa.repeat("d", gone.num_rows))


def in_spark(spark: SparkSession, rows: DataFrame | pa.Table) -> DataFrame:
    """Rows for Spark, wherever they are."""
    if isinstance(rows, pa.Table):
        return spark.createDataFrame(rows, schema=spark_schema(rows.schema))
    return rows


def hashes_of(target: DatasetTable, shape: Shape, keys: pa.Table) -> pa.Array:
    """`KEY_HASH` of some keys, of any type."""
    if can_hash(shape):
        return key_hashes([keys.column(key).combine_chunks() for key in shape.keys])
    if not keys.num_rows:
        return pa.array([], pa.binary())
    hashed = in_spark(target.spark, keys).selectExpr(f"{key_hash(shape)} AS {h.KEY_HASH}")
    return collected_rows(hashed).column(h.KEY_HASH).combine_chunks()


def events_of(
    rows: pa.Table, shape: Shape, types: Mapping[str, pa.DataType], step: Reloading
) -> pa.Table:
    """Rows with their operation and hash as events of a step: a delete has only its key."""
    count, text = rows.num_rows, pa.string()
    deletes = pc.is_in(rows.column(h.OPERATION), value_set=DELETES)
    kept: Sequence[str] = shape.keys
    data = {
        name: rows.column(name)
        if name in kept
        else pc.if_else(deletes, pa.scalar(None, types[name]), rows.column(name))
        if name in rows.column_names
        else pa.nulls(count, types[name])
        for name in shape.data
    }
    return pa.table(
        {
            **data,
            h.KEY_HASH: rows.column(h.KEY_HASH),
            h.CHANGE_IDENTIFIER: pa.repeat(step.place, count),
            h.SEQUENCE_TAIL: pa.repeat(step.tail, count),
            h.SOURCE_POSITION: pa.nulls(count, text),
            h.OPERATION: rows.column(h.OPERATION),
            h.TIMESTAMP: pa.repeat(pa.scalar(step.started_at, pa.timestamp("us", "UTC")), count),
            h.UNSENT: pa.nulls(count, text),
            h.OLD_KEY: pa.nulls(count, text),
        }
    )
