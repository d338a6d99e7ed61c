"""The columns that the settings of a dataset name, and those that no record has.

Without this check a misspelled name would be accepted silently: a condition over a missing column
is never true, and a declared type would create a column that stays empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.formats import rules_of
from polynya.transform.mapping import columns_read

#: Settings whose columns a full load may lack, because only events have them.
_OF_EVENTS: Final = frozenset(
    {"sequence_by", "timestamp", "apply_as_deletes", "apply_as_truncates", "except_columns"}
)
#: Settings without whose columns no event is what it should be.
_DECIDING: Final = frozenset(
    {"keys", "sequence_by", "timestamp", "apply_as_deletes", "apply_as_truncates"}
)
#: Settings that name columns of the table, which a mapping makes. The others name the source's.
_OF_TABLE: Final = frozenset(
    {
        "keys", "ignore_null_updates", "track_history_columns", "track_history_except",
        "retention", "partition_by", "sort_by",
    }
)  # fmt: skip
#: How alike two names are, from 0 to 1, of which one may be meant by the other, and of which one is
#: most likely a typing error.
_ALIKE: Final = 0.6
_TYPING_ERROR: Final = 0.8


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column, and the setting that names it."""

    setting: str
    column: str


@dataclass(frozen=True, slots=True)
class UnknownColumn:
    """A column that a setting names and that was not met.

    `meant` is the one of a similar name that was met, None without one. `stops` says that nothing
    may be copied before an operator has looked.
    """

    setting: str
    column: str
    meant: str | None
    stops: bool


def named_columns(dataset: ResolvedDataset, *, of_load: bool = False) -> list[NamedColumn]:
    """The columns that the settings of a dataset name; `of_load`: those a full load has to have."""
    named = list(_named(dataset))
    if not of_load:
        return named
    later = {column.column for column in named if column.setting in _OF_EVENTS}
    return [column for column in named if column.column not in later]


def _named(dataset: ResolvedDataset) -> Iterator[NamedColumn]:
    events, kept, extracts = dataset.events, dataset.kept, dataset.landing.extracts
    nulls, times = events.ignore_null_updates, events.timestamp
    if extracts is not None and times == extracts.updated_at:
        # An extract is looked at when it is whole (POLYNYA-LAKE-021).
        times = None
    # Order and time of a capture may come from what its source says beside the columns.
    rules = rules_of(dataset.landing.format)
    captured = rules.finds_tables
    lists: dict[str, Collection[str]] = {
        "keys": events.keys,
        "sequence_by": () if captured else events.sequence_by,
        "timestamp": () if captured or times is None else (times,),
        "apply_as_deletes": _read_by(events.apply_as_deletes),
        "apply_as_truncates": _read_by(events.apply_as_truncates),
        "ignore_null_updates": () if isinstance(nulls, bool) else nulls,
        "except_columns": [
            name for name in events.except_columns if name not in rules.header_columns
        ],
        "columns": _of_columns(dataset),
        "where": _read_by(dataset.mapping.where),
        "rules": sorted({name for rule in dataset.mapping.rules for name in _read_by(rule.filter)}),
        "track_history_columns": kept.track_history_columns,
        "track_history_except": kept.track_history_except,
        "retention": () if kept.retention is None else (kept.retention.column,),
        "partition_by": tuple(term.column for term in dataset.layout.partition_by),
        "sort_by": tuple(column for term in dataset.layout.sort_by for column in term.columns),
    }
    for setting, columns in lists.items():
        for column in columns:
            yield NamedColumn(setting, column)


def _of_columns(dataset: ResolvedDataset) -> Collection[str]:
    """Columns with a declared type, or those that the expressions of a mapping read."""
    listed = dataset.mapping.columns
    if not listed:
        return tuple(dataset.events.columns)
    return sorted({name for column in listed for name in columns_read(column.expression)})


def _read_by(expression: str | None) -> list[str]:
    return [] if expression is None else sorted(columns_read(expression))


def unknown_columns(
    dataset: ResolvedDataset,
    met: Collection[str],
    *,
    accepted: Collection[str] = (),
    of_load: bool = False,
) -> list[UnknownColumn]:
    """Columns that settings name and that are neither met nor accepted.

    What stops is a name in the dataset's own settings, or one without which no event is right. In a
    stream the column may come at any time, so there it stops only where the name is most likely a
    typing error of one that was met. The lists under `defaults` are for many datasets, of which
    some may lack a column: such a name is only worth a warning, and only where a similar one was
    met.
    """
    unknown = []
    for column in named_columns(dataset, of_load=of_load):
        if column.column in met or column.column in accepted:
            continue
        meant = _similar(dataset, column, met, _ALIKE)
        if meant is None and _may_lack(dataset, column):
            continue
        unknown.append(
            UnknownColumn(column.setting, column.column, meant, _stops(dataset, column, met))
        )
    return unknown


def _similar(
    dataset: ResolvedDataset, one: NamedColumn, met: Collection[str], likeness: float
) -> str | None:
    """The column of the most similar name; what a mapping makes is none that it may read."""
    made = () if one.setting in _OF_TABLE else dataset.mapping.names
    there = sorted({*met} - {*made})
    return next(iter(get_close_matches(one.column[:100], there, n=1, cutoff=likeness)), None)


def _stops(dataset: ResolvedDataset, column: NamedColumn, met: Collection[str]) -> bool:
    awaited = rules_of(dataset.landing.format).awaits_columns
    if awaited and _similar(dataset, column, met, _TYPING_ERROR) is None:
        return False
    return not _is_inherited(dataset, column) and column.column not in dataset.events.optional


def _is_inherited(dataset: ResolvedDataset, column: NamedColumn) -> bool:
    """Whether a name is one of many datasets."""
    if column.setting not in dataset.inherited:
        return False
    return column.setting not in _DECIDING or rules_of(dataset.landing.format).finds_tables


def _may_lack(dataset: ResolvedDataset, column: NamedColumn) -> bool:
    """Whether good records may all lack a column: a truncate has no data."""
    truncates = dataset.events.apply_as_truncates is not None and column.setting not in _OF_EVENTS
    return truncates or _is_inherited(dataset, column)
