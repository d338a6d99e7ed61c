"""Order and time of the rows of DMS files.

| settings | order of changes |
|---|---|
| `sequence_by` | its columns; equal ones by file and row |
| `timestamp_column` | time of the commit, then file and row |
| neither | file and row |

Rows of a full load stand before all changes: the changes that DMS caches while it loads may have
been committed before the load read their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from polynya.formats.batch import NO_ORDER
from polynya.formats.dms.tables import DmsFile
from polynya.formats.values import instants
from polynya.formats.values.columns import Column, Faults
from polynya.formats.values.sequence import Order, order_by, times_of
from polynya.formats.values.settle import Placement
from polynya.model.config.dataset import ResolvedDataset


def placed(
    columns: Mapping[str, Column],
    dataset: ResolvedDataset,
    files: Sequence[DmsFile],
    offsets: Sequence[int],
) -> Placement:
    """Where the rows stand; `files` and `offsets` say where they were read, one entry a row."""
    count = len(files)
    stamp = dataset.landing.delivery.timestamp_column
    commits, faults = times_of(columns, stamp, (), count)
    if dataset.events.sequence_by:
        order = order_by(columns, dataset.events.sequence_by, [file.is_load for file in files])
    elif stamp is not None:
        order = _by_commit(commits, files, offsets)
    else:
        order = _by_file(files, offsets)
    loads = [index for index, file in enumerate(files) if file.is_load]
    for index in loads:
        order.identifiers[index], order.tails[index] = NO_ORDER, None
        order.faults.pop(index, None)
    times, time_faults = _times(columns, dataset, commits, files)
    return Placement(
        order.identifiers,
        order.tails,
        [_position(file, offset) for file, offset in zip(files, offsets, strict=True)],
        times,
        {**order.faults, **time_faults, **faults},
    )


def place_of_load(began: datetime, dataset: ResolvedDataset) -> str | None:
    """How the change identifiers of that time begin: 20 digits to the microsecond.

    None where `sequence_by` orders the changes.
    """
    if dataset.events.sequence_by:
        return None
    stamp = instants.stamp(instants.datetime_micros(began))
    # Between hundredths and microseconds `stamp` has nothing but zeros.
    return f"{stamp[:16]}{stamp[-4:]}"


def _position(file: DmsFile, offset: int) -> str | None:
    return None if file.place is None else f"{file.place}{offset:010d}"


def _by_file(files: Sequence[DmsFile], offsets: Sequence[int]) -> Order:
    """20 digits of the file's name and 15 of the row: 35 in all."""
    identifiers: list[str | None] = [
        f"{file.place}{offset:015d}" for file, offset in zip(files, offsets, strict=True)
    ]
    return Order(identifiers, [None] * len(identifiers), {})


def _by_commit(
    commits: Sequence[int | None], files: Sequence[DmsFile], offsets: Sequence[int]
) -> Order:
    """20 digits of the commit in microseconds, 20 of the file, 10 of the row: 50 in all."""
    identifiers: list[str | None] = []
    faults: Faults = {}
    for index, (micros, file, offset) in enumerate(zip(commits, files, offsets, strict=True)):
        if micros is None:
            identifiers.append(None)
            faults[index] = ("null_sequence", "the timestamp column is NULL")
            continue
        stamp = instants.stamp(micros)
        # Between hundredths and microseconds `stamp` has nothing but zeros.
        identifiers.append(f"{stamp[:16]}{stamp[-4:]}{file.place}{offset:010d}")
    return Order(identifiers, [None] * len(identifiers), faults)


def _times(
    columns: Mapping[str, Column],
    dataset: ResolvedDataset,
    commits: list[int | None],
    files: Sequence[DmsFile],
) -> tuple[list[int | None], Faults]:
    """The `timestamp` setting, else the commit, else the time in the file's name."""
    if dataset.events.timestamp is not None:
        return times_of(columns, dataset.events.timestamp, (), len(files))
    if dataset.landing.delivery.timestamp_column is not None:
        return commits, {}
    sequence, faults = times_of(columns, None, dataset.events.sequence_by, len(files))
    times = [
        file.micros if micros is None else micros
        for micros, file in zip(sequence, files, strict=True)
    ]
    return times, faults
