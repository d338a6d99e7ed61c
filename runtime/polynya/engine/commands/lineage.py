"""The lineage of a project, from its settings and the stored columns of its tables. No JVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import IcebergType

from polynya.derived.column_graph import (
    ColumnFacts,
    ColumnGraph,
    GraphDataset,
    Node,
    derived_dataset,
    merged_source,
    mirrored_dataset,
    storage_datasets,
)
from polynya.engine.commands.plan import columns_to_rewrite
from polynya.engine.inventory import ProjectTable, tables_of
from polynya.lake.fold.live_views import columns_of
from polynya.lake.read import inspect
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import ResolvedDataset, recorded, shown_before
from polynya.model.config.derived import DerivedTask, ForeignTask
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.config.settings import Dataset
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.lineage import (
    LINEAGE_SUBJECT_AMBIGUOUS,
    LINEAGE_SUBJECT_UNKNOWN,
)
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.model.promotion import widen
from polynya.model.types import parse_type


def project_graph(project: LoadedProject, catalog: Catalog | None) -> ColumnGraph:
    """All columns of a project. `catalog` is None before the first run."""
    return _graph(project, [one.now for one in _read(project, catalog)])


def columns_made_of(
    project: LoadedProject, catalog: Catalog, task: DerivedTask, names: Collection[str]
) -> ColumnGraph:
    """The columns of some tables `schema.view` of a transform and of what it reads, and no others.

    So it costs little in a project with thousands of tables.
    """
    tasks = tuple(dict.fromkeys((*(one.name for one in task.reads), task.name)))
    chosen = tuple(one for one in project.tasks if one.name in tasks)
    part = replace(project, tasks=chosen, mirrors=())
    wanted = {name.casefold() for name in names}

    def is_wanted(dataset: ResolvedDataset) -> bool:
        return dataset.relations.current.casefold() in wanted

    return _graph(part, [one.now for one in _read(part, catalog, is_wanted)])


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column of a table that goes or gets another type; `what` says which.

    `is_gone`: queries can no longer name it.
    """

    dataset: str
    column: str
    what: str
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class ColumnImpact:
    """A change of a column that a transform reads, itself or through others.

    `columns` are those of the transform that it reaches, `decides_rows` tells that it reaches the
    rows. `fails` is what is wrong with the query once the change is there, None where nothing is.
    """

    change: ColumnChange
    dataset: str
    task: str
    columns: tuple[str, ...]
    decides_rows: bool
    fails: str | None


def nodes_of(graph: ColumnGraph, subject: str | None) -> list[Node]:
    """The nodes that a subject names, all without one; all columns and rows of a dataset.

    Raises ConfigError for a name that nothing has, or several.
    """
    names = list(graph.datasets)
    if subject is None:
        return [node for name in names for node in _all_of(graph, name)]
    found: dict[str, list[Node]] = {}
    for name in names:
        # `orders` and `orders.amount` where one schema has it.
        is_table = graph.datasets[name].kind in {"table", "transform"}
        for known in (name, name.rpartition(".")[2]) if is_table else (name,):
            if subject.lower() == known.lower():
                found[name] = _all_of(graph, name)
            elif subject.lower().startswith(f"{known.lower()}."):
                column = graph.datasets[name].find(subject[len(known) + 1 :])
                if column is not None:
                    found.setdefault(f"{name}.{column.name}", [(name, column.name)])
    exact = [what for what in found if what.lower() == subject.lower()]
    if len(exact) == 1:
        return found[exact[0]]
    if len(found) > 1:
        raise LINEAGE_SUBJECT_AMBIGUOUS(
            name=shown(subject), meanings=" or ".join(shown(one) for one in sorted(found))
        )
    if not found:
        near = [
            f"{name}.{column.name}"
            for name in names
            if subject.lower().startswith(f"{name.lower()}.")
            for column in graph.datasets[name].columns
        ]
        raise LINEAGE_SUBJECT_UNKNOWN(name=shown(subject), fix=suggest(subject, near or names))
    return next(iter(found.values()))


def _all_of(graph: ColumnGraph, name: str) -> list[Node]:
    columns = graph.datasets[name].columns
    return [*((name, column.name) for column in columns), (name, None)]


def impacts(project: LoadedProject, catalog: Catalog) -> list[ColumnImpact]:
    """What changed columns of tables do to transforms.

    Columns change by the settings of their dataset, by an edited query, and by what the source sent
    since the last step of a transform.
    """
    read = _read(project, catalog)
    before = _graph(project, [one.before for one in read], with_stored=True)
    now = _graph(project, [one.now for one in read])
    changes = [change for one in read for change in _changes(one, now)]
    found = []
    for change in dict.fromkeys(changes):
        reached = before.downstream([(change.dataset, change.column)])
        for dataset in reached.datasets.values():
            if dataset.kind != "transform" or dataset.name == change.dataset:
                continue
            after = now.datasets[dataset.name].rows.unknown
            was_known = not before.datasets[dataset.name].rows.unknown
            fails = change.is_gone and was_known and after
            columns = tuple(column.name for column in dataset.columns)
            rows = bool(dataset.rows.inputs)
            found.append(
                ColumnImpact(
                    change, dataset.name, dataset.task, columns, rows, after[0] if fails else None
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class _TableRead:
    """A table of a project as its settings were when it was written, and as they are now."""

    task: StorageTask
    before: ColumnFacts
    now: ColumnFacts
    copy: CopyState | None = None
    #: The types that columns had when a transform last read the table, where they are others now.
    seen: Mapping[str, str] = field(default_factory=dict)


def _read(
    project: LoadedProject,
    catalog: Catalog | None,
    wanted: Callable[[ResolvedDataset], bool] = lambda _: True,
) -> list[_TableRead]:
    tasks: tuple[StorageTask, ...] = (*project.foreign, *project.tasks)
    entries = [(task, one) for task in tasks for one in _entries(task, catalog, wanted)]
    copies = {
        entry.name: inspect.states(entry.table)[0]
        for _, entry in entries
        if entry.table is not None
    }
    derivations = [one.derivation for one in copies.values() if one.derivation is not None]
    read = []
    for task, entry in entries:
        copy = copies.get(entry.name)
        if entry.table is None or copy is None:
            facts = ColumnFacts(entry.dataset)
            read.append(_TableRead(task, facts, facts))
            continue
        former = shown_before(entry.dataset, copy.settings)
        snapshots = {
            one.inputs[entry.dataset.relations.internal]
            for one in derivations
            if entry.dataset.relations.internal in one.inputs
        }
        read.append(
            _TableRead(
                task,
                _facts(entry.table, former, copy),
                _facts(entry.table, entry.dataset, copy),
                copy,
                _types_then(entry.table, snapshots),
            )
        )
    return [*read, *_read_views(project)]


def _read_views(project: LoadedProject) -> Iterator[_TableRead]:
    """The views of queries: nothing of them is stored."""
    for task in project.tasks:
        for name in task.query_views if isinstance(task, DerivedTask) else ():
            facts = ColumnFacts(resolved(task, Dataset(name=name, mode="append_only")))
            yield _TableRead(task, facts, facts)


def _types_then(table: Table, snapshots: set[int]) -> dict[str, str]:
    """The types of the columns in the oldest of some snapshots that the table still has."""
    there = [one for one in table.metadata.snapshots if one.snapshot_id in snapshots]
    if not there:
        return {}
    oldest = min(there, key=lambda one: one.sequence_number or 0)
    schemas = {one.schema_id: one for one in table.metadata.schemas}
    schema = schemas.get(oldest.schema_id) if oldest.schema_id is not None else None
    present = {one.field_id: one for one in table.schema().fields}
    if schema is None:
        return {}
    return {
        one.name: f"{_spelled(one.field_type)} → {_spelled(present[one.field_id].field_type)}"
        for one in schema.fields
        if one.field_id in present and present[one.field_id].field_type != one.field_type
    }


def _spelled(kind: IcebergType) -> str:
    """A type of Iceberg as Spark spells it, where it can be widened."""
    return {"long": "bigint"}.get(str(kind), str(kind))


def _changes(read: _TableRead, now: ColumnGraph) -> Iterator[ColumnChange]:
    """The columns of a table that go or get another type."""
    dataset, copy = read.now.dataset, read.copy
    if copy is None:
        return
    name = dataset.relations.current
    graph = now.datasets[name]
    stored, shown = read.before.columns or {}, read.now.columns or {}
    after = recorded(dataset, {}, has_rows=False)
    remade = any(
        setting in copy.settings and copy.settings[setting] != after[setting]
        for setting in ("mapping", "rules", "nested")
    )
    for column, kind in stored.items():
        made = graph.find(column)
        if column not in shown:
            yield ColumnChange(name, column, "the view no longer has it", is_gone=True)
        elif made is None and not graph.rows.unknown:
            yield ColumnChange(name, column, "the query no longer has it", is_gone=True)
        elif remade and made is not None and made.origins.unknown:
            yield ColumnChange(name, column, "later rows hold NULL in it")
        elif column in read.seen:
            yield ColumnChange(name, column, read.seen[column])
        elif (declared := dataset.events.columns.get(column)) is not None:
            present = parse_type(kind)
            again = columns_to_rewrite(dataset, copy)
            if present != declared and (column in again or widen(present, declared) == declared):
                yield ColumnChange(name, column, f"{kind} → {declared}")


def _graph(
    project: LoadedProject, tables: Sequence[ColumnFacts], *, with_stored: bool = False
) -> ColumnGraph:
    tasks = {task.name: task for task in (*project.foreign, *project.tasks)}
    datasets: dict[str, GraphDataset] = {}
    for facts in tables:
        task = tasks[facts.dataset.task]
        if isinstance(task, DerivedTask):
            made: tuple[GraphDataset, ...] = (
                _derived(project, task, facts, datasets, with_stored=with_stored),
            )
        else:
            source, table = storage_datasets(facts, source_name(task, facts.dataset))
            made = merged_source(datasets.get(source.name), source), table
        datasets |= {one.name: one for one in made}
    for mirror in project.mirrors:
        datasets |= {one.name: one for one in _mirrored(mirror, datasets)}
    return ColumnGraph(datasets)


def source_name(task: StorageTask, dataset: ResolvedDataset) -> str:
    """What the source of a dataset is called: the folder or landing, and what of it is read.

    That of a table of another project is its task.
    """
    if isinstance(task, ForeignTask):
        return task.name
    if isinstance(task, DirectTask):
        return f"{task.reads.name}/{task.reads_table}"
    return f"{dataset.landing.folder}/{dataset.landing.source or dataset.landing.glob}"


def _entries(
    task: StorageTask, catalog: Catalog | None, wanted: Callable[[ResolvedDataset], bool]
) -> Iterator[ProjectTable]:
    """The tables of a task: those that it has found, else those that its file declares."""
    entries = list(tables_of(task, catalog, wanted))
    found = [entry for entry in entries if not entry.is_ledger]
    if not found and any(entry.is_ledger and entry.table is None for entry in entries):
        found = [ProjectTable(task, resolved(task, one), None) for one in task.datasets]
    yield from found


def _facts(table: Table, dataset: ResolvedDataset, copy: CopyState) -> ColumnFacts:
    columns = columns_of(dataset, inspect.shape(table, dataset), dataset.relations.view)
    if not columns:
        return ColumnFacts(dataset)
    types = {name: str(kind) for name, kind in columns.items()}
    met = {name: parse_type(text) for name, text in copy.columns.of_source.items()}
    return ColumnFacts(dataset, types, met, tuple(copy.columns.keys))


def _derived(
    project: LoadedProject,
    task: DerivedTask,
    facts: ColumnFacts,
    datasets: Mapping[str, GraphDataset],
    *,
    with_stored: bool,
) -> GraphDataset:
    query = task.query_of(facts.dataset.name)
    reads = {read.name for read in task.reads}
    inputs = {
        one.name: one
        for one in datasets.values()
        if one.task in reads and one.kind in {"table", "transform"}
    }

    def where(path: NodePath) -> str:
        return project.where(task.name, *query.path, *path)

    return derived_dataset(facts, query, inputs, where, with_stored=with_stored)


def _mirrored(
    mirror: ConnectedMirror, datasets: Mapping[str, GraphDataset]
) -> Iterator[GraphDataset]:
    source = mirror.source
    for name, table in list(datasets.items()):
        if table.task != source.name or table.kind not in {"table", "transform"}:
            continue
        view = name.rpartition(".")[2]
        plain = view.removeprefix(source.prefix)
        wanted = any(fnmatchcase(plain, glob) for glob in mirror.include)
        if wanted and not any(fnmatchcase(plain, glob) for glob in mirror.exclude):
            yield mirrored_dataset(mirror.name, f"{mirror.views.prefix}{view}", table)
