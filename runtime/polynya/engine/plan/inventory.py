"""Which tables a project has by now.

The declared datasets, the discovered ones, and the positions of whole tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from polynya.engine.work.ledger import ledger_dataset
from polynya.lake.read import inspect
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import dataset_of_source
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats.registry import rules_of
from polynya.model.reading.loader import LoadedProject


@dataclass(frozen=True, slots=True)
class Entry:
    """One internal table of a project, `table` None before its first run."""

    task: StorageTask
    dataset: ResolvedDataset
    table: Table | None
    is_ledger: bool = False

    @property
    def name(self) -> str:
        """`schema.view`."""
        return self.dataset.relations.current


def inventory(project: LoadedProject, catalog: Catalog | None) -> Iterator[Entry]:
    """All tables of all tasks, task by task; None is a catalog without tables. Needs no JVM."""
    for task in project.tasks:
        if not rules_of(task.landing.format).finds_tables:
            for declared in task.datasets:
                dataset = resolved(task, declared)
                yield Entry(task, dataset, _load(catalog, dataset))
            continue
        ledger = ledger_dataset(task)
        table = _load(catalog, ledger)
        yield Entry(task, ledger, table, is_ledger=True)
        if table is not None:
            for source in inspect.states(table)[0].membership.members:
                dataset = dataset_of_source(task, source)
                yield Entry(task, dataset, _load(catalog, dataset))


def _load(catalog: Catalog | None, dataset: ResolvedDataset) -> Table | None:
    return inspect.load(catalog, dataset) if catalog is not None else None
