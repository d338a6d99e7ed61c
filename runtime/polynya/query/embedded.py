"""The embedded engine: answer statements over live views in DuckDB, in this process.

It loads the rows of the views (`query/live_rows.py`) and translates the statement
(`query/selects.py`). It raises NotEmbeddedError, and Spark answers, wherever the two engines might
decide by different texts or compare values differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Protocol

import pyarrow as pa
from sqlglot import exp

from polynya.formats.values.arrow_types import arrow_type
from polynya.model.types import DataType
from polynya.query.committed_rows import RowLimits, within_memory
from polynya.query.database import EmbeddedDatabase
from polynya.query.file_rows import FileRows
from polynya.query.live_rows import Live
from polynya.query.selects import Query, translate
from polynya.query.translate import NotEmbeddedError, parsed
from polynya.query.values import Relation, RelationColumn, distinct_names, quoted

#: What a table of a statement may take: Spark reads more than that sooner. Rows are held in memory
#: where the statement reads them twice.
STATEMENT_LIMITS: Final = RowLimits(
    rows=100_000_000, file_bytes=4 * 1024 * 1024 * 1024, memory_bytes=1024 * 1024 * 1024
)
#: Characters of a statement whose tree is kept: it takes a kilobyte for each word.
_SHORT: Final = 2_000


class EmbeddedView(Protocol):
    """What a statement may read: a live view, or a table that others maintain."""

    @property
    def name(self) -> str:
        """`schema.view`."""
        ...

    @property
    def columns(self) -> Mapping[str, DataType] | None:
        """Names and types of the columns in their order; None while there are none."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """The columns that tell the rows apart, if any do."""
        ...

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of all rows, as they come. Raises NotEmbeddedError for what Spark reads."""
        ...


@dataclass(slots=True)
class _RequestedView:
    """A view that a statement names, and what it asks of it."""

    live: EmbeddedView
    place: str
    used: set[str] = field(default_factory=set)


def answer_here(
    statement: str,
    find: Callable[[str], EmbeddedView],
    *,
    limit: int | None,
    limits: RowLimits,
    has_cases: bool = False,
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The rows of a statement; `find` gives the view of a name `schema.view`.

    `has_cases`: for Spark `Name` and `name` are two names.

    Raises:
        NotEmbeddedError: Spark has to answer it. `find` may raise it too.
    """
    query, asked, filters = _parsed(statement, find, has_cases=has_cases)
    with closing(_loaded(query, asked, limits, filters=filters)) as database:
        schema = _schema(query)
        return schema, database.answer(query.sql, schema, limit)


def plan_here(statement: str, find: Callable[[str], EmbeddedView]) -> dict[str, list[str]]:
    """The columns that a statement reads, by the names of its views. Raises as `answer_here`.

    How many rows a view has shows when they are read: more than the limits are left to Spark.
    """
    _, asked, _ = _parsed(statement, find)
    return {view.live.name: _used(view) for view in asked}


def stream_here(
    statement: str, find: Callable[[str], EmbeddedView], *, limits: RowLimits
) -> Iterator[pa.RecordBatch]:
    """The rows of a statement as they come, however many they are; see `answer_here`."""
    query, asked, filters = _parsed(statement, find)
    with closing(_loaded(query, asked, limits, filters=filters)) as database:
        yield from database.batches(query.sql, _schema(query))


def columns_here(statement: str, find: Callable[[str], EmbeddedView]) -> dict[str, DataType]:
    """Names and types of the columns of a statement. Raises as `answer_here`."""
    query, *_ = _parsed(statement, find)
    return {column.name: column.type for column in query.columns}


def _parsed(
    statement: str, find: Callable[[str], EmbeddedView], *, has_cases: bool = False
) -> tuple[Query, list[_RequestedView], bool]:
    """The query of a statement, the views that it reads, and whether it may filter their rows."""
    asked: dict[str, _RequestedView] = {}

    def relation(name: str) -> Relation:
        if name not in asked:
            asked[name] = _RequestedView(find(name), f"v{len(asked)}")
        return _relation(asked[name])

    tree = _parsed_often(statement) if len(statement) <= _SHORT else parsed(statement)
    query = translate(tree, relation)
    if has_cases:
        _refuse_other_spellings(tree, asked.values())
    return query, list(asked.values()), may_filter(tree)


def may_filter(tree: exp.Query) -> bool:
    """Whether DuckDB may find a filter of stored rows in a statement.

    A single SELECT without a condition, a join or a limit has none.
    """
    parts = {name for name, value in tree.args.items() if value}
    is_single = len(list(tree.find_all(exp.Query, exp.Filter))) == 1
    return not (is_single and parts <= {"expressions", "from_", "group", "order"})


@lru_cache(maxsize=64)
def _parsed_often(statement: str) -> exp.Query:
    """The same tree for the same text, which nobody changes: a dashboard asks again and again."""
    return parsed(statement)


def _refuse_other_spellings(tree: exp.Query, views: Iterable[_RequestedView]) -> None:
    """Raise NotEmbeddedError for two names that differ in capitals only."""
    names = {one.name for one in tree.find_all(exp.Identifier)}
    names.update(*(view.live.columns or () for view in views))
    if not distinct_names(list(names)):
        raise NotEmbeddedError("names that differ in capitals only")


def _relation(asked: _RequestedView) -> Relation:
    live = asked.live
    columns = live.columns
    if columns is None:
        raise NotEmbeddedError(f"the view {live.name}, which is not there yet")
    return Relation(
        asked.place,
        tuple(RelationColumn(name, kind, quoted(name)) for name, kind in columns.items()),
        asked.used.add,
    )


def _loaded(
    query: Query, views: Sequence[_RequestedView], limits: RowLimits, *, filters: bool
) -> EmbeddedDatabase:
    """A database with what the statement reads of each view; `filters`: see `may_filter`."""
    found = {view.place: _in_files(view, limits) for view in views}
    in_files = {place: rows for place, rows in found.items() if rows is not None}
    database = EmbeddedDatabase({path for rows in in_files.values() for path in rows.paths})
    try:
        for place, rows in in_files.items():
            database.read(place, rows, filtered=filters)
        _load(database, query, [view for view in views if view.place not in in_files], limits)
    except BaseException:
        database.close()
        raise
    return database


def _in_files(view: _RequestedView, limits: RowLimits) -> FileRows | None:
    # Of a masked view only the rows that it gives may reach the database.
    return view.live.in_files(_used(view), limits) if isinstance(view.live, Live) else None


def _load(
    database: EmbeddedDatabase, query: Query, views: Sequence[_RequestedView], limits: RowLimits
) -> None:
    """Give the database the rows of views: in memory those that the statement reads twice."""
    left = limits
    for view in views:
        rows = view.live.rows(_used(view), left)
        if len(re.findall(rf"\b{view.place}\b", query.sql)) < 2:
            database.stream(view.place, rows)
            continue
        table = pa.Table.from_batches(within_memory(rows, left), rows.schema)
        database.load(view.place, table)
        left = replace(left, memory_bytes=left.memory_bytes - table.nbytes)


def _used(view: _RequestedView) -> list[str]:
    """The columns that a statement names, in the order of the view; one where it only counts."""
    columns = view.live.columns or {}
    counted = [*view.live.keys, *columns][:1]
    return [name for name in columns if name in view.used] or counted


def _schema(query: Query) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in query.columns])
