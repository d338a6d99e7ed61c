"""Choosing tasks and datasets by name on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from polynya.cli.options import usage_error
from polynya.model.config.task import StorageTask
from polynya.model.documents.problems import suggest
from polynya.model.reading.loader import LoadedProject


def select_tasks(project: LoadedProject, patterns: Sequence[str]) -> list[StorageTask]:
    """Tasks whose names match any of the globs; all of them without a glob.

    A glob that matches nothing is an error.
    """
    names = [task.name for task in project.tasks]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise usage_error(f"no task is called `{pattern}`", suggest(pattern, names))
    return [
        task
        for task in project.tasks
        if not patterns or any(fnmatchcase(task.name, pattern) for pattern in patterns)
    ]
