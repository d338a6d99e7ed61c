"""Where the records of a chunk stand, for whole columns; the same as `order.placed` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER
from polynya.formats.native.order import placed
from polynya.formats.values.columns import Column, Faults
from polynya.formats.values.instants import DAY_MICROS
from polynya.formats.values.iso_arrays import instants_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

_INSTANTS = frozenset({TIMESTAMP, TIMESTAMP_NTZ})
_YEAR_1000 = -30_610_224_000_000_000
_SIGN = pa.scalar(1 << 63, pa.uint64())


@dataclass(frozen=True, slots=True)
class Places:
    """One change identifier and tail a record, None where all have NO_ORDER and none.

    `newest` is the greatest time in microseconds.
    """

    identifiers: pa.Array | None
    tails: pa.Array | None
    newest: int | None
    faults: Faults


def places_of(
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    count: int,
) -> Places:
    """Where `count` records of a full load stand, by their typed columns."""
    events = dataset.events
    times = events.timestamp or (events.sequence_by[0] if len(events.sequence_by) == 1 else None)
    newest = _newest(times, columns, schema, parsed=events.timestamp is not None)
    identifiers = _identifiers(events.sequence_by, columns, schema)
    if newest is not None and (identifiers is not None or not events.sequence_by):
        tails = None if identifiers is None else pa.nulls(count, pa.string())
        return Places(identifiers, tails, newest[0], {})
    return _one_by_one(columns, schema, dataset, count)


def _one_by_one(
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    count: int,
) -> Places:
    typed = {name: Column(schema[name], array, {}) for name, array in columns.items()}
    found = placed(typed, dataset, count=count, load=True)
    times = [t for i, t in enumerate(found.times) if t is not None and i not in found.faults]
    return Places(
        pa.array(found.identifiers, pa.string()) if dataset.events.sequence_by else None,
        pa.array(found.tails, pa.string()) if dataset.events.sequence_by else None,
        max(times, default=None),
        found.faults,
    )


def _identifiers(
    names: tuple[str, ...], columns: Mapping[str, pa.Array], schema: Mapping[str, DataType]
) -> pa.Array | None:
    """Change identifiers of a sequence of one column, None when they take a look at each value."""
    if len(names) != 1 or names[0] not in columns:
        return None
    column, kind = columns[names[0]], schema[names[0]]
    if kind in {INT, BIGINT}:
        found = _of_integers(column.cast(pa.int64()))
    elif kind in _INSTANTS:
        found = _of_instants(column.view(pa.int64()))
    else:
        return None
    return None if found is None else pc.fill_null(found, NO_ORDER)


def _of_integers(values: pa.Array) -> pa.Array:
    """As `change_identifier` has them: the value plus 2**63, in 35 digits."""
    shifted = pc.bit_wise_xor(values.view(pa.uint64()), _SIGN)
    return pc.ascii_lpad(shifted.cast(pa.string()), 35, "0")


def _of_instants(micros: pa.Array) -> pa.Array | None:
    """As `instants.stamp` has them, None before the year 1000."""
    low = pc.min(micros).as_py()
    if low is not None and low < _YEAR_1000:
        return None
    days = pc.divide(micros, DAY_MICROS)
    days = pc.subtract(days, pc.less(micros, pc.multiply(days, DAY_MICROS)).cast(pa.int64()))
    of_day = pc.subtract(micros, pc.multiply(days, DAY_MICROS))
    # There are few days, and their names are what costs.
    known = days.dictionary_encode()
    dates = pc.strftime(known.dictionary.cast(pa.int32()).cast(pa.date32()), format="%Y%m%d")
    return pc.binary_join_element_wise(
        dates.take(known.indices), _clock(of_day), _digits(_rest(of_day, 10_000), 19), ""
    )


def _clock(of_day: pa.Array) -> pa.Array:
    """Hours, minutes, seconds and hundredths, two digits each."""
    hundredths = pc.divide(of_day, 10_000)
    seconds = pc.divide(hundredths, 100)
    minutes = pc.divide(seconds, 60)
    number = pc.multiply(pc.divide(minutes, 60), 1_000_000)
    for part, worth in ((_rest(minutes, 60), 10_000), (_rest(seconds, 60), 100)):
        number = pc.add(number, pc.multiply(part, worth))
    return _digits(pc.add(number, _rest(hundredths, 100)), 8)


def _rest(values: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def _digits(values: pa.Array, width: int) -> pa.Array:
    return pc.ascii_lpad(values.cast(pa.string()), width, "0")


def _newest(
    name: str | None,
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    *,
    parsed: bool,
) -> tuple[int | None] | None:
    """The greatest time of a column; None when that takes a look at each value."""
    if name is None or name not in columns:
        return (None,)
    column, kind = columns[name], schema[name]
    if kind in _INSTANTS:
        return (pc.max(column.view(pa.int64())).as_py(),)
    if kind == DATE:
        days = pc.max(column.view(pa.int32())).as_py()
        return (None if days is None else days * DAY_MICROS,)
    if kind == STRING:
        times = instants_of(column)
        return None if times is None else (pc.max(times.view(pa.int64())).as_py(),)
    return None if parsed else (None,)
