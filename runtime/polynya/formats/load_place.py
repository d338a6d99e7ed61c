"""Where a full load stands among the changes of a service, by the time at which it began."""

from __future__ import annotations

from datetime import datetime

from polynya.formats.values import instants
from polynya.model.config.dataset import ResolvedDataset


def has_place(dataset: ResolvedDataset) -> bool:
    """Whether the order of a dataset's changes begins with their time."""
    return dataset.landing.format == "replicate" or (
        dataset.landing.format == "dms" and not dataset.events.sequence_by
    )


def place_of(dataset: ResolvedDataset, began: datetime) -> str:
    """The beginning of the change identifiers of that time (see `has_place`)."""
    stamp = instants.stamp(instants.datetime_micros(began))
    # DMS: 20 digits to the microsecond; Replicate: 16 to the hundredth of a second.
    return stamp[:16] + (stamp[-4:] if dataset.landing.format == "dms" else "")
