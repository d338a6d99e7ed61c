"""Order and time that the settings give: columns of `sequence_by`, column of `timestamp`."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.formats.values.columns import Column
from polynya.formats.values.sequence import order_by, times_of
from polynya.formats.values.settle import Placement
from polynya.model.config.dataset import ResolvedDataset


def placed(
    columns: Mapping[str, Column], dataset: ResolvedDataset, *, count: int, load: bool
) -> Placement:
    """Where `count` records stand; those of a full load need no sequence."""
    order = order_by(columns, dataset.events.sequence_by, [load] * count)
    times, faults = times_of(columns, dataset.events.timestamp, dataset.events.sequence_by, count)
    return Placement(
        order.identifiers, order.tails, [None] * count, times, {**faults, **order.faults}
    )
