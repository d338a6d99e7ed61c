"""The settings that a table remembers: what a changed configuration is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from polynya.model.config.durations import format_duration
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.extracts import Extracts
from polynya.model.config.task import ResolvedDataset
from polynya.model.formats.registry import is_known, rules_of

#: Settings that make the order or the kind of the rows: a table cannot hold rows of two of them.
LASTING: Final = ("format", "mode", "sequence_by")
#: Settings that decide what the views show, also of rows that are there.
SHOWN: Final = (
    "schema",
    "view",
    "history_view",
    "changes_view",
    "headers_view",
    "from_timestamp",
    "except_columns",
    "history",
    "delete_mode",
    "coalesce_unchanged",
    "track_history_columns",
    "track_history_except",
)
#: Settings that hold for records that are copied from now on.
LATER: Final = (
    "landing_path",
    "path",
    "initial_load",
    "source",
    "timestamp",
    "apply_as_deletes",
    "apply_as_truncates",
    "ignore_null_updates",
    "extracts",
    "columns",
    "tombstone_retention",
    "changes_retention",
    "on_bad_record",
    "schema_evolution",
)


def recorded(
    dataset: ResolvedDataset, before: Mapping[str, Any], *, has_rows: bool
) -> dict[str, Any]:
    """Settings of a dataset as JSON values, as its table has to remember them.

    `before` is what it remembers. While it has rows the lasting ones stay as they were: the rows
    are of them.
    """
    now = {name: _plain(getattr(dataset, name)) for name in (*LASTING, *SHOWN, *LATER)}
    kept = {name: before[name] for name in LASTING if has_rows and name in before}
    return now | kept


def contradicted(dataset: ResolvedDataset, before: Mapping[str, Any]) -> list[str]:
    """Lasting settings that are not those of the rows that a table has.

    Native formats may follow each other: their events have the order of the same columns.
    """
    now = {name: _plain(getattr(dataset, name)) for name in LASTING}
    found = [name for name in LASTING if name in before and before[name] != now[name]]
    if "format" in found and _may_follow(before["format"], dataset.format):
        found.remove("format")
    return found


def _may_follow(before: str, now: str) -> bool:
    return is_known(before) and rules_of(now).may_follow(rules_of(before))


def shown_before(dataset: ResolvedDataset, before: Mapping[str, Any]) -> ResolvedDataset:
    """The dataset with the settings of its views as its table remembers them."""
    values: dict[str, Any] = {
        name: tuple(before[name]) if isinstance(before[name], list) else before[name]
        for name in (*SHOWN, "mode")
        if name in before
    }
    return replace(dataset, **values)


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return format_duration(value)
        case tuple():
            return list(value)
        case SchemaEvolution() | Extracts():
            return value.model_dump(exclude_none=True)
        case Mapping():
            return {name: str(kind) for name, kind in value.items()}
        case _:
            return value
