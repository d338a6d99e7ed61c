"""The queries of derived tables over the columns that their inputs have now. No JVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from polynya.derived.affected import plan_of
from polynya.derived.expectations import referenced
from polynya.derived.file_columns import in_task_file, key_errors, of_settings
from polynya.derived.flow import CompiledFlow, compile_flow, tables_read
from polynya.derived.inputs import ANYWHERE, reads_history, view_of_input, views_read
from polynya.derived.names import ANY_COLUMNS, RelationColumns
from polynya.derived.plans import OF_REGISTERED, FullPlan, Plan
from polynya.derived.query_errors import table_errors
from polynya.derived.schema import DerivedInput, as_flow_input
from polynya.derived.statement import result_columns
from polynya.derived.tables import ParsedQuery, parsed_query
from polynya.engine.inventory import ProjectTable, tables_of
from polynya.engine.project_views import ProjectViews, registered_view
from polynya.lake.copy.derived_result import registered_text
from polynya.lake.fold.live_views import columns_of, columns_of_history_input
from polynya.lake.read.inspect import shape, states
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.task import StorageTask
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.flows import FLOW_TABLE_EMPTY
from polynya.model.errors import ConfigError, ConfigErrors, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.model.types import Void
from polynya.query.translate import NotEmbeddedError


@dataclass(frozen=True, slots=True)
class QueryOverInputs:
    """The query of a derived table, and its inputs by the names that it calls them by."""

    query: ParsedQuery
    inputs: Mapping[str, DerivedInput]


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """The query of a derived table over the columns that its inputs have, with its names followed.

    Attributes:
        over: the query and its inputs; None while one of these lacks columns, or is unknown.
        columns: of its result; open with errors.
        errors: what is wrong with its text, its tables and its names.
        views: what makes the text of the view of each input, by its name in the query.
        reads_planned: whether it reads a table that will have other columns.
        reads_open: whether it reads one whose columns are not known, since its query is wrong.
    """

    over: QueryOverInputs | None = None
    columns: RelationColumns = ANY_COLUMNS
    errors: tuple[ConfigError, ...] = ()
    views: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    reads_planned: bool = False
    reads_open: bool = False


def checked_query(
    project: LoadedProject,
    task: DerivedTask,
    name: str,
    planned: Mapping[str, DerivedInput] = MappingProxyType({}),
) -> CheckedQuery:
    """Follow the names of the query of a table, or of a view.

    `planned` are tables with the columns that they will have, by `schema.view`.
    """
    if errors := list(table_errors(project, task, name)):
        return CheckedQuery(errors=tuple(errors))
    try:
        opened = _opened(project, task, name, planned) if has_tables(project.target) else None
        return CheckedQuery() if opened is None else _checked(project, task, name, opened)
    except ConfigError as error:
        return CheckedQuery(errors=tuple(_each(error)))
    except PolynyaError:
        # The step says what is wrong.
        return CheckedQuery()


@dataclass(frozen=True, slots=True)
class _OpenedInputs:
    """The tables that a query reads, by its names for them.

    `coming` are the same with the columns that files name and that they do not have yet.
    """

    tables: Mapping[str, DerivedInput]
    coming: Mapping[str, DerivedInput]
    views: Mapping[str, Callable[[], str]]
    are_planned: bool


def _opened(
    project: LoadedProject, task: DerivedTask, name: str, planned: Mapping[str, DerivedInput]
) -> _OpenedInputs | None:
    """The tables that a query reads; None while one of them has no columns."""
    query = task.query_of(name)
    read = tables_read(query.flow) if query.flow else parsed_query(query.text, name).names
    only = None if read is None else frozenset((*read, *referenced(query.expect)))
    found = found_inputs(project, task.reads, task.registered, with_history=True, only=only)
    tables = [one for one, table in found.items() if table is None or not table.is_history]
    named = tables if read is None else list(read)
    inputs: dict[str, DerivedInput] = {}
    coming: dict[str, DerivedInput] = {}
    for called in named:
        full = _called(found, called)
        table = None if full is None else found[full]
        columns = None if full is None else planned.get(full)
        if columns is None and table is not None:
            columns = table.columns
        if columns is not None:
            inputs[called], coming[called] = columns, _with_coming(columns, table)
        elif called.lower() not in views_read(task):
            return None
    views = {
        called: partial(table.view, called)
        for called in (*named, *referenced(query.expect))
        if (full := _called(found, called)) is not None and (table := found[full]) is not None
    }
    are_planned = any(_called(planned, called) is not None for called in inputs)
    return _OpenedInputs(inputs, coming, views, are_planned)


def _checked(
    project: LoadedProject, task: DerivedTask, name: str, opened: _OpenedInputs
) -> CheckedQuery:
    """Follow the names of a query over its tables. Raises ConfigError for wrong ones."""
    reads_open = any(table.is_open for table in opened.tables.values())
    if reads_open and task.query_of(name).flow:
        # A flow needs all columns of its tables.
        return CheckedQuery(reads_open=True)
    try:
        parsed, result = _followed(project, task, name, opened.tables)
    except ConfigError as error:
        with suppress(ConfigError):
            _followed(project, task, name, opened.coming)
            # The next run brings what the files of an input have and its table does not yet.
            return CheckedQuery()
        raise error from None
    errors = list(key_errors(task, name, result, lambda one, path: project.where(one, *path)))
    if reads_open:
        return CheckedQuery(columns=result, errors=tuple(errors), reads_open=True)
    over = QueryOverInputs(parsed, opened.tables)
    return CheckedQuery(over, result, tuple(errors), opened.views, opened.are_planned)


def _each(error: ConfigError) -> Sequence[ConfigError]:
    return error.errors if isinstance(error, ConfigErrors) else (error,)


def _called(tables: Iterable[str], called: str) -> str | None:
    """The one table `schema.table` that a query calls so."""
    folded = called.lower()
    exact = [one for one in tables if one.lower() == folded]
    found = exact or [one for one in tables if one.lower().rpartition(".")[2] == folded]
    return found[0] if len(found) == 1 else None


def _with_coming(table: DerivedInput, found: FoundInput | None) -> DerivedInput:
    """A table with the columns that files name and that it does not have yet."""
    if found is None or found.dataset is None:
        return table
    named = of_settings(found.dataset)
    columns = dict.fromkeys((*named.names, *found.shown_again), str(Void())) | dict(table.columns)
    return replace(table, columns=columns, is_open=named.is_open)


def _followed(
    project: LoadedProject, task: DerivedTask, name: str, inputs: Mapping[str, DerivedInput]
) -> tuple[ParsedQuery, RelationColumns]:
    """The query of a table over its inputs, and its columns. Raises ConfigError for wrong names."""
    query = task.query_of(name)
    if query.flow:
        # The SQL of a flow names its tables as it does.
        tables = {
            called: replace(as_flow_input(table), name=called) for called, table in inputs.items()
        }
        flow = compile_flow(
            query.flow, tables, lambda path: project.where(task.name, *query.path, *path)
        )
        return parsed_query(flow.sql, name), RelationColumns(tuple(flow.columns))
    try:
        result = result_columns(query.text, inputs, query.file or "")
    except ConfigError as error:
        place = project.where(task.name, *query.path)
        raise in_task_file(error, query, place) from error
    return parsed_query(query.text, name), result


def step_plan(task: DerivedTask, dataset: str, over: QueryOverInputs | None) -> Plan | None:
    """The plan of the steps of one table; None while one of its inputs has no columns yet."""
    query = task.query_of(dataset)
    if query.incremental == "full":
        return FullPlan("`incremental: full`")
    if over is None:
        return None
    registered = [one for read in task.registered for one in read.datasets()]
    keyless = {one.relations.current for one in registered if not one.table.keys}
    if query.incremental == "strict" and keyless & {table.name for table in over.inputs.values()}:
        return OF_REGISTERED
    (keys,) = (one.keys for one in task.datasets if one.name == dataset)
    return plan_of(over.query, over.inputs, keys or ())


def compiled(
    project: LoadedProject,
    task: DerivedTask,
    dataset: str,
    tables: Mapping[str, DerivedInput | None],
) -> CompiledFlow:
    """The flow of a dataset over the tables of its transform; None is one without columns yet.

    Raises ConfigErrors with the places in its file.
    """
    query = task.query_of(dataset)

    def where(path: NodePath) -> str:
        return project.where(task.name, *query.path, *path)

    there = {name: table for name, table in tables.items() if table is not None}
    named = tables_read(query.flow)
    read: Mapping[str, NodePath] = dict.fromkeys(tables, ()) if named is None else named
    for name, path in read.items():
        empty = [one for one in tables if name in {one, one.rpartition(".")[2]}]
        if empty and not any(one in there for one in empty):
            raise FLOW_TABLE_EMPTY(where=where(path), table=shown(empty[0]))
    return compile_flow(query.flow, there, where)


def plan_in_words(plan: Plan | None) -> str | None:
    """How steps are restricted to what changed, or why they are not; None where that is open."""
    if plan is None:
        return None
    if isinstance(plan, FullPlan):
        return f"each step computes the whole query: {plan.reason}"
    return f"a step computes the rows that changes concern, by {', '.join(plan.columns)}"


def derived_inputs(
    project: LoadedProject, task: DerivedTask, *, only: Collection[str] | None = None
) -> dict[str, DerivedInput | None]:
    """The tables that a flow of a transform may read, by `schema.table`, as the catalog has them.

    `only`: no others than those that it calls so, so that few tables are opened.
    """
    return inputs_of(project, task.reads, task.registered, only=only)


def inputs_of(
    project: LoadedProject,
    reads: Iterable[StorageTask],
    registered: Iterable[RegisteredTask],
    *,
    only: Collection[str] | None = None,
) -> dict[str, DerivedInput | None]:
    """The tables of some tasks as flows read them, as `derived_inputs`."""
    found = found_inputs(project, reads, registered, only=only)
    return {
        name: None if one is None else as_flow_input(one.columns) for name, one in found.items()
    }


@dataclass(frozen=True, slots=True)
class FoundInput:
    """A table that a query may read: its columns, and what makes the text of its view by a name.

    `dataset` is None for a registered table.
    """

    columns: DerivedInput
    view: Callable[[str], str]
    dataset: ResolvedDataset | None = None
    #: Columns that were left out, and that the table gets again.
    shown_again: tuple[str, ...] = ()
    is_history: bool = False


def found_inputs(
    project: LoadedProject,
    reads: Iterable[StorageTask],
    registered: Iterable[RegisteredTask],
    *,
    with_history: bool = False,
    only: Collection[str] | None = None,
) -> dict[str, FoundInput | None]:
    """The tables of some tasks as queries read them, by `schema.table`.

    `with_history`: also the versions of those that keep history, by the name of the view. `only`:
    no others than those that a query calls so.
    """
    names = None if only is None else {name.casefold() for name in only}

    def is_named(dataset: ResolvedDataset) -> bool:
        relations = dataset.relations
        views = (relations.view, relations.history_view)
        called = {name for one in views for name in (one, f"{relations.schema}.{one}")}
        return names is None or any(name.casefold() in names for name in called)

    catalog = python_catalog(project.target)
    found: dict[str, FoundInput | None] = {}
    for read in reads:
        for entry in tables_of(read, catalog, is_named):
            if entry.is_ledger:
                continue
            found[entry.name] = _found(entry, entry.name)
            if with_history and entry.dataset.kept.history:
                relations = entry.dataset.relations
                name = f"{relations.schema}.{relations.history_view}"
                found[name] = _found(entry, name)
    views = ProjectViews(project)
    for other in registered:
        for dataset in other.datasets():
            name = dataset.relations.current
            try:
                types = registered_view(project, views, dataset).types
            except (NotEmbeddedError, PolynyaError):
                # `doctor` and the step say what is wrong with it; other tables are known.
                found[name] = None
                continue
            columns = {column: str(kind) for column, kind in types.items()}
            table = dataset.table
            text = registered_text(columns, table.keys, table)
            made = DerivedInput(name, columns, table.keys)
            found[name] = FoundInput(made, partial(_always, text))
    return found


def _always(text: str, _: str) -> str:
    return text


def _found(entry: ProjectTable, name: str) -> FoundInput | None:
    """A table, or its History view by its name; None while it has no columns."""
    if entry.table is None:
        return None
    dataset, copy = entry.dataset, states(entry.table)[0]
    now = shape(entry.table, dataset, copy)
    if not now.columns:
        return None
    is_history = reads_history(name, dataset)
    types = columns_of(dataset, now, dataset.relations.view)
    if is_history:
        types = columns_of_history_input(now)
    columns = {column: str(kind) for column, kind in (types or {}).items()}
    made = DerivedInput(name, columns, () if is_history else now.keys)
    view = partial(view_of_input, dataset=dataset, shape=now, place=ANYWHERE)
    gone = {*now.columns, *dataset.events.except_columns}
    shown_again = tuple(one for one in copy.columns.schema if one not in gone)
    return FoundInput(made, view, dataset, shown_again, is_history)
