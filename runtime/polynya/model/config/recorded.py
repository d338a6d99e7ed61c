"""The settings that a table remembers: what a changed configuration is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeAlias

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.durations import format_duration
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.config.extracts import Extracts
from polynya.model.config.layout.settings import RowRetention
from polynya.model.datatypes.types import Decimal, Primitive
from polynya.model.formats.registry import is_known, rules_of

_Places: TypeAlias = Mapping[str, tuple[str, str]]


def _places(part: str, *settings: str, **renamed: str) -> dict[str, tuple[str, str]]:
    """Where settings stand in a dataset: its part and the part's field."""
    return {name: (part, renamed.get(name, name)) for name in (*settings, *renamed)}


#: Settings that make the order or the kind of the rows: a table cannot hold rows of two of them.
LASTING: Final[_Places] = (
    _places("landing", "format") | _places("kept", "mode") | _places("events", "sequence_by")
)
#: Settings that decide what the views show, also of rows that are there.
SHOWN: Final[_Places] = (
    _places(
        "relations",
        "schema",
        "view",
        "history_view",
        "changes_view",
        "headers_view",
        "from_timestamp",
    )
    | _places("events", "except_columns")
    | _places(
        "kept",
        "history",
        "delete_mode",
        "coalesce_unchanged",
        "track_history_columns",
        "track_history_except",
    )
)
#: Settings that hold for records that are copied from now on.
LATER: Final[_Places] = (
    _places("landing", "initial_load", "source", "extracts", landing_path="folder", path="glob")
    | _places(
        "events",
        "timestamp",
        "apply_as_deletes",
        "apply_as_truncates",
        "ignore_null_updates",
        "columns",
        "numbers",
    )
    | _places("kept", "tombstone_retention", "changes_retention", "retention")
    | _places("mapping", "nested", "where", mapping="columns")
    | _places("policies", "on_bad_record", "schema_evolution")
)


#: Settings that decide how files look that are written from now on; no row depends on them.
LAYOUT: Final = _places("layout", "partition_by", "sort_by", target_file_size="file_bytes")
#: Not among these: without it a table is of the first version that there was.
FORMAT: Final = _places("kept", "format_version")


def recorded(
    dataset: ResolvedDataset, before: Mapping[str, Any], *, has_rows: bool
) -> dict[str, Any]:
    """Settings of a dataset as JSON values, as its table has to remember them.

    `before` is what it remembers. While it has rows the lasting ones stay as they were: the rows
    are of them. The version of the format never goes back.
    """
    now = _values(dataset, {**LASTING, **SHOWN, **LATER, **LAYOUT, **FORMAT})
    kept = {name: before[name] for name in LASTING if has_rows and name in before}
    return now | kept | {"format_version": max(now["format_version"], format_before(before))}


def contradicted(dataset: ResolvedDataset, before: Mapping[str, Any]) -> list[str]:
    """Lasting settings that are not those of the rows that a table has.

    Native formats may follow each other: their events have the order of the same columns.
    """
    now = _values(dataset, LASTING)
    found = [name for name in LASTING if name in before and before[name] != now[name]]
    if "format" in found and _may_follow(before["format"], dataset.landing.format):
        found.remove("format")
    return found


def format_before(before: Mapping[str, Any]) -> int:
    """The version of Iceberg's format that a table was given, by the settings it remembers."""
    return int(before.get("format_version", 2))


def _may_follow(before: str, now: str) -> bool:
    return is_known(before) and rules_of(now).may_follow(rules_of(before))


def shown_before(dataset: ResolvedDataset, before: Mapping[str, Any]) -> ResolvedDataset:
    """The dataset with the settings of its views as its table remembers them."""
    values: dict[str, dict[str, Any]] = {}
    for name, (part, member) in {**SHOWN, "mode": LASTING["mode"]}.items():
        if name in before:
            value = before[name]
            values.setdefault(part, {})[member] = tuple(value) if isinstance(value, list) else value
    parts = {part: replace(getattr(dataset, part), **new) for part, new in values.items()}
    return replace(dataset, **parts)


def _values(dataset: ResolvedDataset, places: _Places) -> dict[str, Any]:
    return {
        name: _plain(getattr(getattr(dataset, part), member))
        for name, (part, member) in places.items()
    }


def _plain(value: object) -> object:
    match value:
        case timedelta():
            return format_duration(value)
        case tuple():
            return [str(one) for one in value]
        case Primitive() | Decimal() | RowRetention():
            return str(value)
        case SchemaEvolution() | Extracts():
            return value.model_dump(exclude_none=True)
        case Mapping():
            return {name: str(kind) for name, kind in value.items()}
        case _:
            return value
