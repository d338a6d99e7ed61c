"""Typing and ordering whole Arrow columns of a landed file, without looking at single values.

A column is taken this way only if every value survives unchanged. In all other cases these
functions return `None`, and the exact reader types the column value by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.batches import Placement
from polynya.formats.values.columns import Faults, TypedColumn
from polynya.formats.values.rows import ColumnTypes
from polynya.formats.values.sequence import order_by, times_of
from polynya.formats.values.times import DAY_MICROS, instants_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)


def numbered(types: ColumnTypes, dataset: ResolvedDataset) -> ColumnTypes:
    """What typing needs to know, with `numbers` and `widen_numbers` of the settings."""
    events, wide = dataset.events, dataset.policies.schema_evolution.wide_numbers
    if events.numbers is None and wide is None:
        return types
    times = () if events.timestamp is None else (events.timestamp,)
    unlike = frozenset({*events.keys, *events.sequence_by, *times})
    return replace(types, numbers=events.numbers, wide=wide, unlike=unlike)


#: Times between these, in microseconds, are in the calendar whatever their zone: years 2 to 9998.
_FIRST_MICROS, _LAST_MICROS = -62_103_715_200_000_000, 253_370_764_800_000_000
_FIRST_DAY, _LAST_DAY = -718_791, 2_932_532


def typed_columns(
    rows: pa.RecordBatch, schema: Mapping[str, DataType]
) -> dict[str, pa.Array] | None:
    """The columns of `schema`, those that the file lacks as NULLs.

    None when the values of one must be looked at, or the file has a column more. Raises
    `pa.ArrowInvalid` for a text that is not UTF-8.
    """
    if not set(rows.schema.names) <= set(schema):
        return None
    found: dict[str, pa.Array] = {}
    for name, kind in schema.items():
        place = rows.schema.get_field_index(name)
        if place < 0:
            found[name] = pa.nulls(rows.num_rows, arrow_type(kind))
            continue
        column = typed(rows.column(place), kind)
        if column is None:
            return None
        found[name] = column
    return found


def typed(column: pa.Array, kind: DataType) -> pa.Array | None:
    """One column as that of a type, None when its values must be looked at."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), arrow_type(kind))
    if not _is_same(column.type, kind):
        return None
    try:
        column = column.cast(arrow_type(kind))
    except pa.ArrowInvalid:
        return None
    if kind == STRING:
        column.validate(full=True)
    return column if _is_in_calendar(column, kind) else None


def _is_same(arrow: pa.DataType, kind: DataType) -> bool:
    """Whether a type of Arrow holds no value that is another one in the type of the column."""
    types = pa.types
    if isinstance(kind, Decimal):
        return types.is_decimal128(arrow) and (arrow.precision, arrow.scale) == (
            kind.precision,
            kind.scale,
        )
    small = types.is_int8(arrow) or types.is_int16(arrow) or types.is_int32(arrow)
    small = small or types.is_uint8(arrow) or types.is_uint16(arrow)
    checks: dict[DataType, bool] = {
        BOOLEAN: types.is_boolean(arrow),
        INT: small,
        BIGINT: small or types.is_int64(arrow) or types.is_uint32(arrow),
        FLOAT: types.is_float32(arrow),
        DOUBLE: types.is_float64(arrow),
        STRING: types.is_string(arrow) or types.is_large_string(arrow),
        BINARY: types.is_binary(arrow) or types.is_large_binary(arrow),
        DATE: types.is_date32(arrow),
        TIMESTAMP: types.is_timestamp(arrow) and arrow.tz is not None,
        TIMESTAMP_NTZ: types.is_timestamp(arrow) and arrow.tz is None,
    }
    return checks.get(kind, False)


def _is_in_calendar(column: pa.Array, kind: DataType) -> bool:
    if kind == DATE:
        first, last, plain = _FIRST_DAY, _LAST_DAY, column.view(pa.int32())
    elif kind in {TIMESTAMP, TIMESTAMP_NTZ}:
        first, last, plain = _FIRST_MICROS, _LAST_MICROS, column.view(pa.int64())
    else:
        return True
    ends = pc.min_max(plain)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return low is None or (low >= first and high <= last)


def placed(
    columns: Mapping[str, TypedColumn], dataset: ResolvedDataset, *, count: int, load: bool
) -> Placement:
    """Where `count` records stand; those of a full load need no sequence."""
    order = order_by(columns, dataset.events.sequence_by, [load] * count)
    times, faults = times_of(columns, dataset.events.timestamp, dataset.events.sequence_by, count)
    return Placement(
        order.identifiers, order.tails, [None] * count, times, {**faults, **order.faults}
    )


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
    typed = {name: TypedColumn(schema[name], array, {}) for name, array in columns.items()}
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
    """As `sequence_encoder` has them: the value plus 2**63, in 35 digits."""
    shifted = pc.bit_wise_xor(values.view(pa.uint64()), _SIGN)
    return pc.ascii_lpad(shifted.cast(pa.string()), 35, "0")


def _of_instants(micros: pa.Array) -> pa.Array | None:
    """As `stamp` in `polynya.formats.values.times` has them, None before the year 1000."""
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
