"""Read live tables from Python, without a JVM: `polynya.open("project").table("shop.users")`.

A read shows one commit of its table, the newest one when it was asked for, with the changes that
are copied and not applied yet. `polynya query` reads views by the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThan,
    IsNull,
    LessThanOrEqual,
    Or,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.table import StaticTable, Table
from pyparsing import ParseException
from typing_extensions import override

from polynya.engine.inventory import inventory
from polynya.engine.project_views import ProjectViews, QueryView
from polynya.engine.translated_views import query_views_of
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.shape import Shape
from polynya.lake.read.inspect import shape, states
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.warehouse.check import refuse_unusable
from polynya.lake.warehouse.readers import reading
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.operation import READ_NEEDS_SPARK, READ_REFUSED
from polynya.model.errors import ConfigError
from polynya.model.headers import Partition
from polynya.model.loader import LoadedProject, load_project
from polynya.query.embedded import STATEMENT_LIMITS
from polynya.query.live_rows import Live, LiveRows
from polynya.query.stored_rows import StoredRows, columns_of_condition
from polynya.query.translate import NotEmbeddedError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

#: A condition on columns: PyIceberg's expressions, or their text, such as `"amount > 5"`.
Condition: TypeAlias = "str | BooleanExpression"
#: A snapshot, or a moment of the source's clock.
AsOf: TypeAlias = "int | datetime"

#: Header columns whose stored values are those that the views show.
_SHOWN_AS_STORED: Final = frozenset(
    {h.FROM_TIMESTAMP, h.TO_TIMESTAMP, h.OPERATION, h.CHANGE_IDENTIFIER, h.TIMESTAMP}
)
_DELETED: Final = "hdr__deleted"


def open_lake(project: str | Path = ".", target: str | None = None) -> Lake:
    """Open a project for reading: its folder, and the name of a target (default as `polynya`).

    Task files that are broken are left out, as by `polynya query`.

    Raises:
        ConfigErrors: the project file is wrong, or the target is unknown.
    """
    return Lake(load_project(Path(project), target, tolerant=True))


@dataclass(frozen=True, slots=True)
class Watermark:
    """What a read shows: a commit, and how far the source was read by then.

    `snapshot` is the number of the Iceberg snapshot, `committed_at` the time of its commit.
    `copied_to` is the highest change identifier that was copied, `copied_at` when it was, and
    `newest_event` the source's time of the newest event; None where nothing was copied, or the
    source tells no times. `pending_rows` of the copied changes were not applied.
    """

    snapshot: int
    committed_at: datetime
    copied_to: str | None
    copied_at: datetime | None
    newest_event: datetime | None
    pending_rows: int

    def age(self, now: datetime | None = None) -> timedelta | None:
        """How long before `now` (default: this moment) the newest change was copied."""
        return None if self.copied_at is None else (now or datetime.now(UTC)) - self.copied_at


class Lake:
    """The tables of a project and target. Reads need its catalog and its files, nothing else."""

    def __init__(self, project: LoadedProject) -> None:
        self._project = project

    def tables(self) -> list[str]:
        """`schema.name` of each dataset that has a table, in order."""
        refuse_unusable(self._project.target, CATALOG)
        with _spark_may(self._project.project.name):
            return sorted(
                entry.name
                for entry in inventory(self._project, ProjectViews(self._project).tables)
                if entry.table is not None and not entry.is_ledger
            )

    def table(self, name: str) -> LakeTable:
        """The dataset `schema.name`. It need not have a table yet: its reads tell."""
        return LakeTable(self._project, name)

    def __repr__(self) -> str:
        return f"<polynya.Lake {self._project.directory} target={self._project.target.name}>"


class LakeTable:
    """A dataset. Each call of a method below shows the newest commit of that moment.

    Args of all three:
        columns: names of the columns, in this order; default: all.
        where: a condition on data columns, such as `"amount > 5 and state = 'new'"`, or an
            expression of `pyiceberg.expressions`. Files that cannot hold such rows are not read.
        limit: the most rows.
        as_of: the number of a snapshot that the table still has. For `current` also a moment with
            its time zone: the rows that were valid then by the source's clock, for which the
            dataset needs `history: true`.

    Raises (each of them, before rows are read):
        ConfigError: the table, a column, the condition or the snapshot is unknown
            (POLYNYA-QRY-003).
        OperationError: only Spark can read it (POLYNYA-QRY-004), or the warehouse is damaged.
    """

    def __init__(self, project: LoadedProject, name: str) -> None:
        self._project, self.name = project, name
        self._shapes: dict[str, Shape] = {}

    def current(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Condition | None = None,
        limit: int | None = None,
        as_of: AsOf | None = None,
    ) -> LiveRead:
        """One row for each record: columns as the view `schema.name` has them."""
        view = self._query_view()
        if view is not None:
            return self._of_query(view, columns, where, limit, as_of)
        if isinstance(as_of, datetime):
            return self._at(as_of, columns, where, limit)
        return self._read("current", columns, where, limit, as_of)

    def history(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Condition | None = None,
        limit: int | None = None,
        as_of: int | None = None,
    ) -> LiveRead:
        """One row for each version: columns as the view `schema.name__history` has them."""
        return self._read("history", columns, where, limit, as_of)

    def changes(
        self,
        columns: Sequence[str] | None = None,
        *,
        where: Condition | None = None,
        limit: int | None = None,
        as_of: int | None = None,
    ) -> LiveRead:
        """One row for each pending or retained event: the view `schema.name__changes`."""
        return self._read("changes", columns, where, limit, as_of)

    def __repr__(self) -> str:
        return f"<polynya.LakeTable {self.name}>"

    def _query_view(self) -> QueryView | None:
        """The view of a query that has the name."""
        wanted = self.name.casefold()
        for task, view in query_views_of(self._project):
            if task.view_of(view).casefold() == wanted:
                refuse_unusable(self._project.target, CATALOG)
                with _spark_may(self.name):
                    return QueryView.of(ProjectViews(self._project), task, view)
        return None

    def _of_query(
        self,
        view: QueryView,
        columns: Sequence[str] | None,
        where: Condition | None,
        limit: int | None,
        as_of: AsOf | None,
    ) -> LiveRead:
        if where is not None or as_of is not None:
            raise READ_REFUSED(
                where=self.name,
                reason="the view of a query has no `where` and no `as_of`",
                fix="filter the rows, or use `materialize: table`",
            )
        with _spark_may(self.name):
            known = list(view.columns)
        for name in columns or ():
            if name not in known:
                raise READ_REFUSED(
                    where=self.name, reason=f"it has no column `{name}`", fix=suggest(name, known)
                )
        return QueryRead(self._project, view, known if columns is None else columns, limit)

    def _at(
        self,
        moment: datetime,
        columns: Sequence[str] | None,
        where: Condition | None,
        limit: int | None,
    ) -> LiveRead:
        if moment.tzinfo is None:
            raise READ_REFUSED(
                where=self.name,
                reason=f"the moment {moment.isoformat()} has no time zone",
                fix="add one, such as `tzinfo=UTC`",
            )
        valid = And(
            LessThanOrEqual(term=h.FROM_TIMESTAMP, value=moment),
            Or(IsNull(term=h.TO_TIMESTAMP), GreaterThan(term=h.TO_TIMESTAMP, value=moment)),
        )
        live = self._live("history", None)
        data = [name for name in self._columns(live) if name in live.shape.columns]
        condition = _parsed(self.name, where)
        self._check(live, columns or data, condition)
        shown = tuple(columns or data)
        return LiveRead(self._project, live, shown, And(condition, valid), limit, is_alive=True)

    def _read(
        self,
        which: str,
        columns: Sequence[str] | None,
        where: Condition | None,
        limit: int | None,
        as_of: int | None,
    ) -> LiveRead:
        live = self._live(which, as_of)
        shown = list(self._columns(live)) if columns is None else list(columns)
        condition = _parsed(self.name, where)
        self._check(live, shown, condition)
        return LiveRead(self._project, live, tuple(shown), condition, limit)

    def _live(self, which: str, as_of: int | None) -> Live:
        """A view of the dataset, as of its newest commit or of a snapshot."""
        refuse_unusable(self._project.target, CATALOG)
        views = ProjectViews(self._project)
        with _spark_may(self.name):
            found = self._dataset(views)
            relations = found.dataset.relations
            view = {
                "current": relations.view,
                "history": relations.history_view,
                "changes": relations.changes_view,
            }[which]
            if which == "history" and not found.shape.history:
                raise READ_REFUSED(
                    where=self.name,
                    reason="the dataset keeps no history",
                    fix="set `history: true` to keep the versions from then on",
                )
            if as_of is None:
                views.check(found, view)
                return replace(found, view=view)
            table = _at_snapshot(self.name, found.table, as_of)
            return Live(view, found.dataset, shape(table, found.dataset), table)

    def _dataset(self, views: ProjectViews) -> Live:
        wanted = self.name.casefold()
        for entry in inventory(
            self._project,
            views.tables,
            lambda dataset: dataset.relations.current.casefold() == wanted,
        ):
            if entry.table is not None and not entry.is_ledger:
                known = self._shape(entry.table, entry.dataset)
                return Live("", entry.dataset, known, entry.table)
        names = [entry.name for entry in inventory(self._project, views.tables)]
        if wanted in {name.casefold() for name in names}:
            raise READ_REFUSED(
                where=self.name,
                reason="the dataset has no table yet",
                fix="copy its first records with `polynya run --once`",
            )
        raise READ_REFUSED(
            where=self.name, reason="no dataset has this name", fix=suggest(self.name, names)
        )

    def _shape(self, table: Table, dataset: ResolvedDataset) -> Shape:
        """The shape of the newest commit, which is read from a file of its own."""
        commit = table.metadata_location
        if commit not in self._shapes:
            self._shapes = {commit: shape(table, dataset)}
        return self._shapes[commit]

    def _columns(self, live: Live) -> list[str]:
        columns = live.columns
        if columns is None:
            raise READ_REFUSED(where=self.name, reason="the dataset has no columns yet")
        return list(columns)

    def _check(self, live: Live, columns: Sequence[str], condition: BooleanExpression) -> None:
        """Refuse columns that the view does not have, or does not show as they are stored."""
        known = self._columns(live)
        for name in columns:
            if name not in known:
                raise READ_REFUSED(
                    where=self.name, reason=f"it has no column `{name}`", fix=suggest(name, known)
                )
        stored = {*live.shape.columns, *_SHOWN_AS_STORED}
        allowed = [name for name in known if name in stored]
        try:
            asked = columns_of_condition(live.table, condition)
        except (ValueError, TypeError) as error:
            raise _wrong_condition(self.name, error) from error
        for name in sorted(asked - set(allowed)):
            raise READ_REFUSED(
                where=self.name,
                reason=f"a condition cannot be about the column `{name}`",
                fix=suggest(name, allowed),
            )


class LiveRead:
    """Rows of one read. Nothing is read before they are asked for; each call reads again.

    `schema` are the names and types of the columns (pyarrow), those of `polynya query`.
    """

    def __init__(
        self,
        project: LoadedProject,
        live: Live,
        columns: Sequence[str],
        condition: BooleanExpression,
        limit: int | None,
        *,
        is_alive: bool = False,
    ) -> None:
        self._project, self._live, self._condition = project, live, condition
        self._limit, self._is_alive = limit, is_alive
        with _spark_may(live.name):
            self.schema: pa.Schema = LiveRows(live, columns).schema

    @cached_property
    def watermark(self) -> Watermark:
        """Which commit is read, and how far the source was read by then."""
        table = self._live.table
        snapshot = table.metadata.current_snapshot()
        assert snapshot is not None, "a table has its first snapshot from the start"
        copy, _ = states(table)
        position = copy.position
        return Watermark(
            snapshot=snapshot.snapshot_id,
            committed_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
            copied_to=position.copied_to,
            copied_at=_moment(position.copied_at),
            newest_event=_moment(position.newest_event),
            pending_rows=StoredRows(table).count({Partition.CHANGES}),
        )

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as they are read, in batches; the memory does not grow with the table."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(self.schema.names))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return pa.Table.from_batches(self._batches(self.schema.names), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame of pandas. Raises ImportError where pandas is missing.

        Values stay exact: decimals, dates and integers with NULL are objects of Python. Integers
        without NULL are `int32` and `int64`, instants `datetime64[us, UTC]`, texts `str`.
        """
        return self.to_arrow().to_pandas(integer_object_nulls=True)

    def to_polars(self) -> pl.LazyFrame:
        """The rows as a lazy frame: what it selects and counts is all that is read.

        Raises ImportError where Polars is missing.
        """
        import polars as pl
        from polars.io.plugins import register_io_source

        def rows(
            columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            left = limit
            for batch in self._batches(columns or self.schema.names):
                frame = pl.DataFrame(pl.from_arrow(batch))
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                yield frame if predicate is None else frame.filter(predicate)
                if left == 0:
                    return

        empty = pl.DataFrame(pl.from_arrow(self.schema.empty_table()))
        return register_io_source(rows, schema=empty.schema)

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, in a connection or in DuckDB's own default one."""
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.to_arrow())

    def __repr__(self) -> str:
        return f"<polynya.LiveRead {self._live.name}: {', '.join(self.schema.names)}>"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        asked = [*columns, _DELETED] if self._is_alive else list(columns)
        left = self._limit
        with _spark_may(self._live.name), reading(self._project):
            for batch in LiveRows(self._live, asked, where=self._condition).batches():
                rows = batch
                if self._is_alive:
                    rows = rows.filter(pc.invert(rows.column(_DELETED))).select(list(columns))
                if left is not None:
                    rows = rows.slice(0, left)
                    left -= rows.num_rows
                if rows.num_rows:
                    yield rows
                if left == 0:
                    return


class QueryRead(LiveRead):
    """Rows of the view of a query, which is answered again by each call, from newest commits."""

    def __init__(
        self, project: LoadedProject, view: QueryView, columns: Sequence[str], limit: int | None
    ) -> None:
        self._project, self._view, self._limit = project, view, limit
        with _spark_may(view.name):
            kinds = view.columns
        self.schema = pa.schema([pa.field(name, arrow_type(kinds[name])) for name in columns])

    @property
    @override
    def watermark(self) -> Watermark:
        """Refused: the view reads a commit of each of its inputs. Raises ConfigError."""
        raise READ_REFUSED(
            where=self._view.name,
            reason="the view of a query has no watermark",
            fix="ask those of its inputs",
        )

    @override
    def __repr__(self) -> str:
        return f"<polynya.LiveRead {self._view.name}: {', '.join(self.schema.names)}>"

    @override
    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _spark_may(self._view.name), reading(self._project):
            rows = self._view.newest().rows(columns, STATEMENT_LIMITS).read_all()
        yield from rows.slice(0, self._limit).to_batches()


@contextmanager
def _spark_may(name: str) -> Iterator[None]:
    """Tell why a table is left to Spark."""
    try:
        yield
    except NotEmbeddedError as error:
        raise READ_NEEDS_SPARK(where=name, reason=error) from error


def _at_snapshot(name: str, table: Table, snapshot: int) -> Table:
    """The table as it was after a commit."""
    found = table.metadata.snapshot_by_id(snapshot)
    if found is None:
        raise READ_REFUSED(
            where=name,
            reason=f"the table has no snapshot {snapshot}",
            fix="its maintenance removes old snapshots: `snapshot_expiry` says when",
        )
    schema = table.metadata.current_schema_id if found.schema_id is None else found.schema_id
    metadata = table.metadata.model_copy(
        update={"current_snapshot_id": snapshot, "current_schema_id": schema}
    )
    return StaticTable(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _parsed(name: str, where: Condition | None) -> BooleanExpression:
    if where is None:
        return AlwaysTrue()
    if isinstance(where, BooleanExpression):
        return where
    try:
        return parse(where)
    except (ParseException, ValueError) as error:
        raise _wrong_condition(name, error) from error


def _wrong_condition(name: str, error: Exception) -> ConfigError:
    return READ_REFUSED(
        where=name,
        reason=f"the condition cannot be read: {error}",
        fix="conditions are those of PyIceberg, such as `amount > 5 and state = 'new'`",
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
