"""Points in time as microseconds since 1970-01-01 UTC, from single values and from columns.

Times outside the years 0001 to 9999 are refused: neither Iceberg's readers nor the change
identifier can represent them.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)? ?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_MICROS = 86_400_000_000
MIN_MICROS = (1 - _EPOCH_DAY) * DAY_MICROS
MAX_MICROS = (date.max.toordinal() - _EPOCH_DAY + 1) * DAY_MICROS - 1
MIN_DAYS = 1 - _EPOCH_DAY
MAX_DAYS = date.max.toordinal() - _EPOCH_DAY

# Below the limit a number counts this many units per second; the ranges of present-day times do not
# meet.
#: Seconds from 9999-01-01 to 10001-01-01. The same number of the next smaller unit is one of some
#: hours in January 1978.
_NEVER = (253_370_764_800, 253_433_923_200)
_MAGNITUDES = ((10**11, 1), (10**14, 10**3), (10**17, 10**6))


class Micros(int):
    """Microseconds since 1970-01-01 whose unit is known, so nobody has to guess it."""


class Nanos(int):
    """Nanoseconds since 1970-01-01 of a wall clock."""


def iso_micros(text: str, *, exact: bool = False) -> int:
    """Microseconds of an ISO 8601 date or date-time; without an offset it is taken as UTC.

    Args:
        text: `T` or one space between date and time, up to nine digits of fraction.
        exact: refuse digits below a microsecond instead of cutting them off.

    Raises:
        ValueError: not ISO 8601, or outside the years 0001 to 9999.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is not an ISO 8601 date-time")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    if hour is None:
        return days * DAY_MICROS
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{text!r}: no such time of day")
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    if exact and fraction and fraction[6:].strip("0"):
        raise ValueError(f"{text!r} is finer than a microsecond")
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds - offset_seconds(offset)
    return in_range(total * 1_000_000 + micros)


def offset_seconds(offset: str | None) -> int:
    """Seconds east of UTC of `Z`, `+01`, `+0130` or `+01:30`. Raises ValueError."""
    if offset is None or offset[0] not in "+-":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[-2:]) if len(offset) > 3 else 0
    if hours > 18 or minutes > 59:
        raise ValueError(f"{offset!r}: no such offset from UTC")
    return (hours * 60 + minutes) * (-60 if offset[0] == "-" else 60)


def is_date_time(text: str) -> bool:
    """Whether a text is a full ISO 8601 date and time that exists."""
    if len(text) < len("2026-01-01T00:00"):
        return False
    try:
        iso_micros(text)
    except ValueError:
        return False
    return True


def epoch_micros(number: int | float | Decimal, *, exact: bool = False) -> int:
    """Microseconds of an epoch number whose size tells its unit: s, ms, µs or ns.

    Raises:
        ValueError: not a number; outside the years 0001 to 9999; or a moment of the years 9999 and
            10000 in one unit, which stand for "never", and of 1978 in the next one.
    """
    value = Decimal(repr(number)) if isinstance(number, float) else number
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{number} is not a time")
    begin, end = _NEVER
    if any(begin * unit <= value < end * unit for unit in (1, 10**3, 10**6)):
        raise ValueError(
            f"{number} may be a moment of the year 9999 or one of 1978 in a smaller unit; "
            "text in ISO 8601 says which"
        )
    per_second = next((unit for limit, unit in _MAGNITUDES if -limit < value < limit), 10**9)
    if isinstance(value, int):
        micros, rest = divmod(value * 1_000_000, per_second)
    else:
        scaled = value * 1_000_000 / per_second
        micros = int(scaled.to_integral_value(rounding="ROUND_FLOOR"))
        rest = 0 if scaled == micros else 1
    if exact and rest:
        raise ValueError(f"{number} is finer than a microsecond")
    return in_range(micros)


def in_range(micros: int) -> int:
    """The argument, when it lies in the years 0001 to 9999."""
    if not MIN_MICROS <= micros <= MAX_MICROS:
        raise ValueError("the time is outside the years 0001 to 9999")
    return micros


def datetime_micros(value: datetime) -> int:
    """Microseconds of a Python value; a naive one is taken as UTC."""
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    days = aware.toordinal() - _EPOCH_DAY
    seconds = ((days * 24 + aware.hour) * 60 + aware.minute) * 60 + aware.second
    return seconds * 1_000_000 + aware.microsecond


def iso_days(text: str) -> int:
    """Days since 1970-01-01 of `YYYY-MM-DD`."""
    match = _ISO.fullmatch(text)
    if match is None or match[4] is not None:
        raise ValueError(f"{text[:64]!r} is not an ISO 8601 date")
    return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH_DAY


def date_days(value: date) -> int:
    """Days since 1970-01-01."""
    return value.toordinal() - _EPOCH_DAY


def days_in_range(days: int) -> int:
    """The argument, when it lies in the years 0001 to 9999."""
    if not MIN_DAYS <= days <= MAX_DAYS:
        raise ValueError("the date is outside the years 0001 to 9999")
    return days


def stamp(micros: int) -> str:
    """`YYYYMMDDHHmmSShh` (hundredths), then the rest in microseconds as 19 digits: 35 in all."""
    days, of_day = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(of_day, 1_000_000)
    day = date.fromordinal(days + _EPOCH_DAY)
    hundredths, rest = divmod(fraction, 10_000)
    clock = f"{seconds // 3600:02d}{seconds // 60 % 60:02d}{seconds % 60:02d}"
    return f"{day.year:04d}{day.month:02d}{day.day:02d}{clock}{hundredths:02d}{rest:019d}"


# What `iso_micros` and Arrow read alike; everything else goes value by value.
_COMMON = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?(Z|\+00:00)$"


def instants_of(texts: pa.Array) -> pa.Array | None:
    """Microseconds as timestamps of a string column whose values are all spelled `…T…Z`.

    `+00:00` at the end is the same.

    Returns:
        None when a value is spelled otherwise or is not a time in the years 0001 to 9999.
    """
    # An empty selection counts as all: a column of NULLs has no other spelling.
    if not pc.all(pc.match_substring_regex(texts, _COMMON), min_count=0).as_py():
        return None
    try:
        times = texts.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return None
    lowest = pc.min(times.cast(pa.int64())).as_py()
    return None if lowest is not None and lowest < MIN_MICROS else times
