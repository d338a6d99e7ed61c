"""Order and time of the rows of Replicate files: the change sequence is a change identifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from polynya.formats.replicate.rows import Row
from polynya.formats.values import times
from polynya.formats.values.batches import Placement
from polynya.formats.values.columns import TypedColumn
from polynya.formats.values.sequence import times_of
from polynya.model.config.dataset import ResolvedDataset

#: After the sequence of an update that moved its record: the delete of the old key comes first.
_MOVED = "1"


def placed(
    columns: Mapping[str, TypedColumn], rows: Sequence[Row], dataset: ResolvedDataset
) -> Placement:
    """Where the rows stand."""
    times, faults = times_of(columns, dataset.events.timestamp, (), len(rows))
    return Placement(
        identifiers=[row.header.sequence for row in rows],
        tails=[_MOVED if row.moved else None for row in rows],
        positions=[None] * len(rows),
        times=[
            row.header.micros if micros is None else micros
            for micros, row in zip(times, rows, strict=True)
        ],
        faults=faults,
    )


def place_of_load(began: datetime) -> str:
    """How the change identifiers of that time begin: 16 digits to the hundredth of a second."""
    return times.stamp(times.datetime_micros(began))[:16]
