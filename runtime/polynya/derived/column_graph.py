"""The columns of a project as one graph: from sources through tables and transforms to mirrors.

A node is a column of a dataset, or the rows of it as a whole: what decides these decides every
column. The graph is made of settings and of the columns that tables have; nothing is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from sqlglot import exp

from polynya.derived.drawing import DrawnNode
from polynya.derived.flow import compile_flow, tables_read
from polynya.derived.lineage import (
    NOTHING,
    ColumnOrigins,
    ExpressionLineage,
    LineageKind,
    lineage_of,
    not_known,
    origin_of,
    union,
)
from polynya.derived.schema import DerivedInput, as_flow_input
from polynya.derived.statement import parse as parse_statement
from polynya.derived.tables import parsed_query
from polynya.lake.fold.live_views import HEADER_TYPES, STABLE_HISTORY_COLUMNS
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedQuery
from polynya.model.documents.yaml import NodePath
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.headers import FROM_TIMESTAMP, RESERVED_PREFIX, TO_TIMESTAMP
from polynya.model.names import folded, shown
from polynya.model.types import DataType, Void
from polynya.transform.mapping import columns_read, element_column, flattened, mapped
from polynya.transform.parsing import parse as parse_expression
from polynya.transform.rules import ResolvedRules, columns_after, columns_named, resolve

#: Sources are outside of the lake, mirrors behind it.
DatasetKind: TypeAlias = Literal["source", "table", "transform", "mirror"]
#: How the columns are known: the table has them; settings name them, and more may come; not at all.
ColumnsKnown: TypeAlias = Literal["stored", "declared", "not yet"]
#: A dataset and a column of it, None for its rows.
Node: TypeAlias = tuple[str, str | None]

_DELETED: Final = "hdr__deleted"


@dataclass(frozen=True, slots=True)
class GraphColumn:
    """A column, its type as far as that is known, and what it is made of.

    `masked_by` is the rule that masks it, as `file:line:col`.
    """

    name: str
    type: str | None
    origins: ColumnOrigins = NOTHING
    masked_by: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryOrigins:
    """The History view of a dataset: its name, and what it is made of besides the data columns.

    `rows` is what decides which versions there are, besides the rows of the dataset.
    """

    name: str
    headers: Mapping[str, ColumnOrigins]
    rows: ColumnOrigins


@dataclass(frozen=True, slots=True)
class GraphDataset:
    """A dataset with its columns, and what decides its rows.

    Attributes:
        name: `schema.view` of a table, `folder/what` of a source, `mirror:view` of a mirror.
        kind: what it is.
        task: the task that makes it; of a source the one that reads it.
        columns: in their order; of a selection only those that it takes.
        rows: what decides which rows there are.
        reads: the datasets that it is made of.
        known: how its columns are known.
        history: its History view, which queries may read.
    """

    name: str
    kind: DatasetKind
    task: str
    columns: tuple[GraphColumn, ...]
    rows: ColumnOrigins = NOTHING
    reads: tuple[str, ...] = ()
    known: ColumnsKnown = "stored"
    history: HistoryOrigins | None = None

    def find(self, name: str) -> GraphColumn | None:
        """The column of a name, as engines compare names."""
        return next((one for one in self.columns if folded(one.name) == folded(name)), None)

    @property
    def types(self) -> dict[str, str]:
        """Names and types, `void` where the type is not known."""
        return {one.name: one.type or str(Void()) for one in self.columns}


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """One step of lineage: `made` is made of `origin`, or decided by it, in some ways."""

    origin: Node
    made: Node
    kinds: frozenset[LineageKind]


@dataclass(frozen=True)
class ColumnGraph:
    """The datasets of a project by their names, each after all that it reads."""

    datasets: Mapping[str, GraphDataset] = field(default_factory=dict)

    def uses(self) -> Iterator[ColumnUse]:
        """All steps of lineage, in the order of the datasets and columns that are made."""
        for dataset in self.datasets.values():
            made: list[tuple[str | None, ColumnOrigins]] = [
                *((column.name, column.origins) for column in dataset.columns),
                (None, dataset.rows),
            ]
            for column, origins in made:
                for origin, kinds in origins.inputs.items():
                    yield ColumnUse(origin, (dataset.name, column), kinds)
            for read in dataset.reads:
                yield ColumnUse((read, None), (dataset.name, None), frozenset())

    def upstream(self, starts: Iterable[Node]) -> ColumnGraph:
        """What some nodes are made of, and these; the rows of a dataset count for its columns."""
        origins: dict[Node, list[Node]] = {}
        for use in self.uses():
            origins.setdefault(use.made, []).append(use.origin)
        wanted: set[Node] = set()
        pending = list(starts)
        while pending:
            node = pending.pop()
            if node not in wanted:
                wanted.add(node)
                pending += [*origins.get(node, ()), (node[0], None)]
        return self._only(wanted)

    def downstream(self, starts: Iterable[Node]) -> ColumnGraph:
        """What is made of some nodes, and these. Changed rows change all columns of a dataset."""
        made: dict[Node, list[Node]] = {}
        for use in self.uses():
            made.setdefault(use.origin, []).append(use.made)
        wanted: set[Node] = set()
        pending = list(starts)
        while pending:
            node = pending.pop()
            if node in wanted:
                continue
            wanted.add(node)
            pending += made.get(node, ())
            if node[1] is None and (dataset := self.datasets.get(node[0])) is not None:
                pending += [(dataset.name, column.name) for column in dataset.columns]
        return self._only(wanted)

    def near(self, names: Iterable[str], steps: int) -> ColumnGraph:
        """The datasets that so many steps lead to from some, over reads and columns."""
        beside: dict[str, set[str]] = {}
        for use in self.uses():
            origin, made = use.origin[0], use.made[0]
            beside.setdefault(made, set()).add(origin)
            beside.setdefault(origin, set()).add(made)
        found = set(names)
        for _ in range(steps):
            found |= {other for name in found for other in beside.get(name, ())}
        nodes = {
            (one.name, column)
            for one in self.datasets.values()
            if one.name in found
            for column in (None, *(column.name for column in one.columns))
        }
        return self._only(nodes)

    def _only(self, wanted: set[Node]) -> ColumnGraph:
        """The graph of some nodes, without steps from and to others."""
        kept: dict[str, GraphDataset] = {}
        names = {name for name, _ in wanted}
        for dataset in self.datasets.values():
            if dataset.name not in names:
                continue
            columns = tuple(
                replace(column, origins=_within(column.origins, wanted))
                for column in dataset.columns
                if (dataset.name, column.name) in wanted
            )
            with_rows = (dataset.name, None) in wanted
            kept[dataset.name] = replace(
                dataset,
                columns=columns,
                rows=_within(dataset.rows, wanted) if with_rows else NOTHING,
                reads=tuple(read for read in dataset.reads if read in names),
            )
        return ColumnGraph(kept)

    def facts(self) -> list[dict[str, Any]]:
        """The datasets as JSON-ready values."""
        return [
            {
                "name": one.name,
                "kind": one.kind,
                "task": one.task,
                "columns_known": one.known,
                "reads": list(one.reads),
                "rows": _origin_facts(one.rows),
                "columns": [
                    {
                        "name": column.name,
                        "type": column.type,
                        "masked_by": column.masked_by,
                        **_origin_facts(column.origins),
                    }
                    for column in one.columns
                ],
            }
            for one in self.datasets.values()
        ]

    def drawn(self) -> list[DrawnNode]:
        """A box for each dataset, with the columns that each of its columns is made of."""
        return [
            DrawnNode(one.name, one.kind, one.reads, {c.name: _summary(c) for c in one.columns})
            for one in self.datasets.values()
        ]


def _within(origins: ColumnOrigins, wanted: set[Node]) -> ColumnOrigins:
    inputs = {column: kinds for column, kinds in origins.inputs.items() if column in wanted}
    return ColumnOrigins(inputs, origins.unknown)


def _origin_facts(origins: ColumnOrigins) -> dict[str, Any]:
    return {
        "inputs": [
            {"dataset": dataset, "column": column, "kinds": sorted(kinds)}
            for (dataset, column), kinds in sorted(origins.inputs.items())
        ],
        "unknown": list(origins.unknown),
    }


def _summary(column: GraphColumn) -> str:
    names = [
        name
        for (_, name), kinds in column.origins.inputs.items()
        if any(kind.is_direct for kind in kinds)
    ]
    if column.origins.unknown:
        return "← ?"
    return f"← {', '.join(dict.fromkeys(names))}" if names else ""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A dataset and what its table knows.

    `columns` are those of Current with their types, headers among them, None before there is a
    table; `of_source` those of the source that were met; `keys` those that the table was made with.
    """

    dataset: ResolvedDataset
    columns: Mapping[str, str] | None = None
    of_source: Mapping[str, DataType] = field(default_factory=dict)
    keys: tuple[str, ...] = ()


def storage_datasets(facts: ColumnFacts, source: str) -> tuple[GraphDataset, GraphDataset]:
    """The source of a table, called `source`, and the table."""
    dataset = facts.dataset
    name = dataset.relations.current
    met = dict(facts.of_source) or columns_named(dataset)
    try:
        ruled = resolve(dataset, met)
        made = {
            column: _of_expression(text, path, source)
            for column, text, path in columns_after(ruled, met)
        }
        if not facts.of_source:
            made = _surely_made(made, dataset, met, source)
        rows = _rows_of(ruled.dataset, facts.keys or dataset.events.keys, made, source)
    except (PolynyaError, RecursionError) as error:
        ruled, made, rows = ResolvedRules(dataset), {}, not_known(_message(error))
    types = {column: str(kind) for column, kind in ruled.dataset.events.columns.items()}
    if facts.columns is not None:
        known: ColumnsKnown = "stored"
        types = dict(facts.columns)
        names = list(types)
    else:
        known = "declared" if dataset.mapping.declared or dataset.mapping.columns else "not yet"
        keys = [key for key in dataset.events.keys if key not in made]
        names = [*made, *keys]
    columns = tuple(
        GraphColumn(
            column,
            types.get(column),
            made[column] if column in made else _not_made(dataset, column, source, rows),
            ruled.masks[column].place if column in ruled.masks else None,
        )
        for column in names
    )
    history = None
    if dataset.kept.history:
        headers = {one: _not_made(dataset, one, source, rows) for one in STABLE_HISTORY_COLUMNS}
        headers[TO_TIMESTAMP] = headers[FROM_TIMESTAMP]
        kept = dataset.kept
        tracked = kept.track_history_columns or [
            one for one in names if one not in kept.track_history_except
        ]
        tracked = tracked if kept.coalesce_unchanged else ()
        history = _history(dataset, headers, tracked)
    table = GraphDataset(name, "table", dataset.task, columns, rows, (source,), known, history)
    used = {column for origins in (rows, *made.values()) for _, column in origins.inputs}
    used |= {column for one in columns for _, column in one.origins.inputs}
    # What only a rule names may not be there.
    there = {
        one: kind for one, kind in met.items()
        if facts.of_source or one in used or not isinstance(kind, Void)
    }  # fmt: skip
    listed = {**there, **dict.fromkeys(sorted(used - there.keys()), Void())}
    sources = tuple(
        GraphColumn(column, None if isinstance(kind, Void) else str(kind))
        for column, kind in listed.items()
    )
    how: ColumnsKnown = "stored" if facts.of_source else known
    return GraphDataset(source, "source", dataset.task, sources, known=how), table


def merged_source(before: GraphDataset | None, source: GraphDataset) -> GraphDataset:
    """A source with what another table says of it, which reads the same files."""
    if before is None:
        return source
    columns = {column.name: column for column in before.columns}
    for column in source.columns:
        known = columns.get(column.name)
        columns[column.name] = column if known is None or known.type is None else known
    return replace(before, columns=tuple(columns.values()))


def _surely_made(
    made: Mapping[str, ColumnOrigins],
    dataset: ResolvedDataset,
    named: Mapping[str, DataType],
    source: str,
) -> dict[str, ColumnOrigins]:
    """Without the columns that only a rule names: the source may not have them."""
    kept = {*dataset.events.keys, *dataset.mapping.names}
    doubtful = {(source, one) for one, kind in named.items() if isinstance(kind, Void)}
    return {
        column: origins
        for column, origins in made.items()
        if column in kept or not {*origins.inputs} & doubtful
    }


def _of_expression(text: str, path: tuple[str, ...] | None, source: str) -> ColumnOrigins:
    """What an expression over the columns of a source is made of."""
    if path is not None and len(path) == 1:
        return origin_of(source, path[0])
    flat = flattened(text)
    elements = {element_column(len(one.steps)): one.steps[0][0] for one in flat.paths}

    def lookup(column: exp.Column) -> ColumnOrigins:
        first = column.parts[0].name
        origin = origin_of(source, elements.get(first, first))
        is_whole = len(column.parts) == 1 and first not in elements
        return origin if is_whole else origin.through(LineageKind.TRANSFORMATION)

    found = ExpressionLineage(lookup).of(parse_expression(flat.text, None))
    read = columns_read(text)
    # A function of Polynya may read a header column that it does not name, or count elements.
    named = {column for _, column in found.inputs}
    implied = (origin_of(source, one) for one in sorted(read - named))
    inputs = {one: kinds for one, kinds in found.inputs.items() if one[1] in read}
    others = union(implied).through(LineageKind.TRANSFORMATION)
    return ColumnOrigins(inputs, found.unknown) | others


def _rows_of(
    dataset: ResolvedDataset,
    keys: Sequence[str],
    made: Mapping[str, ColumnOrigins],
    source: str,
) -> ColumnOrigins:
    """What decides the rows of Current: conditions, keys, and the order of events."""
    events, mapping, kept = dataset.events, dataset.mapping, dataset.kept
    rows = NOTHING
    for condition in (mapping.where, events.apply_as_deletes, events.apply_as_truncates):
        for column in sorted(columns_read(condition)) if condition else ():
            rows |= origin_of(source, column).through(LineageKind.FILTER)
    array = mapped(dataset).array
    if array is not None:
        rows |= origin_of(source, array.steps[0][0]).through(LineageKind.JOIN)
    if kept.retention is not None:
        rows |= made.get(kept.retention.column, NOTHING).through(LineageKind.FILTER)
    if kept.mode != "append_only":
        for key in keys:
            origins = made[key] if key in made else _of_unmet_key(dataset, key, source)
            rows |= origins.through(LineageKind.GROUP_BY)
        for column in events.sequence_by if keys else ():
            rows |= origin_of(source, column).through(LineageKind.SORT)
    return rows


def _not_made(
    dataset: ResolvedDataset, column: str, source: str, rows: ColumnOrigins
) -> ColumnOrigins:
    """What a column of Current that no expression makes is made of."""
    if rows.unknown:
        return ColumnOrigins(unknown=rows.unknown)
    events = dataset.events
    if column == FROM_TIMESTAMP and events.timestamp is not None:
        return origin_of(source, events.timestamp).through(LineageKind.TRANSFORMATION)
    if column == _DELETED and events.apply_as_deletes is not None:
        read = sorted(columns_read(events.apply_as_deletes))
        return union(origin_of(source, one) for one in read).through(LineageKind.TRANSFORMATION)
    if column.startswith(RESERVED_PREFIX):
        return NOTHING
    if column in events.keys:
        return _of_unmet_key(dataset, column, source)
    return not_known("no column of the source gives it now")


def _of_unmet_key(dataset: ResolvedDataset, key: str, source: str) -> ColumnOrigins:
    """The column of the source that a key is, before any record has told its columns."""
    if any(rule.gives_name for rule in dataset.mapping.rules):
        return not_known("rules rename columns, and no record has told which one this is")
    return origin_of(source, key)


def derived_dataset(
    facts: ColumnFacts,
    query: DerivedQuery,
    inputs: Mapping[str, GraphDataset],
    where: Callable[[NodePath], str],
    *,
    with_stored: bool = False,
) -> GraphDataset:
    """A table that a query keeps over the datasets that its transform may read.

    `with_stored`: also with the columns that the table has and the query no longer gives.
    """
    dataset = facts.dataset
    stored = dict(facts.columns or {})
    name = dataset.relations.current
    try:
        columns, rows, reads = _of_query(query, inputs, where, name)
        known: ColumnsKnown = "stored" if facts.columns is not None else "declared"
    except (PolynyaError, RecursionError) as error:
        why = _why(error, query, inputs, name)
        columns = {column: not_known(why) for column in stored or dataset.events.keys}
        rows, reads = not_known(why), _named(query, inputs, name)
        known = "stored" if stored else "not yet"
    headers = {one: NOTHING for one in stored if one.startswith(RESERVED_PREFIX)}
    given = {folded(column) for column in (*columns, *headers)}
    for column in stored if with_stored else ():
        if folded(column) not in given:
            columns[column] = not_known("the query no longer gives it")
    types = {folded(column): kind for column, kind in stored.items()}
    made = tuple(
        GraphColumn(column, types.get(folded(column)), origins)
        for column, origins in {**columns, **headers}.items()
    )
    history = None
    if dataset.kept.history:
        # A version begins with the step that finds other values in any column.
        history = _history(dataset, dict.fromkeys(STABLE_HISTORY_COLUMNS, NOTHING), list(columns))
    return GraphDataset(name, "transform", dataset.task, made, rows, reads, known, history)


def _history(
    dataset: ResolvedDataset, headers: Mapping[str, ColumnOrigins], tracked: Sequence[str]
) -> HistoryOrigins:
    """The History view of a dataset whose versions other values of some columns begin."""
    relations = dataset.relations
    rows = union(
        origin_of(relations.current, one).through(LineageKind.FILTER)
        for one in tracked
        if not one.startswith(RESERVED_PREFIX)
    )
    return HistoryOrigins(f"{relations.schema}.{relations.history_view}", headers, rows)


def _of_query(
    query: DerivedQuery,
    inputs: Mapping[str, GraphDataset],
    where: Callable[[NodePath], str],
    name: str,
) -> tuple[dict[str, ColumnOrigins], ColumnOrigins, tuple[str, ...]]:
    """Origins of columns and rows, and the datasets that are read. Raises what the checks raise."""
    tables = {one.name: DerivedInput(one.name, one.types) for one in inputs.values() if one.columns}
    histories: dict[str, GraphDataset] = {}
    if query.flow:
        seen = {one.name: as_flow_input(one) for one in tables.values()}
        statement = parse_statement(compile_flow(query.flow, seen, where).sql, seen, name)
    else:
        histories = {
            one.history.name: one for one in inputs.values() if one.columns and one.history
        }
        of_history = {view: _history_input(view, one) for view, one in histories.items()}
        statement = parse_statement(query.text, tables | of_history, query.file or name)
    found = lineage_of(statement)
    columns = {one: _of_current(made, histories) for one, made in found.columns.items()}
    rows = _of_current(found.rows, histories)
    read = []
    for one in statement.inputs:
        if one in histories and (history := histories[one].history) is not None:
            rows |= history.rows
        read.append(histories[one].name if one in histories else one)
    return columns, rows, tuple(dict.fromkeys(read))


def _history_input(view: str, dataset: GraphDataset) -> DerivedInput:
    data = {
        name: kind for name, kind in dataset.types.items() if not name.startswith(RESERVED_PREFIX)
    }
    headers = {name: str(HEADER_TYPES[name]) for name in STABLE_HISTORY_COLUMNS}
    return DerivedInput(view, data | headers)


def _of_current(origins: ColumnOrigins, histories: Mapping[str, GraphDataset]) -> ColumnOrigins:
    """The same with columns of Current and of sources in place of those of History views."""
    made = ColumnOrigins(
        {one: kinds for one, kinds in origins.inputs.items() if one[0] not in histories},
        origins.unknown,
    )
    for (view, column), kinds in origins.inputs.items():
        if view not in histories:
            continue
        dataset = histories[view]
        header = dataset.history.headers.get(column) if dataset.history is not None else None
        for kind in kinds:
            made |= (origin_of(dataset.name, column) if header is None else header).through(kind)
    return made


def _named(query: DerivedQuery, inputs: Mapping[str, GraphDataset], name: str) -> tuple[str, ...]:
    """The inputs that a query names, as far as its text tells."""
    try:
        if query.flow:
            names = tables_read(query.flow)
            written = tuple(inputs) if names is None else tuple(names)
        else:
            written = parsed_query(query.text, name).names
    except PolynyaError:
        return ()
    return tuple(
        one
        for one in inputs
        if any(text.lower() in {one.lower(), one.lower().rpartition(".")[2]} for text in written)
    )


def _why(
    error: Exception, query: DerivedQuery, inputs: Mapping[str, GraphDataset], name: str
) -> str:
    """Why the lineage of a query is not known."""
    read = [inputs[one] for one in _named(query, inputs, name)]
    waits = [one.name for one in read if one.known != "stored"]
    if waits:
        return f"the columns of {', '.join(map(shown, waits))} are not known yet"
    return _message(error)


def _message(error: Exception) -> str:
    if isinstance(error, ConfigErrors):
        error = error.errors[0]
    return error.message if isinstance(error, PolynyaError) else "it has too many levels"


def mirrored_dataset(mirror: str, view: str, table: GraphDataset) -> GraphDataset:
    """A table as a mirror shows it elsewhere."""
    columns = tuple(
        GraphColumn(one.name, one.type, origin_of(table.name, one.name)) for one in table.columns
    )
    name = f"{mirror}:{view}"
    return GraphDataset(name, "mirror", mirror, columns, NOTHING, (table.name,), table.known)
