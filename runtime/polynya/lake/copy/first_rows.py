"""The rows of a derived table that holds none, written to Current as they are computed.

An apply would compare them with nothing, fold each by itself and sort them by their keys. Here
Spark writes the result of the query once, in the files of the table; what it has to satisfy is
judged by reading them back. Until the commit no snapshot has them.
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
    state = target.state
    parts = (Partition.CURRENT, Partition.PRIOR, Partition.CHANGES, Partition.QUARANTINE)
    return (
        state.copy.derivation is None
        and target.dataset.kept.changes_retention is None
        and target.dataset.kept.retention is None
        and not any(target.table.files(part, state.snapshot) for part in parts)
    )


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Rows of a first step in files that no snapshot has: `rows` reads their data columns."""

    rows: DataFrame
    files: Sequence[DataFile]

    @property
    def figures(self) -> ApplyFigures:
        """What an apply would say of them."""
        count = sum(file.rows for file in self.files)
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
    engine, since = timestamp_literal(now), timestamp_literal(step.started_at)
    headers = {
        h.PARTITION: f"'{Partition.CURRENT}'",
        h.KEY_HASH: key_hash(shape),
        h.CHANGE_IDENTIFIER: literal(step.place),
        h.SEQUENCE_TAIL: literal(step.tail),
        h.OPERATION: "'i'",
        h.TIMESTAMP: since,
        h.FROM_TIMESTAMP: since,
        h.INSERTED_TIMESTAMP: engine,
        h.MODIFIED_TIMESTAMP: engine,
        h.WAS_CURRENT_FROM: engine,
    }
    columns = (f"{value} AS {quote(name)}" for name, value in table_row(shape, headers).items())
    files = stage(target.table, rows.selectExpr(*columns))
    if not files:
        yield FirstRows(target.spark.createDataFrame([], rows.schema), files)
        return
    with staged_rows(target.table, files) as staged:
        yield FirstRows(staged.selectExpr(*map(quote, shape.data)), files)


def refuse(target: DatasetTable, first: FirstRows) -> None:
    """Remove what was written for a first step, and the columns that the table got for it."""
    target.table.drop_files(file.path for file in first.files)
    forget_columns(target)


def forget_columns(target: DatasetTable) -> None:
    """Drop the columns that a first step has left which was refused or killed."""
    if schema := target.known_schema():
        change_columns(target, {}, list(schema), of_empty=True)
