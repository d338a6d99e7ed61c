"""The rows of a table that holds none, written to Current as they are: derived or fully loaded.

An apply would compare them with nothing, fold each by itself and sort them by their keys. Here
Spark writes them once, in the files of the table. What a derived result has to satisfy is judged by
reading them back. Until the commit no snapshot has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import key_hash, table_row, timestamp_literal
from polynya.lake.fold.stored import ApplyFigures
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.staged import staged_rows
from polynya.lake.iceberg.writing import stage
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.dataset import DatasetTable, change_columns
from polynya.lake.table.state import Reloading
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal, quote


def holds_nothing(target: DatasetTable) -> bool:
    """Whether a derived table has no rows, and keeps no events of those that it gets."""
    snapshot = target.state.snapshot
    return (
        target.state.copy.derivation is None
        and holds_no_versions(target)
        and not target.table.files(Partition.QUARANTINE, snapshot)
    )


def holds_no_versions(target: DatasetTable) -> bool:
    """Whether a table has no rows and no pending ones, and keeps no events of those it gets."""
    state, kept = target.state, target.dataset.kept
    return (
        kept.changes_retention is None
        and kept.retention is None
        and not any(
            target.table.files(part, state.snapshot)
            for part in (Partition.CURRENT, Partition.PRIOR, Partition.CHANGES)
        )
    )


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Rows of a first step in files that no snapshot has: `rows` reads their data columns."""

    rows: DataFrame
    files: Sequence[DataFile]

    @property
    def figures(self) -> ApplyFigures:
        """What an apply would say of them."""
        return figures_of(self.files)


def figures_of(files: Sequence[DataFile]) -> ApplyFigures:
    """What an apply would say of first rows in these files."""
    count = sum(file.rows for file in files)
    return ApplyFigures(
        events=count, current=count, prior=0, removed=0, inserts=count, updates=0, deletes=0,
        raised=0, insert_of_existing=0, update_of_missing=0, delete_of_missing=0,
    )  # fmt: skip


@contextmanager
def first_rows(
    target: DatasetTable, shape: Shape, rows: DataFrame, step: Reloading, now: datetime
) -> Iterator[FirstRows]:
    """Write rows for Current, to be read inside of the `with`.

    `rows` has the data columns of `shape`, which the table has. Each row is as an apply at `now`
    would leave the insert of a step.
    """
    since = timestamp_literal(step.started_at)
    files = written(target, shape, rows, step, now, operation="i", since=since)
    if not files:
        yield FirstRows(target.spark.createDataFrame([], rows.schema), files)
        return
    with staged_rows(target.table, files) as staged:
        yield FirstRows(staged.selectExpr(*map(quote, shape.data)), files)


def written(
    target: DatasetTable,
    shape: Shape,
    rows: DataFrame,
    step: Reloading,
    now: datetime,
    *,
    operation: str,
    since: str,
    suffix: str = "",
) -> list[DataFile]:
    """Stage files of first rows, each as an apply at `now` would leave such an event of a step.

    `since` is SQL for the time of the event, and `suffix` the end of its tail. A loaded row, `L`,
    was inserted at that time, any other one now.
    """
    engine = timestamp_literal(now)
    headers = {
        h.PARTITION: f"'{Partition.CURRENT}'",
        h.KEY_HASH: key_hash(shape),
        h.CHANGE_IDENTIFIER: literal(step.place),
        h.SEQUENCE_TAIL: literal(step.tail + suffix),
        h.OPERATION: literal(operation),
        h.TIMESTAMP: since,
        h.FROM_TIMESTAMP: since,
        h.INSERTED_TIMESTAMP: since if operation == "L" else engine,
        h.MODIFIED_TIMESTAMP: engine,
        h.WAS_CURRENT_FROM: engine,
    }
    columns = (f"{value} AS {quote(name)}" for name, value in table_row(shape, headers).items())
    return stage(target.table, rows.selectExpr(*columns))


def refuse(target: DatasetTable, first: FirstRows) -> None:
    """Remove what was written for a first step, and the columns that the table got for it."""
    target.table.drop_files(file.path for file in first.files)
    forget_columns(target)


def forget_columns(target: DatasetTable) -> None:
    """Drop the columns that a first step has left which was refused or killed."""
    if schema := target.known_schema():
        change_columns(target, {}, list(schema), of_empty=True)
