"""The plan of a project: tables, landings and clusters, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from polynya.engine.commands.plan import (
    DatasetFacts,
    DatasetPlan,
    PlannedChange,
    StoredSize,
    columns_to_rewrite,
    plan_dataset,
)
from polynya.engine.inventory import ProjectTable, inventory, tables_of
from polynya.engine.ledger import ledger_dataset
from polynya.lake.read import inspect
from polynya.lake.table.state import CopyState
from polynya.model import headers as h
from polynya.model.config.sources import datasets_of_sources, included
from polynya.model.config.task import StorageTask
from polynya.model.formats import rules_of
from polynya.model.loader import LoadedProject
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at


def new_landings(project: LoadedProject) -> tuple[str, ...]:
    """Names of landings and captures that have landed nothing yet, in the order of the files."""
    if not project.landings and not project.captures:
        return ()
    # Start-up time: PyArrow.
    from polynya.streams.landing import landed_tables

    store = store_at(project.target.landing, project.target.aws)
    new = [task.name for task in project.landings if not landed_tables(store, task.place)]
    new += [task.name for task in project.captures if not _has_landed(store, task.place)]
    return tuple(new)


def _has_landed(store: ObjectStore, folder: str) -> bool:
    """Whether a capture has put a batch."""
    return any(True for _ in store.beginning(f"{folder}/capture-"))


@dataclass(frozen=True, slots=True)
class MovedTask:
    """A task that goes from one cluster to another."""

    task: str
    before: str
    after: str

    @property
    def means(self) -> str:
        """What that does to its data."""
        return (
            f"with the next push its nodes stop it, and those of cluster {self.after} continue "
            "where its tables are; nothing is read twice"
        )


def moved_tasks(pushed: LoadedProject | None, project: LoadedProject) -> tuple[MovedTask, ...]:
    """The tasks that move to another cluster; none where nothing was pushed.

    A project that named no cluster had one, which now gets the name of the project's default.
    """
    default = project.project.cluster
    if pushed is None or default is None:
        return ()
    before = {task.name: pushed.cluster_of(task) or default for task in pushed.works}
    return tuple(
        MovedTask(task.name, before[task.name], after)
        for task in project.works
        if task.name in before
        and (after := project.cluster_of(task)) is not None
        and after != before[task.name]
    )


_INTERNAL_SUFFIX = "_internal"


@dataclass(frozen=True, slots=True)
class PlannedDataset:
    """A dataset, its table if there is one, and its plan."""

    entry: ProjectTable
    plan: DatasetPlan


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """What a project's configuration does to its tables; datasets without changes are left out.

    `undiscovered` are tasks that find their tables and have not run yet; `unconfigured` are tables
    that no task fills any more; `landings` are tasks that have landed nothing yet; `moved` are
    tasks that move to another cluster.
    """

    datasets: tuple[PlannedDataset, ...]
    undiscovered: tuple[str, ...]
    unconfigured: tuple[DatasetPlan, ...]
    landings: tuple[str, ...] = ()
    moved: tuple[MovedTask, ...] = ()

    def changes(self) -> Iterator[PlannedChange]:
        """All changes of all configured datasets."""
        for dataset in self.datasets:
            yield from dataset.plan.changes

    @property
    def has_changes(self) -> bool:
        """Whether `polynya migrate`, a run or an operator has anything to do."""
        acted_on = (change.action != "nobody" for change in self.changes())
        return bool(self.undiscovered or self.landings or self.moved) or any(acted_on)


def plan_project(
    project: LoadedProject, catalog: Catalog | None, pushed: LoadedProject | None = None
) -> ProjectPlan:
    """Compare a project with its tables, and with its pushed version, if there is one.

    `catalog` None: there was no run yet.
    """
    tasks = frozenset(task.name for task in project.tasks)
    entries = list(inventory(project, catalog))
    undiscovered = [e.task for e in entries if e.is_ledger and e.table is None]
    orphans: list[_Orphan] = []
    if catalog is not None:
        taken_names = {e.dataset.relations.internal for e in entries}
        # Of another project, which fills them.
        read = (entry for task in project.foreign for entry in tables_of(task, catalog))
        taken_names |= {entry.dataset.relations.internal for entry in read}
        orphans = list(_orphans(catalog, {name.lower() for name in taken_names}))
        entries += _of_renamed(undiscovered, orphans, tasks, catalog)
    taken = {e.dataset.relations.internal for e in entries}
    planned = [
        PlannedDataset(entry, plan_dataset(_facts(entry, tasks)))
        for entry in entries
        if not entry.is_ledger
    ]
    return ProjectPlan(
        tuple(dataset for dataset in planned if dataset.plan.changes),
        tuple(task.name for task in undiscovered),
        tuple(_unconfigured(orphan) for orphan in orphans if orphan.internal not in taken),
        new_landings(project),
        moved_tasks(pushed, project),
    )


def _facts(entry: ProjectTable, tasks: frozenset[str]) -> DatasetFacts:
    source = entry.dataset.landing.source
    discovered = rules_of(entry.task.landing.format).finds_tables and source is not None
    copy = _copy_state(entry.table) if entry.table is not None else None
    stored = None
    if entry.table is not None and copy is not None and columns_to_rewrite(entry.dataset, copy):
        # Only then: it reads all manifests of the table.
        stored = StoredSize(*inspect.stored_rows(entry.table))
    return DatasetFacts(
        dataset=entry.dataset,
        copy=copy,
        included=not discovered or included(entry.task, source or ""),
        tasks=tasks,
        stored=stored,
    )


def _copy_state(table: Table) -> CopyState:
    return inspect.states(table)[0]


@dataclass(frozen=True, slots=True)
class _Orphan:
    """An internal table that belongs to no dataset of the project."""

    schema: str
    name: str
    copy: CopyState

    @property
    def internal(self) -> str:
        """`schema.table`."""
        return f"{self.schema}.{self.name}"


def _orphans(catalog: Catalog, taken_names: set[str]) -> Iterator[_Orphan]:
    """Internal tables of the catalog except `taken_names` (`schema.table` in lower case)."""
    for schema in sorted(catalog.list_namespaces()):
        for identifier in sorted(catalog.list_tables(schema)):
            name = identifier[-1]
            if not name.endswith(_INTERNAL_SUFFIX) or ".".join(identifier).lower() in taken_names:
                continue
            table = catalog.load_table(identifier)
            if h.STATE in table.schema().column_names:
                yield _Orphan(".".join(schema), name, _copy_state(table))


def _of_renamed(
    new: Sequence[StorageTask],
    orphans: Sequence[_Orphan],
    tasks: frozenset[str],
    catalog: Catalog,
) -> Iterator[ProjectTable]:
    """Tables that a removed task had discovered and a new task would discover again.

    The ledger of the old task lists them.
    """
    names = {orphan.internal for orphan in orphans}
    for task in new:
        schema = ledger_dataset(task).relations.internal_schema
        members = {
            source
            for orphan in orphans
            if orphan.schema == schema and orphan.copy.membership.task not in tasks
            for source in orphan.copy.membership.members
            if included(task, source)
        }
        for dataset in datasets_of_sources(task, members)[0].values():
            if dataset.relations.internal in names:
                yield ProjectTable(task, dataset, inspect.load(catalog, dataset))


def _unconfigured(orphan: _Orphan) -> DatasetPlan:
    task = orphan.copy.membership.task or "unknown"
    change = PlannedChange(
        "unconfigured",
        f"the task {task} no longer fills it",
        "it is unchanged, with its views; nothing is copied to it",
        "nobody",
    )
    return DatasetPlan(orphan.internal, task, (change,))
