"""The files of a unit that have landed and are in no table yet, found without Spark.

An agent asks for them when another process or a service does the work of the unit. The position of
that process is read from its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from polynya.engine.ledger import ledger_dataset
from polynya.engine.tasks.storage import policy_for_new
from polynya.formats.batch import FilePart, FileProgress
from polynya.formats.extracts import landed_extracts
from polynya.formats.registry import format_of
from polynya.lake.read import inspect
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.lake.table.state import CopyState
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import rules_of
from polynya.store.object_store import ObjectInfo
from polynya.store.places import store_at

#: Unread files by dataset.
UnreadFiles = Mapping[str, Sequence[FilePart]]


def unread_files(target: ResolvedTarget, task: StorageTask, unit: str) -> UnreadFiles:
    """The unread files of each dataset of a unit: a declared dataset, or a task that finds them.

    As its own process would see them now. Raises what reading the landing zone or tables raises.
    """
    landed = list(store_at(target.landing, target.aws).list(task.landing.path))
    catalog = python_catalog(target) if has_tables(target) else None
    rules = rules_of(task.landing.format)
    if rules.finds_tables and rules.shares_files:
        ledger = ledger_dataset(task)
        return {unit: _of_dataset(task, ledger, landed, _state(catalog, ledger))}
    if rules.finds_tables:
        return _of_folders(task, landed, catalog)
    (dataset,) = (
        dataset
        for dataset in (resolved(task, declared) for declared in task.datasets)
        if dataset.relations.current == unit
    )
    return {unit: _of_dataset(task, dataset, landed, _state(catalog, dataset))}


def _of_folders(
    task: StorageTask, landed: Sequence[ObjectInfo], catalog: Tables | None
) -> UnreadFiles:
    """Of a task whose source tables have folders; those that wait for a decision are left out."""
    folders = format_of(task).tables(landed)
    members = _state(catalog, ledger_dataset(task)).membership.members
    new = policy_for_new(task, members, folders.tables)
    taken = set(folders.tables) - new.ignored - new.suspended
    routes, _ = datasets_of_sources(task, taken, known=members)
    return {
        dataset.relations.current: _of_dataset(
            task, dataset, folders.tables[source], _state(catalog, dataset)
        )
        for source, dataset in routes.items()
    }


def _of_dataset(
    task: StorageTask, dataset: ResolvedDataset, landed: Iterable[ObjectInfo], state: CopyState
) -> Sequence[FilePart]:
    done: Mapping[str, FileProgress] = state.position.files
    extracts = dataset.landing.extracts
    if extracts is None:
        return format_of(task).unread(landed, done, dataset).files
    extracts_found = landed_extracts(landed, dataset, extracts, done, state.position.last_extract)
    return [FilePart.of(info) for extract in extracts_found.due for info in extract.files]


def _state(catalog: Tables | None, dataset: ResolvedDataset) -> CopyState:
    """What was copied so far; nothing before the first run."""
    table = inspect.load(catalog, dataset) if catalog is not None else None
    return inspect.states(table)[0] if table is not None else CopyState()
