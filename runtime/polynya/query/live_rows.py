"""Rows of a live view, read from one commit of its table without a JVM.

Stored rows of records without pending changes are passed on as PyIceberg reads them; the others are
folded by the text of the view (`lake/fold/live_views.py`) in DuckDB. So a read costs a scan, and
what is pending costs by its own size. Stored versions of records with pending changes are read only
where the view needs them: for late events, for values that are inherited, and for history.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Final, Generic

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from typing_extensions import TypeVar

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.live_views import (
    columns_of,
    definitions,
    reads_late_records_only,
    shows_newest_rows,
)
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import STORED_SEQUENCE
from polynya.lake.read.committed import CommittedTable
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import Partition
from polynya.model.names import quote_path
from polynya.model.types import BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType, Decimal
from polynya.query.committed_rows import (
    FAR_LIMITS,
    Batches,
    CommittedRows,
    NotReadHereError,
    RowLimits,
    in_parallel,
    within_memory,
)
from polynya.query.database import EmbeddedDatabase, cast_to
from polynya.query.file_rows import FileRows
from polynya.query.translate import NotEmbeddedError
from polynya.query.values import distinct_names, is_key, quoted
from polynya.query.views import duckdb_sql, has_same_text, trino_sql
from polynya.store.data_files import LocalFiles

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

    from polynya.query.stored_rows import StoredRows

_SCHEMA: Final = "polynya"
_STORED: Final = "stored"
_CHANGES: Final = frozenset({Partition.CHANGES, Partition.RETAINED})
_VERSIONS: Final = frozenset({Partition.CURRENT, Partition.PRIOR, Partition.CHANGES})
#: Types whose age is the same in Spark and in DuckDB.
_TIMES: Final = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
#: Stored rows to which the text of a view is applied at once: planning it takes some 30 ms.
_CHUNK_ROWS: Final = 1_000_000
#: Below this many stored rows it takes longer to make a database that may read their files.
_LEAST_FILE_ROWS: Final = 100_000
#: What tells the order of events, and which of them may be late.
_ORDER: Final = (h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, h.COPY_CHANGE_IDENTIFIER)
#: What `current_view` shows of a table that is appended to.
_IS_SHOWN: Final = f"coalesce({h.OPERATION} NOT IN ('D', 'T'), true)"


#: What reads the table: PyIceberg unless a caller says otherwise.
_Reader_co = TypeVar("_Reader_co", bound="Table | CommittedTable", default="Table", covariant=True)


@dataclass(frozen=True, slots=True)
class Live(Generic[_Reader_co]):
    """A view of a dataset, as its table has it in the commit that `table` was loaded with."""

    view: str
    dataset: ResolvedDataset
    shape: Shape
    table: _Reader_co

    @property
    def name(self) -> str:
        """`schema.view`."""
        return f"{self.dataset.relations.schema}.{self.view}"

    @property
    def columns(self) -> dict[str, DataType] | None:
        """Names and types of the columns in their order; None for an unknown view."""
        return columns_of(self.dataset, self.shape, self.view)

    @property
    def keys(self) -> Sequence[str]:
        """The columns that tell the rows of the table apart."""
        return self.shape.keys

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of all rows, as they come. Raises as `LiveRows` does."""
        try:
            return LiveRows(self, columns, limits=limits).reader()
        except NotReadHereError:
            # Start-up time: PyIceberg.
            from polynya.lake.warehouse.tables import table_at

            whole = Live(
                self.view, self.dataset, self.shape, table_at(self.table.metadata_location)
            )
            return LiveRows(whole, columns, limits=limits).reader()

    def in_files(self, columns: Sequence[str], limits: RowLimits) -> FileRows | None:
        """The same where DuckDB reads them faster itself; else None. Raises as `rows`."""
        try:
            return LiveRows(self, columns, limits=limits).in_files()
        except NotReadHereError:
            return None


class LiveRows:
    """Rows of a view as of one commit, with some of its columns, where a condition holds.

    `where` is about data columns of the table. All raise NotEmbeddedError for what only Spark can
    read, and for more than the limits; nothing is read before `batches` is asked for its first.
    """

    def __init__(
        self,
        live: Live[Table | CommittedTable],
        columns: Sequence[str] | None = None,
        *,
        where: BooleanExpression | None = None,
        limits: RowLimits | None = None,
    ) -> None:
        types = live.columns
        if types is None:
            raise NotEmbeddedError(f"the view {live.name}, which is not there yet")
        if not distinct_names(_column_names(live.table)):
            raise NotEmbeddedError(f"{live.name} has columns that differ in capitals only")
        shown = list(types) if columns is None else list(columns)
        self.schema = pa.schema([pa.field(name, arrow_type(types[name])) for name in shown])
        self._live = live
        if limits is not None and not LocalFiles().holds(live.table.metadata_location):
            limits = limits.least(FAR_LIMITS)
        self._where, self._limits = where, limits
        self._asked = self._columns_of_condition()
        inner = {*shown, *self._asked}
        self._inner = pa.schema(
            [pa.field(name, arrow_type(kind)) for name, kind in types.items() if name in inner]
        )

    def _columns_of_condition(self) -> set[str]:
        if self._where is None or isinstance(self._live.table, CommittedTable):
            return set()
        # Start-up time: PyIceberg, which reads what a condition is about.
        from polynya.query.stored_rows import columns_of_condition

        return columns_of_condition(self._live.table, self._where)

    @cached_property
    def _stored(self) -> CommittedRows | StoredRows:
        table = self._live.table
        if isinstance(table, CommittedTable):
            return CommittedRows(table, self._limits)
        # Start-up time: PyIceberg.
        from polynya.query.stored_rows import StoredRows

        return StoredRows(table, self._limits)

    @cached_property
    def _view(self) -> LiveView:
        live = self._live
        return live_view(
            live.dataset, live.shape, live.view, used=self._inner.names, stored=_STORED
        )

    def batches(self) -> Batches:
        """The rows, in any order."""
        self._stored.plan({*self._shown_partitions, Partition.CHANGES})
        if self._is_stored_as_shown and not self._pending_rows:
            yield from self._quiet({Partition.CURRENT}, None)
            return
        if (newest := self._newest_changes()) is not None:
            yield from newest.shown
            yield from self._quiet(self._shown_partitions, newest.touched)
            return
        if not self._view.folds:
            yield from self._quiet(self._view.partitions, None)
            return
        if self._is_coalesced:
            yield from self._whole()
            return
        changes, touched = self._changes(), None
        if changes.num_rows:
            check_fold(self._live.dataset, self._live.shape, self._live.view)
            touched = _distinct(changes, self._live.shape.keys)
        quiet = self._quiet(self._shown_partitions, touched)
        with ThreadPoolExecutor(1, "polynya-fold") as beside, closing(quiet):
            # In this context, so that what stops the statement stops the fold.
            folding = beside.submit(copy_context().run, self._folded, changes)
            # The scan has gone on meanwhile; the fold may end in an error, which comes before rows.
            first = next(quiet, None)
            folded = folding.result()
            if first is not None:
                yield first
                yield from quiet
        yield from folded

    def in_files(self) -> FileRows | None:
        """All rows where DuckDB reads them faster itself; else None."""
        stored, current = self._stored, Partition.CURRENT
        if not isinstance(stored, CommittedRows) or not self._shows_current:
            return None
        stored.plan({*self._shown_partitions, Partition.CHANGES})
        if stored.count({current}) < _LEAST_FILE_ROWS:
            return None
        if self._live.shape.append_only:
            _check_plain(self._live.shape)
            found = stored.in_files(self.schema, (h.OPERATION,), current)
            return None if found is None else replace(found, where=_IS_SHOWN)
        if not self._pending_rows:
            return stored.in_files(self.schema, (), current)
        found = stored.in_files(self.schema, self._live.shape.keys, current)
        if found is None:
            return None
        if (newest := self._newest_changes()) is not None:
            shown = pa.Table.from_batches(newest.shown, self.schema)
            return replace(found, touched=newest.touched, beside=shown)
        changes = self._changes()
        check_fold(self._live.dataset, self._live.shape, self._live.view)
        touched = _distinct(changes, self._live.shape.keys)
        beside = pa.Table.from_batches(self._folded(changes), self.schema)
        return replace(found, touched=touched, beside=beside)

    def table(self) -> pa.Table:
        """All rows, in any order."""
        return pa.Table.from_batches(within_memory(self.batches(), self._limits), self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """All rows, in any order, as they come. The first are read at once."""
        batches = self.batches()
        first = next(batches, None)

        def following() -> Batches:
            if first is not None:
                yield first
            try:
                yield from batches
            except NotReadHereError as error:
                raise NotEmbeddedError(f"a file of {self._live.name} was not read") from error

        return pa.RecordBatchReader.from_batches(self.schema, following())

    @property
    def _pending_rows(self) -> int:
        """Pending changes that the view folds in."""
        if self._live.view == self._live.dataset.relations.current_stored_view:
            return 0
        return self._stored.count({Partition.CHANGES})

    @property
    def _is_coalesced(self) -> bool:
        return (
            self._live.shape.coalesce
            and self._live.view == self._live.dataset.relations.history_view
        )

    @property
    def _shown_partitions(self) -> frozenset[Partition]:
        """Where the rows are that the view shows of records without pending changes."""
        relations = self._live.dataset.relations
        if self._live.view in {relations.history_view, relations.history_stored_view}:
            return frozenset({Partition.CURRENT, Partition.PRIOR})
        return frozenset({Partition.CURRENT})

    @cached_property
    def _is_stored_as_shown(self) -> bool:
        """Whether the view shows all rows of Current, and these columns as they are stored."""
        return self._shows_current and not self._live.shape.append_only

    @property
    def _shows_current(self) -> bool:
        """Whether it shows the rows of Current; of a table that is appended to, but for deletes."""
        shape, relations = self._live.shape, self._live.dataset.relations
        return (
            self._live.view
            in {relations.view, relations.headers_view, relations.current_stored_view}
            and not (shape.holds_deletes or shape.soft_delete)
            and shape.expired is None
        )

    def _quiet(
        self, partitions: Collection[Partition], touched: pa.Table | None
    ) -> Generator[pa.RecordBatch, None, None]:
        """Rows of the records that are not touched by pending changes."""
        keys = () if touched is None else self._live.shape.keys
        names = self._inner.names if self._is_stored_as_shown else self._view.quiet
        rows = self._batches({*names, *keys}, partitions)
        if touched is not None:
            rows = in_parallel(partial(_without, keys=touched), rows)
        if self._is_stored_as_shown:
            for batch in rows:
                yield _cast(batch.select(self.schema.names), self.schema)
            return
        blank = self._stored.schema(self._view.columns - {*names, *keys})
        with closing(EmbeddedDatabase()) as database:
            for chunk in _chunks(rows):
                database.load(_STORED, _with_nulls(chunk, blank))
                yield from self._of_view(database)

    def _batches(self, columns: Collection[str], partitions: Collection[Partition]) -> Batches:
        stored = self._stored
        if isinstance(stored, CommittedRows):
            assert self._where is None, "conditions are PyIceberg's"
            return stored.batches(columns, partitions)
        return stored.batches(columns, partitions, self._where)

    @property
    def _folded_columns(self) -> frozenset[str]:
        return self._view.columns | {h.COPY_CHANGE_IDENTIFIER}

    def _changes(self) -> pa.Table:
        """The pending changes."""
        return self._stored.table(self._folded_columns, {Partition.CHANGES})

    def _newest_changes(self) -> _NewestChanges | None:
        """The newest pending change of each record, where the view shows that of it; else None.

        Arrow finds them while DuckDB would still plan the text of the view.
        """
        live, shape = self._live, self._live.shape
        is_current = live.view == live.dataset.relations.view and self._is_stored_as_shown
        if not (is_current and shows_newest_rows(live.dataset, shape)):
            return None
        _check_plain(shape)
        check_fold(live.dataset, shape, live.view)
        names = {*self._inner.names, *shape.keys, h.OPERATION, *_ORDER}
        changes = _with_short_texts(self._stored.table(names, {Partition.CHANGES}))
        if not changes.num_rows:
            return None
        # Start-up time: most tables have nothing pending.
        from polynya.lake.apply.in_memory_fold import newest_events
        from polynya.lake.apply.records import DELETES, TouchedRecords

        late = changes.filter(pc.is_null(changes[h.COPY_CHANGE_IDENTIFIER]))
        # Not `_distinct`, for the same reason: Arrow's joins and groups load its datasets.
        records = TouchedRecords([late.column(key).combine_chunks() for key in shape.keys])
        keys = pa.table(dict(zip(shape.keys, records.keys(), strict=True)))
        versions = self._versions(keys, {*shape.keys, *_ORDER})
        stored = pa.concat_tables([late.slice(0, 0), *versions], promote_options="permissive")
        newest = newest_events(changes, shape.keys, _with_short_texts(stored))
        if newest is None:
            return None
        is_delete = pc.is_in(newest.column(h.OPERATION), value_set=DELETES)
        shown = newest.filter(pc.invert(is_delete)).select(self._inner.names).combine_chunks()
        rows = [self._filtered(_cast(batch, self._inner)) for batch in shown.to_batches()]
        return _NewestChanges(newest.select(list(shape.keys)), rows)

    def _folded(self, changes: pa.Table) -> list[pa.RecordBatch]:
        """The rows that the view shows of the records with pending changes."""
        if not changes.num_rows:
            return []
        live, names = self._live, self._folded_columns
        events = changes
        if reads_late_records_only(live.dataset, live.shape, live.view):
            events = changes.filter(pc.is_null(changes[h.COPY_CHANGE_IDENTIFIER]))
        stored = self._versions(_distinct(events, live.shape.keys), names)
        with closing(EmbeddedDatabase()) as database:
            database.load(
                _STORED, pa.concat_tables([changes, *stored], promote_options="permissive")
            )
            if database.has_rows(ties(live.shape, _STORED)):
                raise NotEmbeddedError(f"pending changes of {live.name} that claim the same place")
            return [self._filtered(batch) for batch in self._inner_rows(database)]

    def _versions(self, keys: pa.Table, names: Collection[str]) -> list[pa.Table]:
        """Stored versions of records, all that may matter to a fold of theirs."""
        if not keys.num_rows:
            return []
        stored = _VERSIONS - {Partition.CHANGES}
        rows = (_with(batch, keys) for batch in self._stored.among(names, stored, keys))
        return [pa.Table.from_batches([one]) for one in within_memory(rows, self._limits)]

    def _whole(self) -> Batches:
        """Rows of a view whose rows depend on each other: what they are made of fits in memory."""
        rows = self._stored.table(self._view.columns, self._view.partitions)
        with closing(EmbeddedDatabase()) as database:
            database.load(_STORED, rows)
            is_pending = database.has_rows(_pending(_STORED))
            if is_pending:
                check_fold(self._live.dataset, self._live.shape, self._live.view)
            if is_pending and database.has_rows(ties(self._live.shape, _STORED)):
                raise NotEmbeddedError(
                    f"pending changes of {self._live.name} that claim the same place"
                )
            for batch in self._inner_rows(database):
                yield self._filtered(batch)

    def _of_view(self, database: EmbeddedDatabase) -> Batches:
        for batch in self._inner_rows(database):
            yield batch.select(self.schema.names)

    def _inner_rows(self, database: EmbeddedDatabase) -> Batches:
        """Rows of the view over what is loaded: what is shown, and what the condition is about."""
        listed = ", ".join(map(quoted, self._inner.names))
        yield from database.batches(f"SELECT {listed} FROM ({self._view.sql})", self._inner)

    def _filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        table, where = self._live.table, self._where
        if self._asked and where is not None and not isinstance(table, CommittedTable):
            # Start-up time: PyIceberg.
            from polynya.query.stored_rows import where_holds

            rows = where_holds(table, pa.Table.from_batches([batch]), where)
            batch = rows.combine_chunks().to_batches()[0] if rows.num_rows else batch.slice(0, 0)
        return batch.select(self.schema.names)


@dataclass(frozen=True, slots=True)
class _NewestChanges:
    """The keys of the records that show a pending change or its delete, and the rows they show."""

    touched: pa.Table
    shown: list[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class LiveView:
    """A view over the stored rows of a relation: SQL, and what it reads of them.

    `quiet` are the columns whose values count where nothing is pending.
    """

    sql: str
    columns: frozenset[str]
    quiet: frozenset[str]
    partitions: frozenset[Partition]
    folds: bool


def live_view(
    dataset: ResolvedDataset, shape: Shape, view: str, *, used: Collection[str], stored: str
) -> LiveView:
    """A view with at least the columns `used`, over the relation `stored`.

    Raises:
        NotEmbeddedError: it has no translation, or needs more than is translated.
    """
    _check_plain(shape)
    narrow = _narrowed(shape, used)
    text = definitions(dataset, narrow, quote_path(_SCHEMA, stored))[view]
    types = _Types((tuple(narrow.columns.items()), narrow.keys), narrow)
    sql, names = _compiled(text, types, stored)
    # The columns of the table that the text names, and those that tell its ties.
    columns = {*narrow.columns, *names.intersection(h.HEADER_NAMES), h.PARTITION}
    if view == dataset.relations.changes_view:
        return LiveView(sql, frozenset(columns), frozenset(columns), _CHANGES, folds=False)
    if shape.append_only or view == dataset.relations.current_stored_view:
        current = frozenset({Partition.CURRENT})
        return LiveView(sql, frozenset(columns), frozenset(columns), current, folds=False)
    if view == dataset.relations.history_stored_view:
        versions = frozenset({Partition.CURRENT, Partition.PRIOR})
        return LiveView(sql, frozenset(columns), frozenset(columns), versions, folds=False)
    if view == dataset.relations.history_view and shape.coalesce:
        _check_runs(shape)
    columns |= {h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL}
    quiet = columns
    if view != dataset.relations.history_view:
        # Rows of Current as they are; of what is folded there is none.
        quiet = columns & {*used, h.PARTITION, h.OPERATION}
    return LiveView(sql, frozenset(columns), frozenset(quiet), _VERSIONS, folds=True)


@dataclass(frozen=True, slots=True)
class _Types:
    """A shape, known by what the translation of a view depends on beside its text."""

    known: tuple[object, ...]
    shape: Shape = field(compare=False)


@lru_cache(maxsize=256)
def _compiled(text: str, types: _Types, stored: str) -> tuple[str, frozenset[str]]:
    """A view in DuckDB's SQL, and the columns that it names: parsing takes longer than reading."""
    try:
        sql = duckdb_sql(trino_sql(parse_one(text, read="spark"), types.shape), stored, stored)
        tree = parse_one(sql, read="duckdb")
    except SqlglotError as error:
        raise NotEmbeddedError("no translation of the view") from error
    return sql, frozenset(column.name for column in tree.find_all(exp.Column))


def check_fold(dataset: ResolvedDataset, shape: Shape, view: str) -> None:
    """Raise NotEmbeddedError where a fold of pending changes is Spark's alone."""
    if shape.replaces:
        raise NotEmbeddedError("pending records that replace their elements")
    keys = [shape.columns[key] for key in shape.keys]
    if not all(is_key(key) for key in keys):
        raise NotEmbeddedError("pending changes of keys that are not plain values")
    hashed = view in {dataset.relations.history_view, dataset.relations.headers_view}
    if hashed and not all(_has_same_hash(key) for key in keys):
        raise NotEmbeddedError("the key hash of pending changes, whose text is Spark's")


def _pending(stored: str) -> str:
    return f"SELECT 1 FROM {stored} WHERE {h.PARTITION} = '{Partition.CHANGES}'"


def ties(shape: Shape, stored: str) -> str:
    """SQL of the pending events that share their place with another event of the record.

    Which of them counts may be decided by a hash of Spark's text of them.
    """
    keys = ", ".join(map(quoted, shape.keys))
    events = f"SELECT {keys}, {STORED_SEQUENCE} AS __seq FROM {stored} WHERE {h.PARTITION}"
    pending = f"{events} = '{Partition.CHANGES}'"
    applied = f"{events} IN ('{Partition.CURRENT}', '{Partition.PRIOR}')"
    return (
        f"(SELECT 1 FROM ({pending}) GROUP BY {keys}, __seq HAVING count(*) > 1) UNION ALL "
        f"(SELECT 1 FROM ({pending}) SEMI JOIN ({applied}) USING ({keys}, __seq))"
    )


def _narrowed(shape: Shape, used: Collection[str]) -> Shape:
    """The shape without the columns that were not asked for and on which no other one depends."""
    needed = {*shape.keys, *shape.partial, *used}
    if shape.expired is not None:
        needed.add(shape.expired[0])
    if shape.coalesce:
        return shape
    kept = {name: kind for name, kind in shape.columns.items() if name in needed}
    return replace(shape, columns=kept or dict(list(shape.columns.items())[:1]))


def _check_plain(shape: Shape) -> None:
    """Columns that a statement does not name may decide which rows exist, or their values."""
    if shape.expired is not None and shape.columns.get(shape.expired[0]) not in _TIMES:
        raise NotEmbeddedError("rows that have left by the age that a text tells")
    if shape.bridged:
        raise NotEmbeddedError("columns that were given another type")


def _check_runs(shape: Shape) -> None:
    tracked = shape.tracked if shape.tracked is not None else shape.data
    if not all(is_key(shape.columns[name]) for name in tracked):
        raise NotEmbeddedError("history that coalesces values which are not plain")


def _has_same_hash(key: DataType) -> bool:
    return key == BINARY or (has_same_text(key) and not isinstance(key, Decimal))


def _distinct(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    return rows.select(list(keys)).group_by(list(keys)).aggregate([])


def _with(batch: pa.RecordBatch, keys: pa.Table) -> pa.RecordBatch:
    """The rows of a batch whose keys are among these."""
    return _matching(batch, keys, among=True)


def _without(batch: pa.RecordBatch, keys: pa.Table) -> pa.RecordBatch:
    """The rows of a batch whose keys are not among these."""
    return _matching(batch, keys, among=False)


def _matching(batch: pa.RecordBatch, keys: pa.Table, *, among: bool) -> pa.RecordBatch:
    names = keys.column_names
    if len(names) == 1:
        column = batch.column(names[0])
        found = pc.is_in(column, value_set=keys[names[0]].combine_chunks().cast(column.type))
        return batch.filter(found if among else pc.invert(found))
    place = "hdr__row"
    rows = pa.table({name: batch.column(name) for name in names})
    ones = pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)
    rows = rows.append_column(place, pc.cumulative_sum(ones, start=-1))
    join = "left semi" if among else "left anti"
    matching = rows.join(keys.cast(rows.select(names).schema), names, join_type=join)
    return batch.take(matching[place].combine_chunks().sort())


def _with_short_texts(rows: pa.Table) -> pa.Table:
    """The rows with texts of header columns as Arrow's `string`; PyIceberg gives `large_string`."""
    for name in (h.OPERATION, *_ORDER):
        column = rows.column(name).cast(pa.string())
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _chunks(batches: Batches) -> Iterator[pa.Table]:
    """Batches put together, so that each has many rows."""
    chunk: list[pa.Table] = []
    rows = 0
    for batch in batches:
        chunk.append(pa.Table.from_batches([batch]))
        rows += batch.num_rows
        if rows >= _CHUNK_ROWS:
            yield pa.concat_tables(chunk, promote_options="permissive")
            chunk, rows = [], 0
    if chunk:
        yield pa.concat_tables(chunk, promote_options="permissive")


def _with_nulls(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    for column in columns:
        rows = rows.append_column(column.name, pa.nulls(rows.num_rows, column.type))
    return rows


def _column_names(table: Table | CommittedTable) -> list[str]:
    if isinstance(table, CommittedTable):
        return list(table.columns)
    return [field.name for field in table.schema().fields]


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return cast_to(batch, schema)
    except pa.ArrowException as error:
        raise NotEmbeddedError(f"Arrow: {next(iter(str(error).splitlines()), '')}") from error
