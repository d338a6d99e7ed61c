"""Order and time of stream records: landed batch and row, unless the settings give another order.

A change identifier is 20 digits of the landed batch and 15 of the record in it. The time is the
time of the message, unless the settings name a column or the sequence is a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.columnar import Places, placed, places_of
from polynya.formats.landed import batch_name, batch_number
from polynya.formats.values.batches import Placement
from polynya.formats.values.columns import TypedColumn
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import DataType


def own_place(file: str, offset: int) -> str:
    """The place of a record that has no other: 35 digits."""
    return f"{batch_number(file) or 0:020d}{offset:015d}"


def place_of(identifier: str) -> tuple[str, int]:
    """The name of the batch and the offset that `own_place` made a place of.

    Raises ValueError for anything else.
    """
    return batch_name(int(identifier[:20])), int(identifier[20:])


def placed_records(
    columns: Mapping[str, TypedColumn],
    dataset: ResolvedDataset,
    own: Sequence[str],
    taken: Sequence[int | None],
    *,
    load: bool,
) -> Placement:
    """Where records stand.

    Args:
        columns: typed columns of the records, header columns among them.
        dataset: their settings.
        own: the place of each in the landed batches.
        taken: when the source took each, in microseconds.
        load: they are read for a reload.
    """
    found = placed(columns, dataset, count=len(own), load=load)
    times = found.times
    if dataset.events.timestamp is None:
        times = [at if time is None else time for time, at in zip(found.times, taken, strict=True)]
    identifiers = found.identifiers if dataset.events.sequence_by else own
    return replace(found, identifiers=identifiers, positions=own, times=times)


def places_in_columns(
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    own: pa.Array,
    taken: pa.Array,
    *,
    load: bool,
) -> Places:
    """The same for whole columns; `taken` is a column of 64-bit integers."""
    found = places_of(columns, schema, dataset, count=len(own), load=load)
    times = found.times
    if dataset.events.timestamp is None:
        times = pc.coalesce(times, taken)
    identifiers = found.identifiers if dataset.events.sequence_by else own
    return replace(found, identifiers=identifiers, times=times)


def own_places(file: str, first: int, count: int) -> pa.Array:
    """The places of records that follow each other in a landed batch; see `own_place`."""
    number = batch_number(file) or 0
    offsets = pa.arange(first, first + count).cast(pa.string())
    digits = pc.ascii_lpad(offsets, 15, "0")
    return pc.binary_join_element_wise(pa.scalar(f"{number:020d}"), digits, "")
