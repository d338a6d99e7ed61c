"""The queries of derived tables over the columns that their inputs have now. No JVM."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from polynya.derived.affected import plan_of
from polynya.derived.flow import CompiledFlow, compile_flow, tables_read
from polynya.derived.plans import OF_REGISTERED, FullPlan, Plan
from polynya.derived.schema import DerivedInput
from polynya.derived.tables import ParsedQuery, parsed_query
from polynya.engine.inventory import tables_of
from polynya.engine.project_views import ProjectViews, registered_view
from polynya.lake.fold.live_views import columns_of_history_input
from polynya.lake.read.inspect import shape
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.task import StorageTask
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.flows import FLOW_TABLE_EMPTY
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.query.translate import NotEmbeddedError


@dataclass(frozen=True, slots=True)
class QueryOverInputs:
    """The query of a derived table, and its inputs by the names that it calls them by."""

    query: ParsedQuery
    inputs: Mapping[str, DerivedInput]


def query_over_inputs(
    project: LoadedProject, task: DerivedTask, dataset: str
) -> QueryOverInputs | None:
    """The query of a table, as SQL; None while one of its inputs has no columns, or it is wrong."""
    query = task.query_of(dataset)
    if not has_tables(project.target):
        return None
    try:
        named = tables_read(query.flow) if query.flow else parsed_query(query.text, dataset).names
        only = None if named is None else frozenset(named)
        known = derived_inputs(project, task, with_history=not query.flow, only=only)
        text = compiled(project, task, dataset, known).sql if query.flow else query.text
        parsed = parsed_query(text, dataset)
    except PolynyaError:
        # `validate` and the step say what is wrong with it.
        return None
    inputs = {}
    for name in parsed.names:
        found = [
            table
            for full, table in known.items()
            if name.lower() in {full.lower(), full.lower().rpartition(".")[2]}
        ]
        if len(found) != 1 or found[0] is None:
            return None
        inputs[name] = found[0]
    return QueryOverInputs(parsed, inputs)


def step_plan(
    project: LoadedProject,
    task: DerivedTask,
    dataset: str,
    over: QueryOverInputs | None = None,
) -> Plan | None:
    """The plan of the steps of one table; None while one of its inputs has no columns yet.

    `over` is its query, where it is known already.
    """
    query = task.query_of(dataset)
    if query.incremental == "full":
        return FullPlan("`incremental: full`")
    over = over or query_over_inputs(project, task, dataset)
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
    project: LoadedProject,
    task: DerivedTask,
    *,
    with_history: bool = False,
    only: Collection[str] | None = None,
) -> dict[str, DerivedInput | None]:
    """The tables that a transform may read, by `schema.table`, as the catalog has them.

    `with_history`: also the versions of those that keep history, by the name of the view. `only`:
    no others than those that a query calls so, so that few tables are opened.
    """
    return inputs_of(project, task.reads, task.registered, with_history=with_history, only=only)


def inputs_of(
    project: LoadedProject,
    reads: Iterable[StorageTask],
    registered: Iterable[RegisteredTask],
    *,
    with_history: bool = False,
    only: Collection[str] | None = None,
) -> dict[str, DerivedInput | None]:
    """The tables of some tasks as queries read them, as `derived_inputs`."""
    names = None if only is None else {name.casefold() for name in only}

    def is_named(dataset: ResolvedDataset) -> bool:
        relations = dataset.relations
        views = (relations.view, relations.history_view)
        called = {name for one in views for name in (one, f"{relations.schema}.{one}")}
        return names is None or any(name.casefold() in names for name in called)

    catalog = python_catalog(project.target)
    found: dict[str, DerivedInput | None] = {}
    for read in reads:
        for entry in tables_of(read, catalog, is_named):
            if entry.is_ledger:
                continue
            now = None if entry.table is None else shape(entry.table, entry.dataset)
            found[entry.name] = (
                DerivedInput(
                    entry.name, {name: str(kind) for name, kind in now.columns.items()}, now.keys
                )
                if now is not None and now.columns
                else None
            )
            if with_history and entry.dataset.kept.history:
                relations = entry.dataset.relations
                name = f"{relations.schema}.{relations.history_view}"
                found[name] = None
                if now is not None and now.columns:
                    of_history = columns_of_history_input(now)
                    found[name] = DerivedInput(
                        name, {one: str(kind) for one, kind in of_history.items()}
                    )
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
            found[name] = DerivedInput(name, columns, dataset.table.keys)
    return found
