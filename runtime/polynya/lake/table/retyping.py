"""Change columns to types that Iceberg cannot promote to: rewrite every row (ADR 25).

`retype` stages the new files first; nobody reads them yet. Then the views get a text that shows the
old types whatever the table has. Then one commit replaces the columns, all files of rows and the
state. A kill before that commit leaves everything unchanged; a kill after it leaves everything
changed. Earlier snapshots keep the old columns and files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import converted, unconverted, within
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.layout import columns_in_use, with_types
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import stage
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState
from polynya.model.error_catalogue.lake import (
    KEY_TYPE_FIXED,
    LAYOUT_COLUMN_TYPE_FIXED,
    REWRITE_DOES_NOT_ADD_UP,
    VALUES_DO_NOT_FIT,
)
from polynya.model.errors import OperationError
from polynya.model.headers import WITH_DATA
from polynya.model.names import quote
from polynya.model.promotion import is_rewritable
from polynya.model.types import DataType
from polynya.observe.events import counted
from polynya.observe.trace import span

#: Values that an error names.
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Retyped:
    """What was rewritten: rows, and bytes of the files that were written."""

    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Change:
    name: str
    old: DataType
    new: DataType

    @property
    def value(self) -> str:
        """SQL of the value in the new type."""
        return converted(quote(self.name), self.old, self.new)

    @property
    def lacks_value(self) -> str:
        """SQL condition that a value has none in the new type."""
        return unconverted(quote(self.name), self.old, self.new)


@span("retype")
def retype(
    target: DatasetTable, types: Mapping[str, DataType], bridge: Callable[[Shape], None]
) -> Retyped:
    """Rewrite columns of a table that was taken over.

    Each pair of types `is_rewritable`, or one grew out of the other and not `is_in_place`.
    `bridge` publishes the views of a shape; it is for the caller to publish those of the table
    afterwards.

    Raises OperationError for a key, for a column that orders events and for values that the new
    type does not hold exactly, and BeingAppliedError while an apply is at work. Then nothing was
    changed.
    """
    with target.changing:
        target.refuse_beside_apply()
        refuse_order(target, types)
        _refuse_laid_out(target, types)
        schema = target.known_schema()
        changes = [_Change(name, schema[name], kind) for name, kind in types.items()]
        rows = _checked(target, changes)
        # A column that is no longer excluded has to be there for the views.
        target.grow(schema)
        transaction = with_types(target.spark, target.table, types)
        staged = stage(target.table, _converted_rows(target, changes), within=transaction)
        _refuse_missing(target, rows, staged)
        bridge(replace(target.shape(), bridged=frozenset(types)))
        files, deletes = _replaced(target.table, target.state.snapshot)
        target.commit(
            copy=_state_after(target.state.copy, changes),
            add=staged,
            remove=files,
            drop=deletes,
            summary={"polynya.step": "retype", "polynya.rewritten-files": str(len(files))},
            within=transaction,
        )
    return Retyped(rows, sum(file.size_bytes for file in staged))


def refuse_order(target: DatasetTable, names: Collection[str]) -> None:
    """Raise OperationError where a column tells which record a row is, or its place in the order.

    The hash of the key and the change identifier are made of its text.
    """
    fixed = {*target.known_keys(), *target.dataset.events.sequence_by}
    column = next((name for name in names if name in fixed), None)
    if column is not None:
        raise KEY_TYPE_FIXED(where=target.table.name, column=column, dataset=target.dataset.name)


def _refuse_laid_out(target: DatasetTable, names: Collection[str]) -> None:
    """Raise OperationError where files are, or were, partitioned or sorted by a column."""
    column = next(iter(columns_in_use(target.table) & {*names}), None)
    if column is not None:
        raise LAYOUT_COLUMN_TYPE_FIXED(
            where=target.table.name, column=column, dataset=target.dataset.name
        )


def _source(target: DatasetTable) -> str:
    """The rows as a relation. Readers that asked before the commit see the same ones."""
    assert target.state.snapshot is not None, "the table was taken over"
    return f"{target.table.at(target.state.snapshot)} WHERE {within(*WITH_DATA)}"


def _checked(target: DatasetTable, changes: list[_Change]) -> int:
    """Number of rows, all of whose values have one in the new types."""
    counts = ", ".join(f"count_if({change.lacks_value})" for change in changes)
    row = target.spark.sql(f"SELECT count(*), {counts} FROM {_source(target)}").first()
    assert row is not None, "an aggregate has a row"
    for change, count in zip(changes, row[1:], strict=True):
        if count:
            raise _unfit(target, change, count)
    return int(row[0])


def _unfit(target: DatasetTable, change: _Change, count: int) -> OperationError:
    rows = target.spark.sql(
        f"SELECT DISTINCT CAST({quote(change.name)} AS STRING) FROM {_source(target)} "
        f"AND {change.lacks_value} LIMIT {_EXAMPLES}"
    )
    examples = ", ".join(sorted(repr(row[0][:60]) for row in rows.collect()))
    return VALUES_DO_NOT_FIT(
        where=target.table.name,
        column=change.name,
        relation=target.dataset.relations.current,
        old=change.old,
        new=change.new,
        values=counted(count, "stored value"),
        examples=examples,
    )


def _converted_rows(target: DatasetTable, changes: list[_Change]) -> DataFrame:
    values = {change.name: f"{change.value} AS {quote(change.name)}" for change in changes}
    names = [column["name"] for column in target.table.columns()]
    listed = ", ".join(values.get(name, quote(name)) for name in names)
    return target.spark.sql(f"SELECT {listed} FROM {_source(target)}")


def _refuse_missing(target: DatasetTable, rows: int, staged: list[DataFile]) -> None:
    written = sum(file.rows for file in staged)
    if written != rows:
        target.table.drop_files(file.path for file in staged)
        raise REWRITE_DOES_NOT_ADD_UP(
            where=target.table.name, table=target.table.name, rows=rows, written=written
        )


def _replaced(table: IcebergTable, snapshot: int | None) -> tuple[list[DataFile], list[DeleteFile]]:
    """The files of rows, and the deletes that refer to nothing else."""
    assert snapshot is not None, "the table was taken over"
    files = [file for part in WITH_DATA for file in table.files(part, snapshot)]
    deletes = table.position_deletes(snapshot) or ()
    partitions = {str(part) for part in WITH_DATA}
    return files, [delete for delete in deletes if table.partition_of(delete) in partitions]


def _state_after(before: CopyState, changes: list[_Change]) -> CopyState:
    columns = before.columns
    schema, former = dict(columns.schema), dict(columns.former)
    for change in changes:
        schema[change.name] = str(change.new)
        if is_rewritable(change.old, change.new):
            # What held NULL only is spelled as before by itself.
            former[change.name] = [*former.get(change.name, ()), str(change.old)]
    return replace(before, columns=replace(columns, schema=schema, former=former))
