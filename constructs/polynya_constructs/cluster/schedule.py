"""Capacity by the clock and by forecast: checked when it is written down. Pure."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from polynya_constructs.cluster.capacity import Capacity, CapacityError
from polynya_constructs.cluster.strategies import Strategy

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
# Minute, hour, day of month, month, day of week: each `*`, numbers, ranges or steps, with commas.
_RANGES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_ITEM: Final = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/([1-9]\d?))?")


class Predictive(StrEnum):
    """What predictive scaling does with its forecast."""

    FORECAST_ONLY = "forecast_only"
    FORECAST_AND_SCALE = "forecast_and_scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBounds:
    """New bounds of a group from a time on, until another schedule changes them.

    Attributes:
        name: unique in the cluster.
        cron: when, five fields as `cron` reads them, such as `0 6 * * 1-5`.
        time_zone: of `cron`, by its IANA name.
        minimum: nodes at least from then on; None leaves it.
        maximum: nodes at most from then on; None leaves it.
    """

    name: str
    cron: str
    time_zone: str = "Etc/UTC"
    minimum: int | None = None
    maximum: int | None = None


def check_schedules(
    schedules: Sequence[ScheduledBounds], capacity: Capacity, strategy: Strategy
) -> None:
    """Refuse schedules that AWS would take and that could not work, or that it would refuse.

    Raises:
        CapacityError: with the number of the schedule in its text.
    """
    for number, schedule in enumerate(schedules):
        said = _problem(schedule, capacity, strategy)
        if schedule.name in [earlier.name for earlier in schedules[:number]]:
            said = f"the name {schedule.name!r} is taken"
        if said:
            raise CapacityError("schedules", f"schedules[{number}]: {said}")


def check_predictive(capacity: Capacity, strategy: Strategy) -> None:
    """Refuse predictive scaling where its forecast would be of no use.

    It counts nodes, so they have to be of one size, and it only ever adds: a policy of the
    strategy has to take nodes away ("Predictive scaling", EC2 Auto Scaling User Guide).

    Raises:
        CapacityError: when one of both does not hold.
    """
    if strategy.predictive_cpu_percent is None:
        message = f"strategy {strategy.name} has no policy that would take back what is added"
        raise CapacityError("predictive", message)
    sizes = {name.partition(".")[2] for name in capacity.instance_types}
    if len(sizes) > 1:
        message = f"instance_types are of {len(sizes)} sizes, and a forecast counts nodes as equal"
        raise CapacityError("predictive", message)


def _problem(schedule: ScheduledBounds, capacity: Capacity, strategy: Strategy) -> str | None:
    if not _NAME.fullmatch(schedule.name):
        return f"the name {schedule.name!r} is not 1 to 32 of a-z 0-9 -, a letter first"
    if not _is_cron(schedule.cron):
        return f"cron is {schedule.cron!r}; write five fields such as `0 6 * * 1-5`"
    # A system without a database of time zones knows none; AWS then is the first to look.
    if _time_zones() and schedule.time_zone not in _time_zones():
        return f"there is no time zone {schedule.time_zone!r}; write one such as Europe/Berlin"
    if schedule.minimum is None and schedule.maximum is None:
        return "it has neither minimum nor maximum"
    least = capacity.minimum if schedule.minimum is None else schedule.minimum
    most = capacity.maximum if schedule.maximum is None else schedule.maximum
    if not 0 <= least <= most or most < 1:
        return f"nodes would be {least} to {most}"
    if least == 0 and not strategy.starts_from_zero:
        return f"minimum is 0, and strategy {strategy.name} never starts a first node"
    return None


def _is_cron(text: str) -> bool:
    fields = text.split(" ")
    return len(fields) == len(_RANGES) and all(
        _is_item(item, low, high)
        for field, (low, high) in zip(fields, _RANGES, strict=True)
        for item in field.split(",")
    )


def _is_item(text: str, low: int, high: int) -> bool:
    found = _ITEM.fullmatch(text)
    if found is None:
        return False
    numbers = [int(number) for number in found.group(1, 2) if number is not None]
    return numbers == sorted(numbers) and all(low <= number <= high for number in numbers)


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())
