"""Choosing tasks and datasets by name on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from polynya.cli.options import usage_error
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import suggest
from polynya.model.reading.kinds import Task
from polynya.model.reading.loader import LoadedProject

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from polynya.engine.plan.inventory import Entry

T = TypeVar("T", bound=Task)


def select_storage(project: LoadedProject, patterns: Sequence[str]) -> list[StorageTask]:
    """As `select_tasks`, those that have tables. A glob that matches none of them is an error."""
    return _chosen(project.tasks, patterns)


def select_tasks(project: LoadedProject, patterns: Sequence[str]) -> list[Task]:
    """Tasks of any kind whose names match any of the globs; all of them without a glob.

    A glob that matches nothing is an error.
    """
    return _chosen(project.works, patterns)


def _chosen(tasks: Sequence[T], patterns: Sequence[str]) -> list[T]:
    names = [task.name for task in tasks]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise usage_error(f"no task is called `{pattern}`", suggest(pattern, names))
    return [
        task
        for task in tasks
        if not patterns or any(fnmatchcase(task.name, pattern) for pattern in patterns)
    ]


def dataset_table(project: LoadedProject, name: str) -> tuple[Entry, Table]:
    """The dataset that is called `schema.name`, and its internal table as it is now. Needs no JVM.

    Raises:
        ConfigError: no dataset has that name, or nothing was copied to it yet.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    entries = {
        entry.name: entry
        for entry in inventory(project, python_catalog(project.target))
        if not entry.is_ledger
    }
    entry = entries.get(name)
    if entry is None:
        raise usage_error(f"no dataset is called `{name}`", suggest(name, list(entries)))
    if entry.table is None:
        raise usage_error(f"nothing was copied to `{name}` yet", "`polynya run --once`")
    return entry, entry.table
