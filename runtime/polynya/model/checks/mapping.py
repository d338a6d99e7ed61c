"""What a mapping of columns has wrong, and where there can be none."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.mapping.columns import MappedColumn
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem
from polynya.model.formats.registry import rules_of

_PLACE = "POLYNYA-MAP-004"
_SETTINGS = ("columns", "nested", "where")


def written_problems(
    task: StorageTask, settings: DatasetSettings, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a mapping where it is written: at a dataset, or under `defaults`."""
    rules = rules_of(task.landing.format)
    for name in _SETTINGS if rules.finds_tables else ():
        if _is_set(settings, name):
            yield Problem(
                (*path, name),
                _PLACE,
                f"the columns of format `{rules.name}` cannot be mapped",
                "take it out; `except_columns` leaves columns out",
            )
    yield from _list_problems(settings, path)


def _list_problems(settings: DatasetSettings, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if not isinstance(settings.columns, tuple):
        return
    names: set[str] = set()
    for index, one in enumerate(settings.columns):
        if one.name.lower() in names:
            yield Problem(
                (*path, "columns", index, "name"),
                "POLYNYA-MAP-003",
                f"column {shown(one.name)} is there already",
                "give it another name; upper and lower case make no difference",
            )
        names.add(one.name.lower())
    yield from _key_problems(settings.columns, path)
    if settings.keys and any(one.key is not None for one in settings.columns):
        yield Problem(
            (*path, "keys"),
            "POLYNYA-MAP-003",
            "the list of `columns` says which are the key by `key`",
            "take `keys` out, or the ordinals",
        )


def _key_problems(
    columns: tuple[MappedColumn, ...], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    numbered = sorted((one.key, index) for index, one in enumerate(columns) if one.key is not None)
    for wanted, (key, index) in enumerate(numbered, start=1):
        if key != wanted:
            yield Problem(
                (*path, "columns", index, "key"),
                "POLYNYA-MAP-003",
                f"`key: {key}` stands where `key: {wanted}` is expected",
                "number the columns of the key from 1, each number once",
            )
            return


def mapping_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield where the mapping of one dataset cannot be, with all its settings final."""
    if not final.mapping.is_set:
        return
    if final.landing.extracts is not None:
        yield Problem(
            (*path, "extracts"),
            _PLACE,
            "has no meaning with a mapping of columns: extracts are compared column by column",
            "take one out",
        )
    rules, delivery = rules_of(final.landing.format), final.landing.delivery
    if rules.has_header_lines and not delivery.has_header and final.mapping.columns:
        yield Problem(
            path,
            _PLACE,
            f"the files of dataset `{final.name}` have no header line, so that their columns have "
            "no names to map",
            "write `columns` as a map of all columns with their types, in the order of the files",
        )


def _is_set(settings: DatasetSettings, name: str) -> bool:
    if name == "columns":
        return isinstance(settings.columns, tuple)
    return getattr(settings, name) not in {None, "keep"}
