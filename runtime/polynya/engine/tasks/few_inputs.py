"""Rows of the inputs of a step that are found in memory, so that Spark does not look for them.

What the analysis of a query says of its joins (`derived/restriction.py`) tells which columns of an
input have affected keys. Arrow reads the rows of the live view that have them, and these rows take
the place of the input; the query stays the user's. Columns that the query does not name are NULL
there. Where an input is not read in memory, the reason is told and Spark reads its view.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import pyarrow as pa

from polynya.derived.inputs import reads_history
from polynya.derived.plans import IncrementalPlan
from polynya.derived.restriction import (
    MatchedInput,
    covered_inputs,
    makes_all_rows,
    matched_inputs,
    named_columns,
    restrictable_inputs,
    told_inputs,
)
from polynya.lake.fold.live_views import columns_of
from polynya.lake.read.rows_by_value import rows_by_value
from polynya.lake.spark.api import DataFrame, SparkSession, functions
from polynya.lake.spark.arrow import spark_schema
from polynya.lake.table.dataset import DatasetTable
from polynya.model.names import quote
from polynya.model.types import DataType

log = logging.getLogger(__name__)

#: More values than this are looked for by Spark.
_MOST_VALUES: Final = 1_000_000
_MOST_BROADCAST_BYTES: Final = 32 * 1024 * 1024
_ROWS_OF_ONE_TASK: Final = 10_000


@dataclass(frozen=True, slots=True)
class SmallInputs:
    """The rows that count of some inputs, by the name of the input; `types` are all its columns.

    `is_whole`: all rows of the query over them have affected keys. `by_spark` says why Spark reads
    an input.
    """

    rows: Mapping[str, pa.Table]
    types: Mapping[str, Mapping[str, DataType]]
    is_whole: bool
    by_spark: str | None

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        """The rows for Spark, with all columns of the input in their order.

        Spark knows no size of them. Every task gets those that are joined with larger ones.
        """
        frames = {name: self._frame(spark, name, rows) for name, rows in self.rows.items()}
        largest = max(self.rows, key=lambda name: int(self.rows[name].nbytes), default=None)
        return {
            name: frame
            if (self.by_spark is None and name == largest)
            or self.rows[name].nbytes > _MOST_BROADCAST_BYTES
            else functions.broadcast(frame)
            for name, frame in frames.items()
        }

    def _frame(self, spark: SparkSession, name: str, rows: pa.Table) -> DataFrame:
        plain = spark.createDataFrame(rows, schema=spark_schema(rows.schema))
        if rows.num_rows > _ROWS_OF_ONE_TASK:
            # Each batch of 10,000 rows would be a task of its own.
            plain = plain.coalesce(spark.sparkContext.defaultParallelism)
        return plain.selectExpr(
            *(
                quote(column)
                if column in rows.column_names
                else f"CAST(NULL AS {kind}) AS {quote(column)}"
                for column, kind in self.types[name].items()
            )
        )


@dataclass(frozen=True, slots=True)
class FewInputRows:
    """Finds rows of the inputs of one step, by their names in the query.

    `before` and `now` are the snapshots of the internal tables, by their names.
    """

    tables: Mapping[str, DatasetTable]
    before: Mapping[str, int]
    now: Mapping[str, int]

    def affected_keys(
        self, plan: IncrementalPlan, changed: Mapping[str, pa.Table]
    ) -> pa.Table | str:
        """The values of `plan.columns` in the changed rows, before and now; or why not."""
        covered, told = covered_inputs(plan), told_inputs(plan)
        parts: list[pa.Table] = []
        for name, keys in changed.items():
            if not keys.num_rows:
                continue
            if name not in covered and name not in told:
                return f"{name}: its rows do not tell their affected keys"
            if (reason := self._why_not(name)) is not None:
                return f"{name}: {reason}"
            found: list[pa.Table] | str
            if name in covered:
                columns = self._named(name, covered[name])
                found = self._projected(name, keys, list(columns))
            else:
                for join in told[name]:
                    if (reason := self._why_not(join.other)) is not None:
                        return f"{join.other}: {reason}"
                last = told[name][-1].other
                columns = self._named(last, covered[last])
                found = self._joined(name, keys, told[name], list(columns))
            if isinstance(found, str):
                return f"{name}: {found}"
            parts += [
                pa.table({columns[column]: part.column(column) for column in part.column_names})
                for part in found
            ]
        if not parts:
            return "no row changed"
        parts = [part.select(list(plan.columns)) for part in parts]
        if any(part.schema != parts[0].schema for part in parts):
            return "its affected keys have several types"
        whole = pa.concat_tables(parts)
        return whole.group_by(list(plan.columns)).aggregate([])

    def _joined(
        self,
        name: str,
        keys: pa.Table,
        joins: Sequence[MatchedInput],
        columns: list[str],
    ) -> list[pa.Table] | str:
        """Columns of the rows that joins lead to from the rows with some keys, before and now."""
        (first,) = self._named(name, {joins[0].column: ""})
        found = self._projected(name, keys, [first])
        if isinstance(found, str):
            return found
        values = pa.concat_tables(found)
        for join, following in zip_longest(joins, joins[1:]):
            (column,) = self._named(join.other, {join.other_column: ""})
            (of_values,) = values.column_names
            # By an equality, NULL matches nothing.
            wanted = _distinct(values, {of_values: column}).drop_null()
            if wanted.num_rows > _MOST_VALUES:
                return f"{wanted.num_rows:,} values are looked for"
            wants = (
                columns if following is None else [*self._named(join.other, {following.column: ""})]
            )
            rows = self._rows(join.other, self.now, wants, wanted)
            if isinstance(rows, str):
                return f"{join.other}: {rows}"
            values = rows
        return [values]

    def _projected(self, name: str, keys: pa.Table, columns: list[str]) -> list[pa.Table] | str:
        """Columns of the rows with some keys, before and now; of the keys alone without reading."""
        if set(columns) <= set(keys.column_names):
            return [keys.select(columns)]
        parts = []
        for snapshots in (self.before, self.now):
            rows = self._rows(name, snapshots, columns, keys)
            if isinstance(rows, str):
                return rows
            parts.append(rows)
        return parts

    def restricted(self, plan: IncrementalPlan, keys: pa.Table) -> SmallInputs:
        """The rows that count of the inputs that can be read in memory."""
        named = named_columns(plan)
        found: dict[str, pa.Table] = {}
        reasons: dict[str, str] = {}
        for name, columns in restrictable_inputs(plan).items():
            if (reason := self._why_not(name)) is not None:
                reasons[name] = reason
            else:
                own = self._named(name, columns)
                wanted = _distinct(keys, {key: column for column, key in own.items()})
                self._read(name, wanted, named, found, reasons)
        for one in matched_inputs(plan):
            if one.name in found or one.name in reasons or one.other not in found:
                continue
            if (reason := self._why_not(one.name)) is not None:
                reasons[one.name] = reason
            else:
                (column,) = self._named(one.name, {one.column: ""})
                (other,) = self._named(one.other, {one.other_column: ""})
                wanted = _distinct(found[one.other], {other: column}).drop_null()
                self._read(one.name, wanted, named, found, reasons)
        covered = covered_inputs(plan)
        is_whole = any(name in covered and makes_all_rows(plan, name) for name in found)
        for name in plan.statement.inputs:
            if name not in found:
                reasons.setdefault(name, "its rows are not told by affected keys")
        types = {name: self._types(name) for name in found}
        by_spark = next((f"{name}: {reason}" for name, reason in reasons.items()), None)
        return SmallInputs(found, types, is_whole, by_spark)

    def _read(
        self,
        name: str,
        wanted: pa.Table,
        named: frozenset[str],
        found: dict[str, pa.Table],
        reasons: dict[str, str],
    ) -> None:
        if wanted.num_rows > _MOST_VALUES:
            reasons[name] = f"{wanted.num_rows:,} values are looked for"
            return
        columns = [column for column in self._types(name) if column.lower() in named]
        rows = self._rows(name, self.now, columns or wanted.column_names, wanted)
        if isinstance(rows, str):
            log.debug("%s is read by Spark: %s", name, rows)
            reasons[name] = rows
        else:
            found[name] = rows

    def _rows(
        self, name: str, snapshots: Mapping[str, int], columns: list[str], wanted: pa.Table
    ) -> pa.Table | str:
        table = self.tables[name]
        snapshot = snapshots[table.dataset.relations.internal]
        with rows_by_value(table, table.dataset, snapshot) as view:
            return view if isinstance(view, str) else view.find(columns, wanted)

    def _why_not(self, name: str) -> str | None:
        """Why an input is not read in memory, whatever its rows are; None if it can be."""
        if name not in self.tables:
            return "it is no table of this project"
        return "its history is read" if reads_history(name, self.tables[name].dataset) else None

    def _types(self, name: str) -> Mapping[str, DataType]:
        table = self.tables[name]
        types = columns_of(table.dataset, table.shape(), table.dataset.relations.view)
        return types or {}

    def _named(self, name: str, columns: Mapping[str, str]) -> dict[str, str]:
        """The same by the names that the columns of an input have, capitals included."""
        written = {column.lower(): column for column in self._types(name)}
        return {written[column]: value for column, value in columns.items()}


def _distinct(rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Each combination of values of some columns once; `columns` has their new names."""
    some = rows.select(list(columns)).rename_columns(list(columns.values()))
    return some.group_by(some.column_names).aggregate([])
