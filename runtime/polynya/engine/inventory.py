"""The tables that a project has now: declared datasets, discovered ones, and ledgers of tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from polynya.engine.ledger import ledger_dataset
from polynya.lake.read import inspect
from polynya.lake.read.committed import CommittedTable
from polynya.lake.warehouse.tables import Tables
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import named_datasets
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import rules_of
from polynya.model.loader import LoadedProject

if TYPE_CHECKING:
    from pyiceberg.table import Table

#: What reads the tables: those of PyIceberg unless a caller says otherwise.
Reader = TypeVar("Reader", bound="Table | CommittedTable", default="Table")


@dataclass(frozen=True, slots=True)
class ProjectTable(Generic[Reader]):
    """One internal table of a project, `table` None before its first run."""

    task: StorageTask
    dataset: ResolvedDataset
    table: Reader | None
    is_ledger: bool = False

    @property
    def name(self) -> str:
        """`schema.view`."""
        return self.dataset.relations.current


def inventory(
    project: LoadedProject,
    catalog: Tables[Reader] | None,
    wanted: Callable[[ResolvedDataset], bool] = lambda _: True,
) -> Iterator[ProjectTable[Reader]]:
    """The tables of all tasks whose datasets are wanted; None is a catalog without tables.

    They come task by task, and only these are loaded. Needs no JVM.
    """
    for task in project.tasks:
        yield from tables_of(task, catalog, wanted)


def tables_of(
    task: StorageTask,
    catalog: Tables[Reader] | None,
    wanted: Callable[[ResolvedDataset], bool] = lambda _: True,
) -> Iterator[ProjectTable[Reader]]:
    """The same for one task."""
    if not rules_of(task.landing.format).finds_tables:
        for declared in task.datasets:
            dataset = resolved(task, declared)
            if wanted(dataset):
                yield ProjectTable(task, dataset, _load(catalog, dataset))
        return
    ledger = ledger_dataset(task)
    table = _load(catalog, ledger)
    if wanted(ledger):
        yield ProjectTable(task, ledger, table, is_ledger=True)
    if table is not None:
        members = inspect.states(table)[0].membership.members
        for dataset in named_datasets(task, members).values():
            if wanted(dataset):
                yield ProjectTable(task, dataset, _load(catalog, dataset))


def _load(catalog: Tables[Reader] | None, dataset: ResolvedDataset) -> Reader | None:
    return inspect.load(catalog, dataset) if catalog is not None else None
