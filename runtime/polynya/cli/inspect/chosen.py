"""The datasets of a project that a command line names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest

if TYPE_CHECKING:
    from polynya.engine.plan.inventory import Entry


def chosen_entries(context: CommandContext, patterns: Sequence[str]) -> Iterator[Entry]:
    """Tables by name or glob, with or without their schema; all without any.

    Raises ConfigError for a name that no dataset has.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load(tolerant=True)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = list(inventory(project, catalog))
    for pattern in patterns:
        if not any(_is_called(entry, pattern) for entry in entries):
            raise usage_error(
                f"no dataset is called `{pattern}`",
                suggest(pattern, [entry.name for entry in entries]),
            )
    for entry in entries:
        if not patterns or any(_is_called(entry, pattern) for pattern in patterns):
            yield entry


def _is_called(entry: Entry, pattern: str) -> bool:
    names = (entry.name, entry.dataset.relations.view, entry.dataset.name)
    return any(fnmatchcase(name, pattern) for name in names)
