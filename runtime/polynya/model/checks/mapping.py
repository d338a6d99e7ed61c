"""What a mapping of columns has wrong, and where there can be none."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.mapping.columns import MappedColumn
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask
from polynya.model.contract.identifiers import METADATA_COLUMNS, folded, shown
from polynya.model.documents.problems import Problem
from polynya.model.formats.registry import rules_of

_PLACE = "POLYNYA-MAP-004"


def written_problems(
    task: StorageTask, settings: DatasetSettings, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a mapping where it is written: at a dataset, or under `defaults`."""
    rules = rules_of(task.landing.format)
    if not isinstance(settings.columns, tuple):
        return
    if rules.has_header_lines and not task.landing.has_header:
        yield Problem(
            (*path, "columns"),
            _PLACE,
            "the files have no header line, so that their columns have no names to map",
            "write `columns` as a map of all columns with their types, in the order of the files",
        )
    for index, one in enumerate(settings.columns) if rules.finds_tables else ():
        if one.key is not None and (one.source is None or one.type is not None):
            yield Problem(
                (*path, "columns", index, "expression" if one.source is None else "type"),
                _PLACE,
                f"a column of the key of format `{rules.name}` can only have another name",
                "write the name of a column of the source, without a type: old keys and deletes "
                "are told by it",
            )
    yield from _list_problems(settings, path)


def _list_problems(settings: DatasetSettings, path: tuple[str | int, ...]) -> Iterator[Problem]:
    assert isinstance(settings.columns, tuple), "who asks has looked"
    names: set[str] = set()
    for index, one in enumerate(settings.columns):
        same = folded(one.name)
        if same in METADATA_COLUMNS:
            yield Problem(
                (*path, "columns", index, "name"),
                "POLYNYA-MAP-003",
                f"column {shown(one.name)} has the name of a metadata column of Iceberg",
                "give it another name: no engine reads a column of this one",
            )
        if same in names:
            yield Problem(
                (*path, "columns", index, "name"),
                "POLYNYA-MAP-003",
                f"column {shown(one.name)} is there already",
                "give it another name; upper and lower case make no difference",
            )
        names.add(same)
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
    if not rules_of(final.landing.format).finds_tables or final.mapping.keys:
        return
    for key in final.events.keys:
        if not final.mapping.of_source((key,)):
            yield Problem(
                (*path, "keys"),
                _PLACE,
                f"key {shown(key)} is computed, and keys of format `{final.landing.format}` can "
                "only have another name",
                "map it to the name of a column of the source: old keys and deletes are told by it",
            )
