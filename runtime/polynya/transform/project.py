"""Check the expressions of a whole project, each with its place in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.settings import Dataset, DatasetSettings, Mode
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask, merged
from polynya.model.error_catalogue.expressions import (
    FUNCTION_NOT_COMPUTABLE,
    MAPPING_NOT_POSSIBLE,
    NO_LIST_OF_COLUMNS,
)
from polynya.model.errors import ConfigError
from polynya.model.formats import rules_of
from polynya.model.headers import LANDED_AT
from polynya.model.loader import LoadedProject
from polynya.transform.expressions import validate_expression
from polynya.transform.mapping import array_of, columns_read, flattened
from polynya.transform.rules import columns_named, resolve
from polynya.transform.source_conditions import checked_condition

EXPRESSION_SETTINGS: Final = ("apply_as_deletes", "apply_as_truncates", "where")
_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """An expression, the path of its setting, and whether it stands in a list of columns."""

    path: _Path
    text: str
    is_column: bool = False


def expression_errors(project: LoadedProject) -> list[ConfigError]:
    """Return what is wrong with the expressions of all tasks, at most one error per place."""
    errors: dict[str, ConfigError] = {}
    for task in project.tasks:
        for settings, path in _settings(task):
            for written in _of(settings, path):
                where = project.where(task.name, *written.path)
                try:
                    validate_expression(flattened(written.text, where).text, where=where)
                    _refuse_landing_time(task, written.text, where)
                except ConfigError as error:
                    errors.setdefault(where, error)
        for mode, dataset in _whole(task):
            places = [(project.where(task.name, *written.path), written) for written in dataset]
            if any(where in errors for where, _ in places):
                continue
            for problem in (*_array_errors(places), *_capture_errors(task, mode, places)):
                errors.setdefault(problem.where or "", problem)
    for problem in _rule_errors(project):
        errors.setdefault(f"{problem.where} {problem.message}", problem)
    for capture in project.captures:
        for path, text in _of_source(capture):
            where = project.where(capture.name, *path)
            try:
                checked_condition(text, capture.database.type, where)
            except ConfigError as error:
                errors.setdefault(where, error)
    return list(errors.values())


def _rule_errors(project: LoadedProject) -> Iterator[ConfigError]:
    """Yield what is wrong with rules, as far as no record has to be known for it."""
    wrong = set[str]()
    rules = {rule.place: rule for task in project.tasks for rule in task.rules}
    for place, rule in rules.items():
        for text in (*rule.added.values(), *([rule.filter] if rule.filter else [])):
            try:
                validate_expression(text, where=place)
            except ConfigError as error:
                wrong.add(place)
                yield error
    for dataset in project.datasets():
        if wrong & {rule.place for rule in dataset.mapping.rules}:
            continue
        try:
            resolve(dataset, columns_named(dataset))
        except ConfigError as error:
            yield error


def _of_source(capture: ConnectedCapture) -> Iterator[tuple[_Path, str]]:
    """The conditions of a capture in the SQL of its database."""
    for table, text in capture.load.filter.items():
        yield ("load", "filter", table), text
    for table, text in capture.rows.items():
        yield ("rows", table), text


def _refuse_landing_time(task: StorageTask, text: str, where: str) -> None:
    """Raise ConfigError for a time of landing that records do not have, or not for good."""
    if LANDED_AT not in columns_read(text):
        return
    if isinstance(task, DirectTask):
        why = "with `direct: true` nothing lands, and a reload would give other times"
    elif LANDED_AT not in rules_of(task.landing.format).header_columns:
        why = f"format `{task.landing.format}` does not say when a record was landed"
    else:
        return
    raise FUNCTION_NOT_COMPUTABLE(
        f"there is no processing time here: {why}",
        where=where,
        state="nothing was read",
        fix="name a column that holds a time",
    )


def _settings(task: StorageTask) -> Iterator[tuple[DatasetSettings, _Path]]:
    yield task.defaults, ("defaults",)
    for index, dataset in enumerate(task.datasets):
        yield dataset, ("datasets", index)


def _of(settings: DatasetSettings, path: _Path) -> Iterator[_Written]:
    """Yield each expression of settings with its path."""
    if isinstance(settings.columns, tuple):
        for index, column in enumerate(settings.columns):
            place = (*path, "columns", index, "expression")
            yield _Written(place, column.expression, is_column=True)
    for key in EXPRESSION_SETTINGS:
        text = getattr(settings, key)
        if text is not None:
            yield _Written((*path, key), text)


def _whole(task: StorageTask) -> Iterator[tuple[Mode | None, list[_Written]]]:
    """Yield mode and expressions of each dataset, and of those that are not declared."""
    yield task.defaults.mode, list(_of(task.defaults, ("defaults",)))
    for index, dataset in enumerate(task.datasets):
        mode = merged(task.defaults, dataset).mode
        yield mode, _of_dataset(task, dataset, ("datasets", index))


def _of_dataset(task: StorageTask, dataset: Dataset, path: _Path) -> list[_Written]:
    own = dataset.model_fields_set
    inherited = (
        written for written in _of(task.defaults, ("defaults",)) if written.path[1] not in own
    )
    return [*_of(dataset, path), *inherited]


def _array_errors(places: list[tuple[str, _Written]]) -> Iterator[ConfigError]:
    """Yield what is wrong with `[]` in the expressions of one dataset."""
    flat = [(where, flattened(written.text), written) for where, written in places]
    has_list = any(written.is_column for _, _, written in flat)
    if not has_list:
        yield from (
            NO_LIST_OF_COLUMNS(where=where, path=one.paths[0])
            for where, one, _ in flat
            if one.paths
        )
        return
    try:
        array_of((where, one) for where, one, _ in flat)
    except ConfigError as error:
        yield error


def _capture_errors(
    task: StorageTask, mode: Mode | None, places: list[tuple[str, _Written]]
) -> Iterator[ConfigError]:
    """Yield where elements would be rows of records that the source names by other keys."""
    rules = rules_of(task.landing.format)
    if not rules.finds_tables or mode == "append_only":
        return
    for where, written in places:
        if paths := flattened(written.text).paths:
            yield MAPPING_NOT_POSSIBLE(
                f"`{paths[0]}` makes rows of elements, but the key of format `{rules.name}` is "
                "that of the record: all rows would have the same key",
                where=where,
                state="nothing was read",
                fix="keep the array, or set `mode: append_only`",
            )
