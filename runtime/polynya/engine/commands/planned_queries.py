"""What a plan says of the queries of transforms: wrong names, and the columns that tables get.

Names are followed without a JVM. Types are those of Spark's analyser, over empty views with the
columns of the inputs: it is only asked where the result may differ from what the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.catalog import Catalog

from polynya.derived.names import RelationColumns
from polynya.derived.plans import Plan
from polynya.derived.schema import DerivedInput
from polynya.engine.commands.derived_queries import (
    CheckedQuery,
    checked_query,
    step_plan,
)
from polynya.engine.commands.next_steps import NextStep, NextSteps
from polynya.engine.commands.plan import DatasetPlan, PlannedChange
from polynya.engine.commands.plan_project import PlannedDataset, ProjectPlan
from polynya.engine.inventory import ProjectTable
from polynya.lake.copy.derived_result import result_digest, result_schema
from polynya.lake.fold.live_views import columns_of, columns_of_history_input
from polynya.lake.read.inspect import load, states
from polynya.lake.table.shaping import shape_of
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.task import resolved
from polynya.model.errors import DependencyError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.types import DataType, Void, parse_type

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

#: Starts Spark. Raises DependencyError where it cannot.
Start: TypeAlias = "Callable[[], SparkSession]"


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """The query of one table, or of a view, as a plan finds it.

    Attributes:
        task: the transform.
        name: of the dataset or the view in it.
        called: `schema.view`.
        entry: the table; None for a view.
        errors: what `validate` or a step would refuse.
        steps: how a step is restricted; None for a view, with errors, and while it is not known.
        next_step: what is known of the next one; None for a view, and with errors.
        changes: what a step does to the columns of the table.
        untold: why Spark did not tell its types, although they may have changed.
    """

    task: DerivedTask
    name: str
    called: str
    entry: ProjectTable | None
    errors: tuple[PolynyaError, ...] = ()
    steps: Plan | None = None
    next_step: NextStep | None = None
    changes: tuple[PlannedChange, ...] = ()
    untold: DependencyError | None = None


def planned_queries(
    project: LoadedProject, catalog: Catalog | None, start: Start
) -> list[PlannedQuery]:
    """The queries of all transforms, in the order of the project.

    `start` is called at most once, and only where a result may have other columns or types than its
    table.
    """
    planner = _Planner(project, catalog, start)
    tasks = [task for task in project.tasks if isinstance(task, DerivedTask)]
    made = {
        (task.name, name): planner.planned(task, name)
        for task in sorted(tasks, key=lambda one: one.depth)
        for name in sorted(task.queries, key=task.stage_of)
    }
    made |= {
        (task.name, view): planner.view(task, view) for task in tasks for view in task.query_views
    }
    names = [(task, (*task.queries, *task.query_views)) for task in tasks]
    return [made[task.name, name] for task, own in names for name in own]


def with_queries(plan: ProjectPlan, queries: Sequence[PlannedQuery]) -> ProjectPlan:
    """The plan with what queries do to the columns of their tables."""
    changes = {one.called: one for one in queries if one.changes}
    datasets = [
        replace(
            one,
            plan=replace(
                one.plan, changes=(*one.plan.changes, *changes.pop(one.plan.name).changes)
            ),
        )
        if one.plan.name in changes
        else one
        for one in plan.datasets
    ]
    for query in changes.values():
        if query.entry is not None:
            made = DatasetPlan(query.called, query.task.name, query.changes)
            datasets.append(PlannedDataset(query.entry, made))
    return replace(plan, datasets=tuple(datasets))


class _Planner:
    def __init__(self, project: LoadedProject, catalog: Catalog | None, start: Start) -> None:
        self._project, self._catalog, self._start = project, catalog, start
        self._spark: SparkSession | DependencyError | None = None
        self._next_steps = NextSteps(project, catalog)
        #: Tables that a step changes, with the columns that they will have.
        self._planned: dict[str, DerivedInput] = {}

    def view(self, task: DerivedTask, name: str) -> PlannedQuery:
        """The query of a view."""
        checked = checked_query(self._project, task, name, self._planned)
        return PlannedQuery(task, name, task.view_of(name), None, checked.errors)

    def planned(self, task: DerivedTask, name: str) -> PlannedQuery:
        """The query of a table, after all that it reads."""
        (dataset,) = (resolved(task, one) for one in task.datasets if one.name == name)
        table = None if self._catalog is None else load(self._catalog, dataset)
        entry = ProjectTable(task, dataset, table)
        found = PlannedQuery(task, name, entry.name, entry)
        checked = checked_query(self._project, task, name, self._planned)
        if checked.errors or checked.reads_open:
            self._open(dataset)
            return replace(found, errors=checked.errors)
        copy = CopyState() if table is None else states(table)[0]
        is_current = not checked.reads_planned and _is_current(task, name, dataset, checked, copy)
        over = checked.over
        reads = set() if over is None else {one.name for one in over.inputs.values()}
        next_step = self._next_steps.of(task, copy.derivation, reads, is_edited=not is_current)
        found = replace(found, steps=step_plan(task, name, over), next_step=next_step)
        if over is None or is_current:
            return found
        # Columns of a first step that was refused or killed go with the next one.
        stored = {} if copy.derivation is None else copy.columns.schema
        known = {column: parse_type(kind) for column, kind in stored.items()}
        spark = self._session()
        if isinstance(spark, DependencyError):
            if checked.columns.is_open:
                self._open(dataset)
            else:
                self._note(dataset, copy, _by_names(checked.columns, known))
            return replace(found, untold=spark)
        # Start-up time: a plan whose queries are unchanged needs no Spark.
        from polynya.engine.tasks.analysed import analysed

        try:
            result = analysed(spark, entry.name, over.query, over.inputs)
            schema = result_schema(entry.name, result, known, dataset.events.keys)
        except PolynyaError as error:
            self._open(dataset)
            return replace(found, errors=(error,))
        if schema != known:
            self._note(dataset, copy, schema)
        return replace(found, changes=tuple(column_changes(known, schema)))

    def _note(
        self, dataset: ResolvedDataset, copy: CopyState, schema: Mapping[str, DataType]
    ) -> None:
        """Let the queries that read a table see the columns that it will have."""
        relations, keys = dataset.relations, dataset.events.keys
        shape = shape_of(dataset, copy, schema, keys)
        columns = columns_of(dataset, shape, relations.view) or {}
        self._planned[relations.current] = _input(relations.current, columns, keys)
        history = f"{relations.schema}.{relations.history_view}"
        self._planned[history] = _input(history, columns_of_history_input(shape), ())

    def _open(self, dataset: ResolvedDataset) -> None:
        """Let the queries that read a table whose query is wrong have no error by it."""
        relations = dataset.relations
        for name in (relations.current, f"{relations.schema}.{relations.history_view}"):
            self._planned[name] = DerivedInput(name, {}, dataset.events.keys, is_open=True)

    def _session(self) -> SparkSession | DependencyError:
        if self._spark is None:
            try:
                self._spark = self._start()
            except DependencyError as error:
                self._spark = error
        return self._spark


def _input(name: str, columns: Mapping[str, DataType], keys: tuple[str, ...]) -> DerivedInput:
    return DerivedInput(name, {column: str(kind) for column, kind in columns.items()}, keys)


def _by_names(columns: RelationColumns, known: Mapping[str, DataType]) -> dict[str, DataType]:
    """The columns of a result whose types only Spark would tell."""
    return {name: known.get(name, Void()) for name in columns.names if name}


def _is_current(
    task: DerivedTask,
    name: str,
    dataset: ResolvedDataset,
    checked: CheckedQuery,
    copy: CopyState,
) -> bool:
    """Whether the last step computed the same query over the same columns."""
    if copy.derivation is None or checked.over is None:
        return False
    views = {called: make() for called, make in checked.views.items()}
    keys = dataset.events.keys
    text, expect = checked.over.query.text, task.query_of(name).expect
    return copy.derivation.query == result_digest(text, keys, views, expect)


def column_changes(
    known: Mapping[str, DataType], schema: Mapping[str, DataType]
) -> Iterator[PlannedChange]:
    """What a step does to the columns of a table; `known` is empty before the first one."""

    def change(kind: str, what: str, means: str, *, destructive: bool = False) -> PlannedChange:
        return PlannedChange(kind, what, means, "run", destructive)

    if not known:
        columns = ", ".join(f"{name} {kind}" for name, kind in schema.items())
        yield change("columns_new", f"columns: {columns}", "the first step makes them")
        return
    for name, kind in schema.items():
        if name not in known:
            what = f"column added: {name} {kind}"
            yield change("column_added", what, "the next step computes it for all rows")
        elif known[name] != kind:
            what = f"column widened: {name} {known[name]} → {kind}"
            yield change("column_widened", what, "the next step changes its type in place")
    for name, kind in known.items():
        if name not in schema:
            what = f"column dropped: {name} {kind}"
            means = (
                "the query no longer gives it: the next step drops it, also from history; one that "
                "files are partitioned or sorted by stays, with NULL"
            )
            yield change("column_dropped", what, means, destructive=True)
