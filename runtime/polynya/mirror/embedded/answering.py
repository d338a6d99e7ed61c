"""A statement over live views: translated, its stored rows read, and answered by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.table import Table

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.shape import Shape
from polynya.mirror.embedded.database import Database
from polynya.mirror.embedded.parsing import parsed
from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.selects import Query, translate
from polynya.mirror.embedded.stored import Limits, StoredRows, refuse_large
from polynya.mirror.embedded.typed import Column, Relation, distinct_names, quoted
from polynya.mirror.embedded.views import LiveView, check_fold, columns_of, live_view, ties
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.headers import Partition


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
class _Asked:
    """A view that a statement names, and what it asks of it."""

    live: Live
    place: str
    used: set[str] = field(default_factory=set)


def answer_here(
    statement: str, find: Callable[[str], Live], *, limit: int | None, limits: Limits
) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The rows of a statement; `find` gives the view of a name `schema.view`.

    Raises:
        NotEmbeddedError: Spark has to answer it. `find` may raise it too.
    """
    query, asked = _asked(statement, find)
    with closing(Database()) as database:
        _load(database, asked, limits)
        schema = _schema(query)
        return schema, database.answer(query.sql, schema, limit)


def stream_here(
    statement: str, find: Callable[[str], Live], *, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """The rows of a statement as they come, however many they are; see `answer_here`."""
    query, asked = _asked(statement, find)
    with closing(Database()) as database:
        _load(database, asked, limits)
        yield from database.batches(query.sql, _schema(query))


def _asked(statement: str, find: Callable[[str], Live]) -> tuple[Query, list[_Asked]]:
    """What a statement asks, and of which views."""
    asked: dict[str, _Asked] = {}

    def relation(name: str) -> Relation:
        if name not in asked:
            asked[name] = _Asked(find(name), f"v{len(asked)}")
        return _relation(asked[name])

    return translate(parsed(statement), relation), list(asked.values())


def _relation(asked: _Asked) -> Relation:
    live = asked.live
    columns = columns_of(live.dataset, live.shape, live.view)
    if columns is None:
        raise NotEmbeddedError(f"the view {live.name}, which is not there yet")
    if not distinct_names([field.name for field in live.table.schema().fields]):
        raise NotEmbeddedError(f"{live.name} has columns that differ in capitals only")
    return Relation(
        asked.place,
        tuple(Column(name, kind, quoted(name)) for name, kind in columns.items()),
        asked.used.add,
    )


def _load(database: Database, views: list[_Asked], limits: Limits) -> None:
    """Load what the views read, each table once, and make the views."""
    tables: dict[str, list[_Asked]] = {}
    for one in views:
        tables.setdefault(one.live.dataset.relations.internal, []).append(one)
    rows, size = 0, 0
    for number, asked in enumerate(tables.values()):
        stored = _load_table(database, asked, f"s{number}", limits)
        rows, size = rows + stored.num_rows, size + stored.nbytes
        refuse_large(rows, 0, limits)
        if size > limits.memory_bytes:
            raise NotEmbeddedError(f"more than {limits.memory_bytes:,} bytes in memory")


def _load_table(database: Database, asked: list[_Asked], place: str, limits: Limits) -> pa.Table:
    first = asked[0].live
    source = StoredRows(first.table)
    made = [
        live_view(one.live.dataset, one.live.shape, one.live.view, used=one.used, stored=place)
        for one in asked
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
    asked: list[_Asked], made: list[LiveView], *, pending: bool
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
    return pa.schema([pa.field(one.name, arrow_type(one.type)) for one in query.columns])
