"""Units of time as dates in paths have them: when one begins, and which follows. All in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from polynya.model.contract.file_pattern import UNITS

_NAMES: Final = tuple(UNITS)
_LENGTHS: Final = {"dd": timedelta(days=1), "HH": timedelta(hours=1), "mm": timedelta(minutes=1)}
#: How many of a unit there are in the next larger one.
PARTS: Final = {"MM": 12, "dd": 31, "HH": 24, "mm": 60}
#: No date in a path can be after it.
END: Final = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


def begun(moment: datetime, unit: str) -> datetime:
    """When the unit of a moment began."""
    count = _NAMES.index(unit) + 1
    numbers = (moment.year, moment.month, moment.day, moment.hour, moment.minute)
    year, month, day, hour, minute = [*numbers[:count], *(1, 1, 1, 0, 0)[count:]]
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def following(moment: datetime, unit: str) -> datetime:
    """When the next unit begins, of a moment at which one begins."""
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return moment + length if moment <= END - length else END
    months = moment.year * 12 + moment.month - 1 + (12 if unit == "yyyy" else 1)
    if months // 12 > END.year:
        return END
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def units(begin: datetime, end: datetime, unit: str) -> Iterator[datetime]:
    """The beginnings of all units that meet the time from `begin` to `end`, both included."""
    at = begun(begin, unit)
    while at <= end:
        yield at
        after = following(at, unit)
        if after <= at:
            return
        at = after
