"""What reading a capture needs to know of the tables of a task."""

from __future__ import annotations

from polynya.landing.debezium.scope import DebeziumScope, TableSettings
from polynya.model.settings import Dataset
from polynya.model.task import StorageTask, resolved


def scope_of(task: StorageTask) -> DebeziumScope:
    """The tables of a task and their settings, by source table or by name."""
    by_source, by_name = {}, {}
    for dataset in task.datasets:
        settings = TableSettings.of(resolved(task, dataset))
        if dataset.source is not None:
            by_source[dataset.source] = settings
        else:
            by_name[dataset.name] = settings
    default = TableSettings.of(resolved(task, Dataset(name="discovered")))
    return DebeziumScope(
        include=task.include,
        exclude=task.exclude,
        tables=by_source,
        names=by_name,
        default=default,
    )
