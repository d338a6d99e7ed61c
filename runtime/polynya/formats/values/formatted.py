"""Columns of dates and times with a format of their own: a pattern, or the unit of a number.

A value that does not have the format is a bad value, never another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from polynya.formats.values import times
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.columns import Faults, TypedColumn, Values
from polynya.formats.values.exact import USUAL, NumberSpelling, number_of_text, shown
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.time_patterns import DAYS, EPOCHS, MONTHS, time_pattern
from polynya.model.types import DATE, DataType

_WIDE: Final = Context(prec=1000)


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How a column spells its dates or times: a pattern, or the unit of a number."""

    format: str
    spelling: NumberSpelling = USUAL

    def read(self, value: Any, kind: DataType) -> int:
        """Microseconds since 1970, for a date days. Raises ValueError."""
        per_second = EPOCHS.get(self.format)
        if per_second is None:
            micros = self._by_pattern(value)
        else:
            micros = _epoch_micros(self._number_of(value), per_second)
        if kind != DATE:
            return times.in_range(micros)
        days, rest = divmod(micros, times.DAY_MICROS)
        if rest:
            raise ValueError(f"{shown(value)} has a time of day, the column is date")
        return times.days_in_range(days)

    def _by_pattern(self, value: Any) -> int:
        # A number such as 20261231.
        text = str(value) if type(value) is int else value
        if not isinstance(text, str):
            raise ValueError(f"{shown(value)} is not a text")  # noqa: TRY004
        parts = time_pattern(self.format).match(text)
        if parts is None or not {"year", "month", "day"}.issubset(parts):
            raise ValueError(f"{shown(value)} does not have the format `{self.format}`")
        try:
            return _micros(parts)
        except ValueError as error:
            raise ValueError(f"{shown(value)}: {error}") from None

    def _number_of(self, value: Any) -> int | Decimal:
        if isinstance(value, str):
            return number_of_text(value, whole=False, spelling=self.spelling)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise ValueError(f"{shown(value)} is not a number")  # noqa: TRY004
        return Decimal(repr(value)) if isinstance(value, float) else value

    def column(self, values: Values, kind: DataType) -> TypedColumn:
        """A column of a type of dates or times."""
        out: list[int | None] = []
        faults: Faults = {}
        for index, value in enumerate(values):
            try:
                out.append(None if value is None else self.read(value, kind))
            except ValueError as error:
                out.append(None)
                faults[index] = ("bad_value", str(error))
        return TypedColumn(kind, pa.array(out, arrow_type(kind)), faults)


def time_formats(dataset: ResolvedDataset) -> dict[str, TimeFormat]:
    """By column, the formats that the settings name."""
    spelling = NumberSpelling.of(dataset.landing.delivery)
    return {name: TimeFormat(text, spelling) for name, text in dataset.events.formats.items()}


def _epoch_micros(number: int | Decimal, per_second: int) -> int:
    if isinstance(number, Decimal) and not number.is_finite():
        raise ValueError(f"{number} is not a time")
    if not -(10**18) < number < 10**18:
        raise ValueError("the time is outside the years 0001 to 9999")
    if isinstance(number, int):
        return number * (1_000_000 // per_second)
    micros = _WIDE.multiply(number, Decimal(1_000_000 // per_second))
    if micros != micros.to_integral_value():
        raise ValueError(f"{shown(number)} is finer than a microsecond")
    return int(micros)


def _micros(parts: Mapping[str, str]) -> int:
    """Microseconds of the parts of a time. Raises ValueError for one that does not exist."""
    year = int(parts["year"])
    day = date(
        year + 2000 if len(parts["year"]) == 2 else year,
        _index(parts["month"], MONTHS),
        int(parts["day"]),
    )
    weekday = parts.get("weekday")
    if weekday is not None and DAYS[day.weekday()][: len(weekday)].lower() != weekday.lower():
        raise ValueError(f"it is a {DAYS[day.weekday()]}")
    hour = int(parts.get("hour", "0"))
    if (half := parts.get("half")) is not None:
        if not 1 <= int(half) <= 12:
            raise ValueError("no such time of day")
        hour = int(half) % 12 + (12 if parts["noon"].lower() == "pm" else 0)
    minute, second = int(parts.get("minute", "0")), int(parts.get("second", "0"))
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no such time of day")
    fraction = parts.get("fraction", "")
    if fraction[6:].strip("0"):
        raise ValueError("finer than a microsecond")
    days = times.date_days(day)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    seconds -= times.offset_seconds(parts.get("offset"))
    return seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))


def _index(text: str, names: tuple[str, ...]) -> int:
    if text.isdigit():
        return int(text)
    return next(n for n, name in enumerate(names, 1) if name[: len(text)].lower() == text.lower())
