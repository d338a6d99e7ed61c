"""Captures chosen by name on the command line, and tables as a preview shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from polynya.capture.inexact import EXPLAINED
from polynya.cli.format import age_in_words, size_in_words
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.masks import MaskSetting
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigError, OperationError
from polynya.model.loader import LoadedProject
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.capture.source import GrowingColumn, SourceTable


def preview_lines(table: SourceTable, masks: Mapping[str, MaskSetting]) -> Iterator[str]:
    """A table that would be captured."""
    rows = "rows unknown" if table.rows_estimate is None else f"about {table.rows_estimate:,} rows"
    size = "" if table.bytes_estimate is None else f", {size_in_words(table.bytes_estimate)}"
    key = f"key {', '.join(table.key)}" if table.key else "no key"
    yield f"{table.name}: {rows}{size}, {key}"
    for column in table.columns:
        mask = masks.get(column.name)
        masked = "" if mask is None else f"  ({_mask_in_words(mask)})"
        null = "" if column.nullable else " not null"
        yield f"  {column.name:<24}{column.type_name}{null}{masked}"
        if mask != "drop":
            yield from (f"{'':<26}{EXPLAINED[word]}" for word in column.inexact)


def extraction_line(found: GrowingColumn | OperationError) -> str:
    """How new rows of a table are found, or why they cannot be."""
    if isinstance(found, OperationError):
        return f"  left out: {found.message}"
    far = age_in_words(found.overlap / 1e6) if found.kind == "time" else f"{found.overlap:,}"
    return f"  new rows by column {found.name}, with an overlap of {far}"


def _mask_in_words(mask: MaskSetting) -> str:
    return "left out" if mask == "drop" else f"masked: {', '.join(mask.chosen)}"


def one_capture(project: LoadedProject, name: str) -> ConnectedCapture:
    """The capture of this name; a name that nobody has is an error of the command line."""
    for task in project.captures:
        if task.name == name:
            return task
    raise _unknown(project, name)


def some_captures(project: LoadedProject, patterns: Sequence[str]) -> list[ConnectedCapture]:
    """The captures that any glob names; all without one. One that names nothing is an error."""
    for pattern in patterns:
        if not any(fnmatchcase(task.name, pattern) for task in project.captures):
            raise _unknown(project, pattern)
    if not project.captures:
        raise WRONG_USAGE("the project has no task of kind `landing`", fix="add one to `tasks/`")
    return [
        task
        for task in project.captures
        if not patterns or any(fnmatchcase(task.name, pattern) for pattern in patterns)
    ]


def store_of(project: LoadedProject) -> ObjectStore:
    """The landing zone of the project's target."""
    return store_at(project.target.landing, project.target.aws)


def _unknown(project: LoadedProject, name: str) -> ConfigError:
    broken = next(iter(project.errors), None)
    names = [task.name for task in project.captures]
    fix = suggest(name, names) if names else "add a task of kind `landing` to `tasks/`"
    if broken is not None:
        fix = f"{fix or ''}; files with errors are left out: `polynya validate`"
    return WRONG_USAGE(f"no capture is called `{name[:60]}`", fix=fix)
