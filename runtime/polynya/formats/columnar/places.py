"""Where records stand, for whole columns; the same as `placed.placed` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER
from polynya.formats.columnar.placed import placed
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
    """One change identifier, tail and time a record; no identifiers where all have NO_ORDER.

    `times` are in microseconds, NULL where the copy time stands in.
    """

    identifiers: pa.Array | None
    tails: pa.Array
    times: pa.Array
    faults: Faults

    @property
    def newest(self) -> int | None:
        """The greatest time of a record without a fault."""
        times = self.times
        if self.faults:
            good = [index not in self.faults for index in range(len(times))]
            times = times.filter(pa.array(good, pa.bool_()))
        newest: int | None = pc.max(times).as_py()
        return newest


def places_of(
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    *,
    count: int,
    load: bool,
) -> Places:
    """Where `count` records stand; those of a full load (`load`) need no sequence."""
    events = dataset.events
    name = events.timestamp or (events.sequence_by[0] if len(events.sequence_by) == 1 else None)
    times = _times(name, columns, schema, count, parsed=events.timestamp is not None)
    if times is not None:
        identifiers = _identifiers(events.sequence_by, columns, schema)
        if identifiers is not None and load:
            identifiers = pc.fill_null(identifiers, NO_ORDER)
        if not events.sequence_by or (identifiers is not None and not identifiers.null_count):
            return Places(identifiers, pa.nulls(count, pa.string()), times, {})
    return _one_by_one(columns, schema, dataset, count=count, load=load)


def _one_by_one(
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    *,
    count: int,
    load: bool,
) -> Places:
    typed = {name: Column(schema[name], array, {}) for name, array in columns.items()}
    found = placed(typed, dataset, count=count, load=load)
    return Places(
        pa.array(found.identifiers, pa.string()) if dataset.events.sequence_by else None,
        pa.array(found.tails, pa.string()),
        pa.array(found.times, pa.int64()),
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
        return _of_integers(column.cast(pa.int64()))
    return _of_instants(column.view(pa.int64())) if kind in _INSTANTS else None


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


def _times(
    name: str | None,
    columns: Mapping[str, pa.Array],
    schema: Mapping[str, DataType],
    count: int,
    *,
    parsed: bool,
) -> pa.Array | None:
    """The times of a column, NULLs without one; None when that takes a look at each value."""
    nothing = pa.nulls(count, pa.int64())
    if name is None or name not in columns:
        return nothing
    column, kind = columns[name], schema[name]
    if kind in _INSTANTS:
        return column.view(pa.int64())
    if kind == DATE:
        return pc.multiply(column.view(pa.int32()).cast(pa.int64()), DAY_MICROS)
    if kind == STRING:
        times = instants_of(column)
        return None if times is None else times.view(pa.int64())
    return None if parsed else nothing
