"""Which dataset a source table of a Debezium task becomes."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from polynya.landing.debezium.scope import DebeziumScope, TableSettings
from polynya.model.errors import OperationError
from polynya.model.settings import Dataset
from polynya.model.task import ResolvedDataset, StorageTask, resolved


def dataset_of(task: StorageTask, source: str) -> ResolvedDataset:
    """The dataset of a source table: as configured by `source`, else by its name, else discovered.

    Raises OperationError when the table's name cannot name a view.
    """
    table = source.rpartition(".")[2]
    for dataset in task.datasets:
        if dataset.source == source:
            return resolved(task, dataset)
    for dataset in task.datasets:
        if dataset.source is None and dataset.name == table:
            return resolved(task, dataset)
    try:
        return resolved(task, Dataset(name=table, source=source))
    except ValidationError as error:
        raise OperationError(
            "POLYNYA-RUN-001",
            f"the source table {source!r} cannot name a view",
            where=f"task {task.name}",
            state="nothing of the files with this table was copied; they stay in the landing zone",
            fix=f"name it: datasets: [{{name: some_name, source: {source!r}}}], or leave it out with exclude",
        ) from error


def check_names(task: StorageTask, sources: Iterable[str]) -> None:
    """Refuse two source tables that would become one; raises OperationError."""
    owners: dict[str, str] = {}
    for source in sorted(sources):
        table = dataset_of(task, source).internal_table
        if table in owners:
            raise OperationError(
                "POLYNYA-RUN-002",
                f"the source tables {owners[table]!r} and {source!r} would both become {table}",
                where=f"task {task.name}",
                state="nothing of the files with these tables was copied; they stay in the landing zone",
                fix=f"give one a name of its own: datasets: [{{name: other_name, source: {source!r}}}]",
            )
        owners[table] = source


def scope_of(task: StorageTask) -> DebeziumScope:
    """What reading needs to know of the task's tables."""
    named = {dataset.source: dataset for dataset in task.datasets if dataset.source is not None}
    default = TableSettings.of(resolved(task, Dataset(name="discovered")))
    tables = {
        source: TableSettings.of(resolved(task, dataset)) for source, dataset in named.items()
    }
    return DebeziumScope(include=task.include, exclude=task.exclude, tables=tables, default=default)
