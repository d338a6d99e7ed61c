"""Order and time of native records, from `sequence_by` and `timestamp`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from polynya.landing import instants
from polynya.landing.batch import NO_ORDER
from polynya.landing.change_identifier import has_order, plain_values, sequence_encoder
from polynya.landing.columns import Column, Faults
from polynya.landing.exact import shown
from polynya.model.datatypes import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType


@dataclass(frozen=True, slots=True)
class Order:
    """One change identifier and tail a record; None where `faults` says why there is none."""

    identifiers: list[str | None]
    tails: list[str | None]
    faults: Faults


def order_by(
    columns: Mapping[str, Column], names: Sequence[str], count: int, *, optional: bool
) -> Order:
    """Encode the sequence columns.

    Args:
        columns: typed columns of the batch.
        names: `sequence_by`; with none, every record has the same place.
        count: number of records.
        optional: a record without a sequence stands before all others instead of being refused
            (first load).
    """
    identifiers: list[str | None] = [NO_ORDER if optional or not names else None] * count
    tails: list[str | None] = [None] * count
    faults: Faults = {}
    present = [columns[name] for name in names if name in columns]
    unordered = next((column.type for column in present if not _sortable(column.type)), None)
    if not names:
        return Order(identifiers, tails, faults)
    if unordered is not None:
        faults = dict.fromkeys(
            range(count), ("bad_sequence", f"a column of type {unordered} has no order")
        )
        return Order(identifiers, tails, faults)
    if len(present) < len(names):
        if not optional:
            missing = next(name for name in names if name not in columns)
            faults = dict.fromkeys(
                range(count), ("null_sequence", f"sequence column {missing} is NULL")
            )
        return Order(identifiers, tails, faults)
    _encode(names, present, Order(identifiers, tails, faults), optional=optional)
    return Order(identifiers, tails, faults)


def _sortable(kind: DataType) -> bool:
    # A column of NULLs only has no type yet; its records are refused for the NULL.
    return has_order(kind) or str(kind) == "void"


def _encode(
    names: Sequence[str], columns: Sequence[Column], order: Order, *, optional: bool
) -> None:
    types = [column.type if has_order(column.type) else STRING for column in columns]
    encode = sequence_encoder(types)
    values = [plain_values(column.array, kind) for column, kind in zip(columns, types, strict=True)]
    for index, row in enumerate(zip(*values, strict=True)):
        if None in row:
            if not optional:
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
        texts: list[str | None] = column.array.to_pylist()
        return [
            instants.iso_micros(text) if text and instants.is_date_time(text) else None
            for text in texts
        ]
    return [None] * count
