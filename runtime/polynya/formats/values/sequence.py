"""Order and time of native records, from `sequence_by` and `timestamp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from polynya.formats.batch import NO_ORDER
from polynya.formats.values import instants
from polynya.formats.values.change_identifier import has_order, plain_values, sequence_encoder
from polynya.formats.values.columns import Column, Faults
from polynya.formats.values.exact import shown
from polynya.formats.values.iso_arrays import instants_of
from polynya.model.datatypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Void


@dataclass(frozen=True, slots=True)
class Order:
    """One change identifier and tail a record; None where `faults` says why there is none."""

    identifiers: list[str | None]
    tails: list[str | None]
    faults: Faults


def order_by(
    columns: Mapping[str, Column], names: Sequence[str], first_load: Sequence[bool]
) -> Order:
    """Encode the sequence columns.

    Args:
        columns: typed columns of the batch.
        names: `sequence_by`; with none, every record has the same place.
        first_load: for each record whether it may lack a sequence: then it stands before all others
            instead of being refused.
    """
    count = len(first_load)
    if not names:
        return Order([NO_ORDER] * count, [None] * count, {})
    order = Order([NO_ORDER if first else None for first in first_load], [None] * count, {})
    present = [columns.get(name) or Column(Void(), pa.nulls(count), {}) for name in names]
    for name, column in zip(names, present, strict=True):
        if not has_order(column.type) and not isinstance(column.type, Void):
            fault = ("bad_sequence", f"column {name} of type {column.type} has no order")
            return Order(order.identifiers, order.tails, dict.fromkeys(range(count), fault))
    _encode(names, present, first_load, order)
    return order


def _encode(
    names: Sequence[str], columns: Sequence[Column], first_load: Sequence[bool], order: Order
) -> None:
    # A column of NULLs has no type yet; its records end before they would be encoded.
    types = [STRING if isinstance(column.type, Void) else column.type for column in columns]
    encode = sequence_encoder(types)
    values = [plain_values(column.array, kind) for column, kind in zip(columns, types, strict=True)]
    for index, row in enumerate(zip(*values, strict=True)):
        if None in row:
            if not first_load[index]:
                name = names[row.index(None)]
                order.faults[index] = ("null_sequence", f"sequence column {name} is NULL")
            continue
        try:
            order.identifiers[index], order.tails[index] = encode(row)
        except ValueError as error:
            order.faults[index] = ("bad_sequence", str(error))


def times_of(
    columns: Mapping[str, Column], timestamp: str | None, sequence: Sequence[str], count: int
) -> tuple[list[int | None], Faults]:
    """Microseconds of each record's `__ts`, None where the copy time stands in."""
    if timestamp is not None:
        column = columns.get(timestamp)
        return ([None] * count, {}) if column is None else _parsed_times(column)
    if len(sequence) == 1 and sequence[0] in columns:
        return _sequence_times(columns[sequence[0]], count), {}
    return [None] * count, {}


def _parsed_times(column: Column) -> tuple[list[int | None], Faults]:
    if column.type == STRING:
        at_once = instants_of(column.array)
        if at_once is not None:
            return plain_values(at_once, TIMESTAMP), {}
    times: list[int | None] = []
    faults: Faults = {}
    for index, value in enumerate(_time_values(column)):
        try:
            times.append(None if value is None else time_micros(value))
        except (ValueError, OverflowError) as error:
            times.append(None)
            faults[index] = ("bad_timestamp", str(error))
    return times, faults


def _time_values(column: Column) -> list[Any]:
    values: list[Any] = column.array.to_pylist()
    return values


def time_micros(value: object) -> int:
    """Microseconds of a `timestamp:` value: text, number, date or time. Raises ValueError."""
    match value:
        case str():
            return instants.iso_micros(value)
        case datetime():
            return instants.datetime_micros(value)
        case date():
            return instants.date_days(value) * instants.DAY_MICROS
        case bool():
            raise ValueError(f"{value} is not a time")
        case int() | float() | Decimal():
            return instants.epoch_micros(value)
        case _:
            raise ValueError(f"{shown(value)} is not a time")


def _sequence_times(column: Column, count: int) -> list[int | None]:
    if column.type in {TIMESTAMP, TIMESTAMP_NTZ, DATE}:
        values = plain_values(column.array, column.type)
        return [
            None if v is None else v * (instants.DAY_MICROS if column.type == DATE else 1)
            for v in values
        ]
    if column.type == STRING:
        at_once = instants_of(column.array)
        if at_once is not None:
            return plain_values(at_once, TIMESTAMP)
        texts: list[str | None] = column.array.to_pylist()
        return [
            instants.iso_micros(text) if text and instants.is_date_time(text) else None
            for text in texts
        ]
    return [None] * count
