"""Checks the expressions of a whole project, each with its place in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigError
from polynya.model.reading.loader import LoadedProject
from polynya.transform.expressions import validate_expression

EXPRESSION_SETTINGS: Final = ("apply_as_deletes", "apply_as_truncates")


def expression_errors(project: LoadedProject) -> list[ConfigError]:
    """Return what is wrong with the expressions of all tasks, at most one error per place."""
    errors: dict[str, ConfigError] = {}
    for task in project.tasks:
        for path, text in _expressions(task):
            where = project.where(task.name, *path)
            try:
                validate_expression(text, where=where)
            except ConfigError as error:
                errors.setdefault(where, error)
    return list(errors.values())


def _expressions(task: StorageTask) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each expression with the path of the setting; inherited ones at the task's defaults."""
    for key in EXPRESSION_SETTINGS:
        default = getattr(task.defaults, key)
        if default is not None:
            yield ("defaults", key), default
        for index, dataset in enumerate(task.datasets):
            own = getattr(dataset, key)
            if own is not None:
                yield ("datasets", index, key), own
