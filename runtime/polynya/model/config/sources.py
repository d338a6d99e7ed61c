"""From the source tables found in the data (`shop.orders`) to the datasets of a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.error_catalogue.configuration import (
    MISSING_KEY,
    NO_KEYS,
    TABLE_NAME_TAKEN,
    UNUSABLE_SOURCE_TABLE_NAME,
)
from polynya.model.errors import ConfigError
from polynya.model.formats import rules_of
from polynya.model.names import is_name, shown


def included(task: StorageTask, source: str) -> bool:
    """Tell whether the task takes a source table. Case matters; `exclude` wins."""
    return any(fnmatchcase(source, glob) for glob in task.include) and not any(
        fnmatchcase(source, glob) for glob in task.exclude
    )


def dataset_of_source(task: StorageTask, source: str) -> ResolvedDataset:
    """Return the dataset that a source table feeds: the declared one, or one named like it.

    Raises:
        ConfigError: the table's name cannot name a view and no dataset maps it.
    """
    _, _, table = source.partition(".")
    declared = _declared(task, source, table)
    if declared is None and not is_name(table):
        raise UNUSABLE_SOURCE_TABLE_NAME(where=f"task {task.name}", source=shown(source))
    dataset = declared or Dataset(name=table)
    return resolved(task, dataset.model_copy(update={"source": source}))


def is_declared(task: StorageTask, source: str) -> bool:
    """Tell whether one of the task's datasets names a source table, by `source` or by name."""
    return _declared(task, source, source.partition(".")[2]) is not None


def named_datasets(task: StorageTask, sources: Iterable[str]) -> dict[str, ResolvedDataset]:
    """The datasets of source tables, without tables that the current settings give no name.

    A run reports those tables; they do not stop a command that looks at the others.
    """
    datasets = {}
    for source in sources:
        with suppress(ConfigError):
            datasets[source] = dataset_of_source(task, source)
    return datasets


def datasets_of_members(
    task: StorageTask,
    members: Collection[str],
    refused: Collection[str] = (),
    met: Collection[str] = (),
) -> tuple[dict[str, ResolvedDataset], list[ConfigError]]:
    """Route the source tables that a task knows to datasets; see `datasets_of_sources`.

    `members` have tables, `refused` are those that could not be copied, `met` new ones.
    """
    named = named_datasets(task, members)
    # A table that the settings exclude is no longer wanted.
    wanted = {
        source
        for source in (*members, *refused)
        if included(task, source) or is_declared(task, source)
    }
    return datasets_of_sources(task, {*named, *wanted, *met}, known=members)


def datasets_of_sources(
    task: StorageTask, sources: Iterable[str], *, known: Collection[str] = ()
) -> tuple[dict[str, ResolvedDataset], list[ConfigError]]:
    """Route source tables to datasets; those that cannot be routed become errors.

    An error is an unusable or a contested name, or a missing setting that the format needs.

    When two tables want one name in the catalog, one of the `known` keeps it, because it may have
    rows there; otherwise the first in name order, so that the outcome does not depend on the
    order of arrival within one call.
    """
    routes: dict[str, ResolvedDataset] = {}
    owners: dict[str, str] = {}
    errors: list[ConfigError] = []
    for source in sorted(set(sources), key=lambda source: (source not in known, source)):
        try:
            dataset = dataset_of_source(task, source)
        except ConfigError as error:
            errors.append(error)
            continue
        taken = next((name for name in dataset.relations.taken if name in owners), None)
        lacking = _lacking(task, source, dataset)
        if taken is not None:
            errors.append(_contested(task, owners[taken], source, taken))
            continue
        owners |= dict.fromkeys(dataset.relations.taken, source)
        if lacking is not None:
            errors.append(lacking)
        else:
            routes[source] = dataset
    return routes, errors


def _declared(task: StorageTask, source: str, table: str) -> Dataset | None:
    exact = next((d for d in task.datasets if d.source == source), None)
    if exact is not None:
        return exact
    return next((d for d in task.datasets if d.source is None and d.name == table), None)


def _lacking(task: StorageTask, source: str, dataset: ResolvedDataset) -> ConfigError | None:
    """What the settings of a discovered table lack; declared ones were checked with the task."""
    rules = rules_of(dataset.landing.format)
    lacks_keys = dataset.kept.mode == "merge" and not dataset.events.keys and not rules.brings_keys
    lacks_columns = (
        rules.has_header_lines
        and not dataset.landing.delivery.has_header
        and not dataset.events.columns
    )
    if not lacks_keys and not lacks_columns:
        return None
    entry = NO_KEYS if lacks_keys else MISSING_KEY
    missing = "`keys`" if lacks_keys else "`columns`, and its files have no header line"
    return entry(
        f"source table {shown(source)} has no {missing}",
        where=f"task {task.name}",
        state="it is not copied; its files stay in the landing zone",
        fix="declare a dataset for it, or exclude it with `exclude`",
    )


def _contested(task: StorageTask, owner: str, source: str, relation: str) -> ConfigError:
    return TABLE_NAME_TAKEN(
        f"source tables {shown(owner)} and {shown(source)} both want the name `{relation}`",
        where=f"task {task.name}",
        state=f"{shown(source)} is not copied, {shown(owner)} is. A dataset for {shown(source)} "
        "will read the files that are still in the landing zone",
        fix="declare a dataset with another `name` and one of the tables as its `source`",
    )
