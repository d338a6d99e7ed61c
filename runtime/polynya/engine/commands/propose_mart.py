"""What a data mart is proposed from: the tables of some tasks as they are now. Needs no JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from ruamel.yaml import YAML

from polynya.engine.inventory import tables_of
from polynya.engine.project_views import ProjectViews, embedded_view
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.warehouse.check import refuse_unusable
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.mart import DataMart
from polynya.model.config.task import StorageTask
from polynya.model.loader import LoadedProject
from polynya.model.names import column_problem
from polynya.model.project_marts import as_mart
from polynya.model.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from polynya.proposal.relationships import (
    ColumnProfile,
    JudgedReference,
    KeyReference,
    Overlap,
    TableProfile,
    candidates,
    judged,
)
from polynya.query.committed_rows import RowLimits, within_memory
from polynya.query.embedded import EmbeddedView
from polynya.query.translate import NotEmbeddedError

#: What the read of one table may take; a larger one is proposed from by its names and keys.
_LIMITS: Final = RowLimits(
    rows=2_000_000, file_bytes=128 * 1024 * 1024, memory_bytes=512 * 1024 * 1024
)
#: Bytes of different values that are kept to be compared, of all tables together.
_KEPT_BYTES: Final = 1024 * 1024 * 1024
_TIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMP_NTZ})


@dataclass(frozen=True, slots=True)
class JudgedTables:
    """Tables, and what is decided of each possible reference between them."""

    tables: list[TableProfile]
    references: list[JudgedReference]


def judged_references(project: LoadedProject, tasks: Sequence[StorageTask]) -> JudgedTables:
    """The tables of some tasks as they are now, and what may refer to what.

    A table that has no rows yet, or that only Spark can read, is judged by its names.
    """
    refuse_unusable(project.target, CATALOG)
    views = ProjectViews(project)
    found: list[tuple[EmbeddedView, bool]] = []
    unread: list[TableProfile] = []
    nothing_yet = "nothing was copied to it yet"
    try:
        stored: Tables | None = views.tables
    except NotEmbeddedError as error:
        stored, nothing_yet = None, str(error)
    for entry in (entry for task in tasks for entry in tables_of(task, stored)):
        reason = nothing_yet
        if entry.table is not None and not entry.is_ledger:
            try:
                view = embedded_view(project, views, entry.name)
                if view.columns:
                    found.append((view, entry.dataset.kept.history))
                    continue
            except NotEmbeddedError as error:
                reason = str(error)
        if not entry.is_ledger:
            unread.append(TableProfile(entry.name, (), {}, unread=reason))
    made = judged_tables(found)
    return JudgedTables([*made.tables, *unread], made.references)


def judged_tables(views: Sequence[tuple[EmbeddedView, bool]]) -> JudgedTables:
    """The same for views; with each, whether its table keeps history."""
    tables = {
        view.name: TableProfile(
            view.name,
            tuple(view.keys),
            {
                name: ColumnProfile(name, kind)
                for name, kind in (view.columns or {}).items()
                if column_problem(name) is None
            },
            history=history,
        )
        for view, history in views
    }
    references = candidates(list(tables.values()))
    values = _Values()
    for view, _ in views:
        wanted = {one.columns for one in references if one.child == view.name}
        wanted |= {one.keys for one in references if one.parent == view.name}
        tables[view.name] = values.read(tables[view.name], view, wanted)
    overlaps = dict(values.overlaps(references))
    return JudgedTables(list(tables.values()), judged(references, overlaps, tables))


def mart_problems(project: LoadedProject, text: str) -> list[str]:
    """What is wrong with a proposed mart, as `polynya validate` would find it."""
    try:
        mart = DataMart.model_validate(YAML(typ="safe", pure=True).load(text))
    except ValidationError as error:
        return [str(one["msg"]) for one in error.errors()]
    made = as_mart(mart, {task.name: task for task in project.tasks}, project.project.defaults)
    return [str(one.error) for one in made] if isinstance(made, list) else []


@dataclass
class _Values:
    """The different values of columns, by table; those of several columns are rows."""

    tables: dict[tuple[str, tuple[str, ...]], pa.Table] = field(default_factory=dict)
    rows: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    def read(
        self, table: TableProfile, view: EmbeddedView, wanted: set[tuple[str, ...]]
    ) -> TableProfile:
        """Keep the values that are wanted; the table with what its rows say."""
        times = [name for name, one in table.columns.items() if one.type in _TIMES]
        names = sorted({column for columns in wanted for column in columns} | set(times))
        if not names:
            return table
        try:
            read = view.rows(names, _LIMITS)
            rows = pa.Table.from_batches(within_memory(read, _LIMITS), read.schema)
        except NotEmbeddedError as error:
            return replace(table, unread=str(error))
        for columns in wanted:
            chosen = _comparable(rows.select(list(columns)))
            with_value = chosen.filter(_has_values(chosen)) if rows.num_rows else chosen
            distinct = with_value.group_by(chosen.column_names).aggregate([])
            self.bytes += distinct.nbytes
            if self.bytes > _KEPT_BYTES:
                return replace(table, unread="too many values were read before it")
            self.tables[table.name, columns] = distinct
            self.rows[table.name, columns] = with_value.num_rows
        self.counts[table.name] = rows.num_rows
        columns_now = dict(table.columns)
        for name in times:
            bounds = pc.min_max(rows.column(name).cast(pa.date32(), safe=False)).as_py()
            columns_now[name] = replace(columns_now[name], first=bounds["min"], last=bounds["max"])
        return replace(table, columns=columns_now, rows=rows.num_rows)

    def overlaps(
        self, references: Sequence[KeyReference]
    ) -> Iterator[tuple[KeyReference, Overlap]]:
        """Yield what values tell of each reference whose tables were read."""
        for one in references:
            child = self.tables.get((one.child, one.columns))
            parent = self.tables.get((one.parent, one.keys))
            if child is None or parent is None or one.types:
                continue
            rows = self.rows[one.child, one.columns]
            yield (
                one,
                Overlap(
                    found=_found(child, parent),
                    values=child.num_rows,
                    keys=parent.num_rows,
                    rows=rows,
                    nulls=self.counts[one.child] - rows,
                ),
            )


def _comparable(rows: pa.Table) -> pa.Table:
    """Columns under their numbers, whole numbers in one type."""
    columns = [
        column.cast(pa.decimal128(38, 0))
        if _is_whole(column.type)
        else column.cast(pa.large_string())
        for column in rows.columns
    ]
    return pa.table(columns, names=[str(index) for index in range(len(columns))])


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _has_values(rows: pa.Table) -> pa.ChunkedArray:
    mask = pc.is_valid(rows.column(0))
    for column in rows.columns[1:]:
        mask = pc.and_(mask, pc.is_valid(column))
    return mask


def _found(child: pa.Table, parent: pa.Table) -> int:
    """How many rows of one table are in the other."""
    found: int = child.join(parent, keys=child.column_names, join_type="left semi").num_rows
    return found
