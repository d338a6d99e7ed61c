"""From the source tables found in the data (`shop.orders`) to the datasets of a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
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
        raise ConfigError(
            "POLYNYA-CFG-022",
            f"source table {shown(source)} has a name that no view can have",
            where=f"task {task.name}",
            state="its events are not copied, those of other tables are; as soon as it has a "
            "dataset, that reads the files which are still in the landing zone",
            fix="declare a dataset with a `name` and this table as its `source`, or exclude it",
        )
    dataset = declared or Dataset(name=table)
    return resolved(task, dataset.model_copy(update={"source": source}))


def is_declared(task: StorageTask, source: str) -> bool:
    """Tell whether one of the task's datasets names a source table, by `source` or by name."""
    return _declared(task, source, source.partition(".")[2]) is not None


def named_datasets(task: StorageTask, sources: Iterable[str]) -> dict[str, ResolvedDataset]:
    """The datasets of source tables, but for those that the settings by now give no name.

    A run says so of such a table; who looks at the others is not kept from it.
    """
    found = {}
    for source in sources:
        with suppress(ConfigError):
            found[source] = dataset_of_source(task, source)
    return found


def datasets_of_sources(
    task: StorageTask, sources: Iterable[str], *, known: Collection[str] = ()
) -> tuple[dict[str, ResolvedDataset], list[ConfigError]]:
    """Route source tables to datasets; those that cannot be routed become errors.

    That is an unusable or a contested name, or settings that a table of its format needs.

    When two tables want one name in the catalog, one of the `known` keeps it, which may have rows
    there, and otherwise the first in name order, so that the outcome does not depend on the order
    of arrival within one call.
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
    """What the settings of a found table lack; declared ones were checked with the task."""
    rules = rules_of(dataset.landing.format)
    if dataset.kept.mode == "merge" and not dataset.events.keys and not rules.brings_keys:
        code, missing = "POLYNYA-CFG-014", "`keys`, so its changes cannot be merged"
    elif (
        rules.has_header_lines
        and not dataset.landing.delivery.has_header
        and not dataset.events.columns
    ):
        code, missing = "POLYNYA-CFG-008", "`columns`, and its files have no header line"
    else:
        return None
    return ConfigError(
        code,
        f"source table {shown(source)} has no {missing}",
        where=f"task {task.name}",
        state="it is not copied; its files stay in the landing zone",
        fix="declare a dataset for it, or leave it out with `exclude`",
    )


def _contested(task: StorageTask, owner: str, source: str, relation: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-CFG-013",
        f"source tables {shown(owner)} and {shown(source)} both want the name `{relation}`",
        where=f"task {task.name}",
        state=f"{shown(source)} is not copied, {shown(owner)} is; as soon as it has a dataset, "
        "that reads the files which are still in the landing zone",
        fix="declare a dataset with another `name` and one of the tables as its `source`",
    )
