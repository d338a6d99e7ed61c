"""The type that the settings give to numbers, where what was read has no types."""

from __future__ import annotations

from dataclasses import replace

from polynya.formats.values.rows import ColumnTypes
from polynya.model.config.dataset import ResolvedDataset


def numbered(types: ColumnTypes, dataset: ResolvedDataset) -> ColumnTypes:
    """What typing needs to know, with `numbers` and `widen_numbers` of the settings."""
    events, wide = dataset.events, dataset.policies.schema_evolution.wide_numbers
    if events.numbers is None and wide is None:
        return types
    times = () if events.timestamp is None else (events.timestamp,)
    unlike = frozenset({*events.keys, *events.sequence_by, *times})
    return replace(types, numbers=events.numbers, wide=wide, unlike=unlike)
