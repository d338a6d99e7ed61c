"""Why a row is so: back through transforms to the events of the tables that they read. No JVM.

Each step reads only the rows that a row was made of (`derived/trace.py`): by their keys where
nothing is pending, else from the live view. Depth, rows, steps and time are bounded, and what was
left out is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, In

from polynya.derived.statement import parse
from polynya.derived.trace import ROW_NUMBER, Rows, TracedInput, trace
from polynya.engine.commands.derived_queries import (
    QueryOverInputs,
    checked_query,
    plan_in_words,
    step_plan,
)
from polynya.engine.commands.lineage import columns_made_of
from polynya.engine.commands.record import RecordEntry, record_entries
from polynya.engine.inventory import ProjectTable, inventory
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.shape import Shape
from polynya.lake.read.inspect import shape as shape_of_table
from polynya.model import headers as h
from polynya.model.config.access import ViewKind
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import PolynyaError
from polynya.model.headers import Partition
from polynya.model.loader import LoadedProject
from polynya.model.promotion import storage_type
from polynya.model.types import BIGINT, DataType
from polynya.query.committed_rows import RowLimits
from polynya.query.embedded import STATEMENT_LIMITS, EmbeddedView, answer_here
from polynya.query.live_rows import Live, LiveRows
from polynya.query.record_rows import RECORD_LIMITS, record_rows, truncates
from polynya.query.stored_rows import StoredRows
from polynya.query.translate import NotEmbeddedError
from polynya.store.clock import Clock

#: Rows of an input that are looked at to find those that made a row.
_MOST_CANDIDATES: Final = 10_000

WhyKind: TypeAlias = Literal["transform", "table"]


@dataclass(frozen=True, slots=True)
class WhyLimits:
    """How far a row is followed: steps back, rows of each input, rows in all, and seconds."""

    depth: int = 4
    rows: int = 3
    nodes: int = 60
    seconds: float = 10.0


@dataclass(slots=True)
class WhyRow:
    """A row of a dataset, and what it was made of.

    Attributes:
        entry: of a row with a key: the event and version that it is; `number` is its place among
            all of the record.
        valid: of a version that was read from History: from when to when it holds, None: still.
        sql: of a transform: its query; `computed`: how its steps are restricted, or why they are
            not.
        origins: of a transform: what its columns are made of, by column.
        left_out: why it is not followed further.
    """

    dataset: str
    task: str
    kind: WhyKind
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    types: Mapping[str, pa.DataType]
    table: ProjectTable
    entry: RecordEntry | None = None
    number: int = 0
    valid: tuple[datetime, datetime | None] | None = None
    sql: str | None = None
    computed: str | None = None
    origins: Mapping[str, Sequence[str]] = field(default_factory=dict)
    inputs: list[WhyInput] = field(default_factory=list)
    left_out: str | None = None

    @property
    def key_arrays(self) -> dict[str, pa.Array]:
        """The key in the types of its columns."""
        return {name: pa.array([value], self.types[name]) for name, value in self.key.items()}


@dataclass(slots=True)
class WhyInput:
    """What a row was made of in one input; `rows` are the first of `count`, if that is known."""

    dataset: str
    by: tuple[str, ...]
    exact: bool
    reason: str | None
    count: int | None
    rows: list[WhyRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _QueryFacts:
    """What is the same for all rows of a transform: its query, how it is computed, its columns."""

    over: QueryOverInputs | None
    sql: str | None
    computed: str | None
    origins: Mapping[str, Sequence[str]]


#: Why rows of a view of a dataset may not be read by some of its columns; None where they may.
MayRead: TypeAlias = Callable[[str, Sequence[str], ViewKind], str | None]


@dataclass(slots=True)
class WhyFollower:
    """Follows rows of a project. `may_read` are the rights of the viewer."""

    project: LoadedProject
    catalog: Catalog
    clock: Clock
    may_read: MayRead
    limits: WhyLimits = WhyLimits()
    _tables: dict[str, ProjectTable | None] = field(default_factory=dict)
    _queries: dict[str, _QueryFacts] = field(default_factory=dict)
    _nodes: int = 0
    _until: float = 0.0

    def follow(self, entry: ProjectTable, values: Mapping[str, Any]) -> WhyRow:
        """A row of a dataset with all its values, and what it was made of."""
        self._until = self.clock.monotonic() + self.limits.seconds
        return self._row(entry, values, 0)

    def _row(
        self,
        entry: ProjectTable,
        values: Mapping[str, Any],
        depth: int,
        *,
        is_version: bool = False,
    ) -> WhyRow:
        self._nodes += 1
        assert entry.table is not None, "rows were read of it"
        shape = shape_of_table(entry.table, entry.dataset)
        row = WhyRow(
            dataset=entry.name,
            task=entry.task.name,
            kind="transform" if isinstance(entry.task, DerivedTask) else "table",
            key={name: values.get(name) for name in shape.keys},
            values=values,
            types={
                name: arrow_type(storage_type(kind))
                for name, kind in shape.columns.items()
                if name not in shape.hidden
            },
            table=entry,
        )
        if is_version:
            row.valid = values[h.FROM_TIMESTAMP], values[h.TO_TIMESTAMP]
        if shape.keys:
            row.entry, row.number, row.left_out = self._entry(entry, shape, row)
        if isinstance(entry.task, DerivedTask):
            self._made_of(row, entry.task, depth)
        return row

    def _entry(
        self, entry: ProjectTable, shape: Shape, row: WhyRow
    ) -> tuple[RecordEntry | None, int, str | None]:
        """The event and version that a row is, its number, and why they are not known."""
        assert entry.table is not None, "rows were read of it"
        values = {name: _array([value], shape.columns[name]) for name, value in row.key.items()}
        try:
            rows = record_rows(entry.table, shape, values).to_pylist()
            cleared = [] if shape.append_only else truncates(entry.table)
        except NotEmbeddedError as error:
            return None, 0, str(error)
        is_derived = isinstance(entry.task, DerivedTask)
        entries = record_entries(rows, cleared, appends=shape.append_only, derived=is_derived)
        numbers = [
            number
            for number, one in enumerate(entries, 1)
            if row.valid is None or _is_version(one, row.valid[0])
        ]
        if not numbers:
            return None, 0, "the events of its record are not kept" if row.valid else None
        return entries[numbers[-1] - 1], numbers[-1], None

    def _made_of(self, row: WhyRow, task: DerivedTask, depth: int) -> None:
        name = row.table.dataset.name
        if row.dataset not in self._queries:
            self._queries[row.dataset] = self._facts(task, name, row.dataset)
        facts = self._queries[row.dataset]
        row.sql, row.computed, row.origins = facts.sql, facts.computed, facts.origins
        over = facts.over
        if over is None:
            row.left_out = "an input of its query has no columns yet, or the query is wrong"
            return
        if depth >= self.limits.depth:
            row.left_out = f"only {self.limits.depth} steps are followed"
            return
        try:
            statement = parse(over.query.text, over.inputs, name)
        except PolynyaError as error:
            row.left_out = f"its query is not analysed: {error.message}"
            return
        readers = {called: self._reader(one.name) for called, one in over.inputs.items()}

        def read(called: str, values: Mapping[str, Sequence[Any]]) -> Rows | str:
            if self.clock.monotonic() > self._until:
                return f"the {self.limits.seconds:g} s were over"
            reader = readers[called]
            return reader if isinstance(reader, str) else reader.rows(values)

        def evaluate(text: str, tables: Mapping[str, tuple[str, Rows]]) -> Rows | None:
            known = {
                name: reader for name, reader in readers.items() if not isinstance(reader, str)
            }
            return _evaluated(text, {t: (known[n], rows) for t, (n, rows) in tables.items()})

        valid = task.query_of(name).valid
        span = None if valid is None else (row.values[valid[0]], row.values[valid[1]])
        for traced in trace(statement, row.values, read, evaluate):
            reader, found = readers[traced.name], traced
            if span is not None and traced.rows and isinstance(reader, _InputReader):
                found = replace(traced, rows=reader.within(traced.rows, span))
            row.inputs.append(self._input(over.inputs[traced.name].name, found, reader, depth))

    def _input(
        self, dataset: str, traced: TracedInput, reader: _InputReader | str, depth: int
    ) -> WhyInput:
        rows = traced.rows
        by = traced.by if isinstance(reader, str) else reader.written(traced.by)
        made = WhyInput(
            dataset, by, traced.exact, traced.reason, None if rows is None else len(rows)
        )
        for found in list(rows or ())[: self.limits.rows]:
            assert not isinstance(reader, str), "it has read rows"
            if self._nodes >= self.limits.nodes or self.clock.monotonic() > self._until:
                made.reason = made.reason or "the limits of rows or time were reached"
                break
            values = reader.whole(found)
            made.rows.append(
                self._row(reader.entry, values, depth + 1, is_version=reader.is_history)
            )
        return made

    def _facts(self, task: DerivedTask, name: str, called: str) -> _QueryFacts:
        """What is the same for each row of a transform's table."""
        over = checked_query(self.project, task, name).over
        plan = step_plan(task, name, over)
        names = [called, *(one.name for one in over.inputs.values())] if over is not None else []
        graph = columns_made_of(self.project, self.catalog, task, names)
        made = graph.datasets.get(called)
        origins = {
            one.name: [f"{origin}.{column}" for origin, column in one.origins.inputs]
            for one in (made.columns if made is not None else ())
        }
        text = over.query.text if over is not None else task.query_of(name).text
        return _QueryFacts(over, text or None, plan_in_words(plan), origins)

    def _reader(self, name: str) -> _InputReader | str:
        """What reads an input `schema.view`; else why it is not read."""
        entry = self._entry_of(name)
        if entry is None:
            return "others maintain it, or the catalog has no table of it"
        if entry.table is None:
            return "nothing was copied to it yet"
        is_history = name.casefold() != entry.name.casefold()
        relations = entry.dataset.relations
        view = relations.history_view if is_history else relations.view
        live = Live(view, entry.dataset, shape_of_table(entry.table, entry.dataset), entry.table)
        return _InputReader(entry, live, self.may_read)

    def _entry_of(self, name: str) -> ProjectTable | None:
        if name not in self._tables:
            wanted = name.casefold()
            found = inventory(
                self.project,
                self.catalog,
                lambda one: (
                    wanted
                    in {
                        one.relations.current.casefold(),
                        f"{one.relations.schema}.{one.relations.history_view}".casefold(),
                    }
                ),
            )
            self._tables[name] = next((one for one in found if not one.is_ledger), None)
        return self._tables[name]


@dataclass(slots=True)
class _InputReader:
    """Reads rows of one input by values of its columns, and numbers them."""

    entry: ProjectTable
    live: Live
    may_read: MayRead
    _numbers: dict[str, int] = field(default_factory=dict)
    _whole: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, DataType]:
        """Names, in small letters, and types of its columns."""
        return {name.lower(): kind for name, kind in (self.live.columns or {}).items()}

    def written(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of columns as they are written."""
        written = {name.lower(): name for name in self.live.columns or {}}
        return tuple(written.get(name, name) for name in names)

    def whole(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row under the names of its columns as they are written."""
        return self._whole[row[ROW_NUMBER]]

    @property
    def is_history(self) -> bool:
        """Whether it reads all versions."""
        return self.live.view != self.live.dataset.relations.view

    def within(self, rows: Rows, span: tuple[datetime, datetime]) -> Rows:
        """Of versions those that hold in a span of time; rows of Current as they are."""
        keys = [name.lower() for name in self.live.shape.keys]
        return versions_within(rows, keys, span) if self.is_history else rows

    def rows(self, values: Mapping[str, Sequence[Any]]) -> Rows | str:
        """The rows whose columns have these values; else why they are not read."""
        data = {name.lower(): name for name in self.live.shape.columns}
        given = {data[name]: list(some) for name, some in values.items() if name in data}
        if not given:
            return "no column of the table leads to its rows"
        kind: ViewKind = "history" if self.is_history else "current"
        refused = self.may_read(self.entry.name, list(given), kind)
        if refused is not None:
            return refused
        try:
            found = self._found(given)
        except NotEmbeddedError as error:
            return str(error)
        if len(found) > _MOST_CANDIDATES:
            return f"more than {_MOST_CANDIDATES:,} rows may have made it"
        # Conditions on stored rows know data columns only.
        headers = {name: some for name, some in values.items() if name not in data}
        numbered = map(self._numbered, found)
        return [
            row for row in numbered if all(row.get(name) in some for name, some in headers.items())
        ]

    def _found(self, given: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
        live, shape = self.live, self.live.shape
        names = list(live.columns or {})
        stored = StoredRows(live.table, RECORD_LIMITS)
        is_plain = (
            live.view == live.dataset.relations.view
            and not (shape.soft_delete or shape.holds_deletes or shape.bridged)
            and shape.expired is None
            and all(name in shape.columns for name in names)
        )
        if is_plain and not stored.count({Partition.CHANGES}):
            arrays = {name: _array(some, shape.columns[name]) for name, some in given.items()}
            matching = stored.matching(names, {Partition.CURRENT}, arrays)
            return cast("list[dict[str, Any]]", matching.to_pylist())
        where: BooleanExpression = AlwaysTrue()
        for name, some in given.items():
            where = And(where, In(term=name, values=some))  # type: ignore[call-arg]
        matching = LiveRows(live, where=where, limits=STATEMENT_LIMITS).table()
        return cast("list[dict[str, Any]]", matching.to_pylist())

    def _numbered(self, row: Mapping[str, Any]) -> dict[str, Any]:
        number = self._numbers.setdefault(repr(row), len(self._numbers))
        self._whole[number] = row
        return {**{name.lower(): value for name, value in row.items()}, ROW_NUMBER: number}


def versions_within(
    rows: Rows, keys: Sequence[str], span: tuple[datetime, datetime]
) -> list[Mapping[str, Any]]:
    """The versions that hold at some moment of a span. The first of a record also holds before it.

    So it does in dimensions of marts, where facts may be older than what is known.
    """
    begin, end = span
    lasting = [row for row in rows if row[h.FROM_TIMESTAMP] != row[h.TO_TIMESTAMP]]
    firsts: dict[tuple[Any, ...], datetime] = {}
    for row in lasting:
        key = tuple(row.get(name) for name in keys)
        firsts[key] = min(firsts.get(key, row[h.FROM_TIMESTAMP]), row[h.FROM_TIMESTAMP])
    return [
        row
        for row in lasting
        if (row[h.TO_TIMESTAMP] is None or row[h.TO_TIMESTAMP] > begin)
        and (
            row[h.FROM_TIMESTAMP] < end
            or row[h.FROM_TIMESTAMP] == firsts[tuple(row.get(name) for name in keys)]
        )
    ]


def _is_version(entry: RecordEntry, begin: datetime) -> bool:
    """Whether an event made the version that begins then, and that holds for a while."""
    return entry.valid_from == begin and entry.valid_to != begin


@dataclass(frozen=True, slots=True)
class _TracedRows:
    """Rows that were found, as a table of a statement."""

    name: str
    types: Mapping[str, DataType]
    found: Rows

    @property
    def columns(self) -> Mapping[str, DataType]:
        """Those of the input, and the number of a row."""
        return {**self.types, ROW_NUMBER: BIGINT}

    @property
    def keys(self) -> Sequence[str]:
        """The number of a row."""
        return (ROW_NUMBER,)

    def rows(self, columns: Sequence[str], limits: RowLimits) -> pa.RecordBatchReader:
        """Some columns of the rows."""
        del limits
        kinds = self.columns
        return pa.table(
            {
                name: pa.array([row.get(name) for row in self.found], arrow_type(kinds[name]))
                for name in columns
            }
        ).to_reader()


def _evaluated(text: str, tables: Mapping[str, tuple[_InputReader, Rows]]) -> Rows | None:
    """The rows of a statement over rows that were found; None where only Spark can tell."""
    views = {
        name: _TracedRows(name, reader.columns, rows) for name, (reader, rows) in tables.items()
    }
    find: Callable[[str], EmbeddedView] = partial(_view, views)
    try:
        _, batches = answer_here(text, find, limit=None, limits=STATEMENT_LIMITS)
    except (NotEmbeddedError, pa.ArrowException):
        return None
    return [row for batch in batches for row in batch.to_pylist()]


def _view(views: Mapping[str, EmbeddedView], name: str) -> EmbeddedView:
    return views[name.rpartition(".")[2]]


def _array(values: Sequence[Any], kind: DataType) -> pa.Array:
    return pa.array(list(values), arrow_type(storage_type(kind)))
