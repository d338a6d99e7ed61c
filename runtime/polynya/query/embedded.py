"""The embedded engine: answer statements over live views in DuckDB, in this process.

It loads the stored rows of the views with PyIceberg as Arrow, makes each view over them from the
SQL that Trino gets (`query/views.py`), and translates the statement (`query/selects.py`). It raises
NotEmbeddedError, and Spark answers, wherever the two engines might decide by different texts or
compare values differently.

DuckDB gets rows as Arrow and gives answers as Arrow. It reads and writes no file, loads no
extension and sees no environment variable. It never runs a user's text, only SQL that this package
makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import duckdb
import pyarrow as pa
import sqlglot
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.expressions import EqualTo, In
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import IcebergType, ListType, MapType, StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.live_views import definitions
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import STORED_SEQUENCE
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import Partition
from polynya.model.names import quote_path
from polynya.model.promotion import storage_type
from polynya.model.types import BINARY, DataType, Decimal
from polynya.query.expressions import Relation, RelationColumn, distinct_names, is_key, quoted
from polynya.query.selects import Query, translate
from polynya.query.translate import NotEmbeddedError, parsed
from polynya.query.views import duckdb_sql, has_same_text, shown_columns, translated

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # These make `n > 4` of `n + 1 > 5` and `sum(n) + count(n)` of `sum(n + 1)`: an overflow that
    # must be an error would pass.
    "disabled_optimizers": "expression_rewriter,statistics_propagation,sum_rewriter",
    "enable_external_access": "false",
    "memory_limit": "2GB",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
#: Rows of an answer; a longer one is streamed by Spark.
MAX_ROWS: Final = 1_000_000
_BATCH_ROWS: Final = 100_000
_SCHEMA = "polynya"
_CHANGES = frozenset({Partition.CHANGES, Partition.RETAINED})
_VERSIONS = frozenset({Partition.CURRENT, Partition.PRIOR, Partition.CHANGES})
#: What PyIceberg raises for a table that it cannot read, or whose files are gone.
_UNREADABLE: Final = (
    OSError, ValueError, NotImplementedError, ResolveError, ValidationError, pa.ArrowException,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StatementLimits:
    """What one statement may read: rows, bytes of files, and bytes in memory, of all its tables."""

    rows: int = 5_000_000
    file_bytes: int = 256 * 1024 * 1024
    memory_bytes: int = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Live:
    """A view of a dataset, as its table has it in the commit that `table` was loaded with."""

    view: str
    dataset: ResolvedDataset
    shape: Shape
    table: Table

    @property
    def name(self) -> str:
        """`schema.view`."""
        return f"{self.dataset.relations.schema}.{self.view}"


@dataclass(slots=True)
class _RequestedView:
    """A view that a statement names, and what it asks of it."""

    live: Live
    place: str
    used: set[str] = field(default_factory=set)


def answer_here(
    statement: str, find: Callable[[str], Live], *, limit: int | None, limits: StatementLimits
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The rows of a statement; `find` gives the view of a name `schema.view`.

    Raises:
        NotEmbeddedError: Spark has to answer it. `find` may raise it too.
    """
    query, asked = _parsed(statement, find)
    with closing(EmbeddedDatabase()) as database:
        _load(database, asked, limits)
        schema = _schema(query)
        return schema, database.answer(query.sql, schema, limit)


def stream_here(
    statement: str, find: Callable[[str], Live], *, limits: StatementLimits
) -> Iterator[pa.RecordBatch]:
    """The rows of a statement as they come, however many they are; see `answer_here`."""
    query, asked = _parsed(statement, find)
    with closing(EmbeddedDatabase()) as database:
        _load(database, asked, limits)
        yield from database.batches(query.sql, _schema(query))


def _parsed(statement: str, find: Callable[[str], Live]) -> tuple[Query, list[_RequestedView]]:
    """The query of a statement, and the views that it reads."""
    asked: dict[str, _RequestedView] = {}

    def relation(name: str) -> Relation:
        if name not in asked:
            asked[name] = _RequestedView(find(name), f"v{len(asked)}")
        return _relation(asked[name])

    return translate(parsed(statement), relation), list(asked.values())


def _relation(asked: _RequestedView) -> Relation:
    live = asked.live
    columns = columns_of(live.dataset, live.shape, live.view)
    if columns is None:
        raise NotEmbeddedError(f"the view {live.name}, which is not there yet")
    if not distinct_names([field.name for field in live.table.schema().fields]):
        raise NotEmbeddedError(f"{live.name} has columns that differ in capitals only")
    return Relation(
        asked.place,
        tuple(RelationColumn(name, kind, quoted(name)) for name, kind in columns.items()),
        asked.used.add,
    )


def columns_of(dataset: ResolvedDataset, shape: Shape, view: str) -> dict[str, DataType] | None:
    """Names and types of the columns of a view in their order; None for an unknown view."""
    sql = definitions(dataset, shape, "t").get(view)
    if sql is None or not shape.columns:
        return None
    return {name: storage_type(kind) for name, kind in shown_columns(sql, shape).items()}


def _load(database: EmbeddedDatabase, views: list[_RequestedView], limits: StatementLimits) -> None:
    """Load what the views read, each table once, and make the views."""
    tables: dict[str, list[_RequestedView]] = {}
    for view in views:
        tables.setdefault(view.live.dataset.relations.internal, []).append(view)
    rows, size = 0, 0
    for number, asked in enumerate(tables.values()):
        stored = _load_table(database, asked, f"s{number}", limits)
        rows, size = rows + stored.num_rows, size + stored.nbytes
        refuse_large(rows, 0, limits)
        if size > limits.memory_bytes:
            raise NotEmbeddedError(f"more than {limits.memory_bytes:,} bytes in memory")


def _load_table(
    database: EmbeddedDatabase, asked: list[_RequestedView], place: str, limits: StatementLimits
) -> pa.Table:
    first = asked[0].live
    source = TableRows(first.table)
    made = [
        live_view(view.live.dataset, view.live.shape, view.live.view, used=view.used, stored=place)
        for view in asked
    ]
    pending = any(view.folds for view in made) and source.pending() > 0
    if pending:
        for one, view in zip(asked, made, strict=True):
            if view.folds:
                check_fold(one.live.dataset, one.live.shape, one.live.view)
    columns: set[str] = set().union(*(view.columns for view in made))
    wanted = columns if pending else set().union(*(view.quiet for view in made))
    stored = source.read(
        sorted(wanted), _partitions(asked, made, pending=pending), limits, blank=columns - wanted
    )
    database.load(place, stored)
    if pending and database.has_rows(ties(first.shape, place)):
        raise NotEmbeddedError(f"pending changes of {first.name} that claim the same place")
    for one, view in zip(asked, made, strict=True):
        database.view(one.place, view.sql)
    return stored


def _partitions(
    asked: list[_RequestedView], made: list[LiveView], *, pending: bool
) -> frozenset[Partition]:
    """Prior only where history is shown, or where pending events may be older than a delete."""
    wanted: set[Partition] = set()
    for one, view in zip(asked, made, strict=True):
        is_history = one.live.view == one.live.dataset.relations.history_view
        if not view.folds or is_history or pending:
            wanted |= view.partitions
        else:
            wanted |= {Partition.CURRENT}
    return frozenset(wanted)


def _schema(query: Query) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in query.columns])


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
    try:
        sql = duckdb_sql(translated(view, text, narrow).sql, stored, stored)
        names = {
            column.name for column in sqlglot.parse_one(sql, read="duckdb").find_all(exp.Column)
        }
    except SqlglotError as error:
        raise NotEmbeddedError(f"no translation of the view {view}") from error
    # The columns of the table that the text names, and those that tell its ties.
    columns = {*narrow.columns, *names.intersection(h.HEADER_NAMES), h.PARTITION}
    if view == dataset.relations.changes_view:
        return LiveView(sql, frozenset(columns), frozenset(columns), _CHANGES, folds=False)
    if shape.append_only:
        current = frozenset({Partition.CURRENT})
        return LiveView(sql, frozenset(columns), frozenset(columns), current, folds=False)
    if view == dataset.relations.history_view and shape.coalesce:
        _check_runs(shape)
    columns |= {h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL}
    quiet = columns
    if view != dataset.relations.history_view:
        # Rows of Current as they are; of what is folded there is none.
        quiet = columns & {*used, h.PARTITION, h.OPERATION}
    return LiveView(sql, frozenset(columns), frozenset(quiet), _VERSIONS, folds=True)


def check_fold(dataset: ResolvedDataset, shape: Shape, view: str) -> None:
    """Raise NotEmbeddedError where a fold of pending changes is Spark's alone."""
    keys = [shape.columns[key] for key in shape.keys]
    if not all(is_key(key) for key in keys):
        raise NotEmbeddedError("pending changes of keys that are not plain values")
    hashed = view in {dataset.relations.history_view, dataset.relations.headers_view}
    if hashed and not all(_has_same_hash(key) for key in keys):
        raise NotEmbeddedError("the key hash of pending changes, whose text is Spark's")


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
    """The shape without columns that nobody asked for and on which no other one depends."""
    needed = {*shape.keys, *shape.partial, *used}
    if shape.coalesce:
        return shape
    kept = {name: kind for name, kind in shape.columns.items() if name in needed}
    return replace(shape, columns=kept or dict(list(shape.columns.items())[:1]))


def _check_plain(shape: Shape) -> None:
    """Columns that a statement does not name may decide which rows exist, or their values."""
    if shape.expired is not None:
        raise NotEmbeddedError("rows that have left by their age")
    if shape.bridged:
        raise NotEmbeddedError("columns that were given another type")


def _check_runs(shape: Shape) -> None:
    tracked = shape.tracked if shape.tracked is not None else shape.data
    if not all(is_key(shape.columns[name]) for name in tracked):
        raise NotEmbeddedError("history that coalesces values which are not plain")


def _has_same_hash(key: DataType) -> bool:
    return key == BINARY or (has_same_text(key) and not isinstance(key, Decimal))


class TableRows:
    """The rows of a table as of the commit that it was loaded with."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def pending(self) -> int:
        """Rows of changes that are not applied yet, deleted ones included."""
        return _rows(self._tasks([Partition.CHANGES]))

    def read(
        self,
        columns: Sequence[str],
        partitions: Collection[Partition],
        limits: StatementLimits,
        *,
        blank: Collection[str] = (),
    ) -> pa.Table:
        """Columns of the rows of some partitions; those that are `blank` are NULL.

        Raises:
            NotEmbeddedError: they are too many, or PyIceberg cannot read them.
        """
        wanted = self._table.schema().select(*columns)
        for column in wanted.fields:
            if _loses_nulls(column.field_type):
                raise NotEmbeddedError(f"PyIceberg reads NULL in {column.name} as empty")
        tasks = self._tasks(partitions)
        refuse_large(_rows(tasks), sum(task.file.file_size_in_bytes for task in tasks), limits)
        scan = ArrowScan(
            self._table.metadata,
            self._table.io,
            wanted,
            _within(partitions),
        )
        try:
            # Batch by batch, because compressed files say little of the memory that they take.
            tables: list[pa.Table] = []
            size = 0
            for batch in scan.to_record_batches(tasks):
                tables.append(pa.Table.from_batches([batch]))
                size += batch.nbytes
                if size > limits.memory_bytes:
                    raise NotEmbeddedError(f"more than {limits.memory_bytes:,} bytes in memory")
            rows = pa.concat_tables(tables or [scan.to_table([])], promote_options="permissive")
            for column in schema_to_pyarrow(self._table.schema().select(*blank)):
                rows = rows.append_column(column.name, pa.nulls(rows.num_rows, column.type))
            return rows
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def _tasks(self, partitions: Collection[Partition]) -> list[FileScanTask]:
        try:
            tasks: Iterable[Any] = self._table.scan(row_filter=_within(partitions)).plan_files()
            return list(tasks)
        except _UNREADABLE as error:
            raise _unreadable(error) from error


def refuse_large(rows: int, size: int, limits: StatementLimits) -> None:
    """Raise NotEmbeddedError for more than the limits."""
    if rows > limits.rows:
        raise NotEmbeddedError(f"{rows:,} stored rows; up to {limits.rows:,} are read here")
    if size > limits.file_bytes:
        raise NotEmbeddedError(
            f"{size:,} bytes of files; up to {limits.file_bytes:,} are read here"
        )


def _loses_nulls(kind: IcebergType) -> bool:
    """Whether PyIceberg 0.12 makes an empty list or map of NULL somewhere in a type.

    `ArrowProjectionVisitor` rebuilds lists and maps of structs from their offsets alone, which do
    not record NULL.
    """
    match kind:
        case StructType():
            return any(_loses_nulls(field.field_type) for field in kind.fields)
        case ListType():
            return isinstance(kind.element_type, StructType) or _loses_nulls(kind.element_type)
        case MapType():
            return isinstance(kind.value_type, StructType) or _loses_nulls(kind.value_type)
        case _:
            return False


def _rows(tasks: Iterable[FileScanTask]) -> int:
    return sum(task.file.record_count for task in tasks)


def _within(partitions: Collection[Partition]) -> Any:
    # PyIceberg's own annotations hide the positional form of its expressions.
    names = [str(partition) for partition in partitions]
    if len(names) == 1:
        return EqualTo(term=h.PARTITION, value=names[0])
    return In(term=h.PARTITION, values=names)  # type: ignore[call-arg]


def _unreadable(error: BaseException) -> NotEmbeddedError:
    text = str(error).splitlines()
    return NotEmbeddedError(f"PyIceberg: {text[0] if text else type(error).__name__}")


class EmbeddedDatabase:
    """A database in memory; `close` ends it. All raise NotEmbeddedError for what DuckDB refuses."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=_SETTINGS)
        self._run("SET TimeZone = 'UTC'")
        self._run("SET lock_configuration = true")

    def close(self) -> None:
        """Forget everything."""
        self._connection.close()

    def load(self, table: str, rows: pa.Table) -> None:
        """Make a table of rows. `table` is a plain name of ours, here and below."""
        # Copied: over Arrow's memory, Arrow would do the filters, with its own rules for NaN.
        try:
            self._connection.register("incoming", rows)
        except duckdb.Error as error:
            raise _refused(error) from error
        self._run(f"CREATE TABLE {table} AS FROM incoming")
        self._connection.unregister("incoming")

    def view(self, name: str, sql: str) -> None:
        """Make a view."""
        self._run(f"CREATE VIEW {name} AS {sql}")

    def has_rows(self, sql: str) -> bool:
        """Whether a query has any row."""
        try:
            return self._connection.execute(f"SELECT 1 FROM ({sql}) LIMIT 1").fetchone() is not None
        except duckdb.Error as error:
            raise _refused(error) from error

    def answer(self, sql: str, schema: pa.Schema, limit: int | None) -> list[pa.RecordBatch]:
        """The rows of a query with the names and types of a schema; at most `limit` of them."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.batches(sql, schema):
            batches.append(batch)
            rows += batch.num_rows
            if limit is not None and rows >= limit:
                batches[-1] = batches[-1].slice(0, batch.num_rows - (rows - limit))
                break
            if rows > MAX_ROWS:
                raise NotEmbeddedError(f"an answer of more than {MAX_ROWS:,} rows")
        return batches

    def batches(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a query as they come, with the names and types of a schema."""
        try:
            for batch in self._connection.execute(sql).fetch_record_batch(_BATCH_ROWS):
                columns = [
                    column.cast(field.type)
                    for column, field in zip(batch.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (duckdb.Error, pa.ArrowException) as error:
            raise _refused(error) from error

    def _run(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except duckdb.Error as error:
            raise _refused(error) from error


def _refused(error: BaseException) -> NotEmbeddedError:
    text = str(error).splitlines()
    return NotEmbeddedError(f"DuckDB: {text[0] if text else type(error).__name__}")
