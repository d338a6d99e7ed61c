"""When a capture reloads: a line of cron in UTC, or a recurrence rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.capture.recurrence import Recurrence, is_recurrence, parse_recurrence
from polynya.model.contract.identifiers import shown

_SHORT: Final[Mapping[str, str]] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
}
_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_DAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
#: Name, least, most, and words for the numbers from the least on.
_FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of the month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_PART: Final = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d{1,4}))?")
#: From one 29 February to the next there are at most eight years.
_HORIZON: Final = timedelta(days=366 * 8)
_FIX: Final = (
    "write five fields, minute, hour, day, month, day of the week: `30 2 * * *`; or a rule: "
    "`FREQ=DAILY;BYHOUR=2;BYMINUTE=30`"
)


@dataclass(frozen=True, slots=True)
class Cron:
    """Moments that come again: `next_after` gives them one by one."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Day of the month and of the week are both restricted: one of them suffices, as in cron."""

    def __str__(self) -> str:
        return self.text

    def next_after(self, moment: datetime) -> datetime:
        """The first moment of the schedule after another one, both with their offset.

        Raises ValueError where there is none in eight years: no schedule that was parsed.
        """
        end = moment + _HORIZON
        now = moment.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        while now <= end:
            if now.month not in self.months or not self._is_day(now):
                now = now.replace(hour=0, minute=0) + timedelta(days=1)
            elif now.hour not in self.hours:
                now = now.replace(minute=0) + timedelta(hours=1)
            elif now.minute not in self.minutes:
                now += timedelta(minutes=1)
            else:
                return now
        raise ValueError(f"`{self.text}` never comes")

    def _is_day(self, moment: datetime) -> bool:
        in_month = moment.day in self.days
        in_week = moment.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


def parse_cron(text: str) -> Cron:
    """The schedule of a line of cron; raises ValueError in words for who wrote it."""
    written = text.strip()
    fields = _SHORT.get(written.lower(), written).lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{shown(text)} is no schedule")
    sets = [_values(field, *facts) for field, facts in zip(fields, _FIELDS, strict=True)]
    weekdays = frozenset(day % 7 for day in sets[4])
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    cron = Cron(written, sets[0], sets[1], sets[2], sets[3], weekdays, either)
    cron.next_after(datetime(2000, 1, 1, tzinfo=UTC))
    return cron


def _values(field: str, name: str, least: int, most: int, words: list[str]) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is no {name} of a schedule")
        span, step = match[1], int(match[2] or 1)
        if span == "*":
            begin, end = least, most
        else:
            first, _, last = span.partition("-")
            begin = _number(first, name, least, most, words)
            end = _number(last, name, least, most, words) if last else (most if match[2] else begin)
        if step < 1 or begin > end:
            raise ValueError(f"{shown(part)} is no {name} of a schedule")
        found.update(range(begin, end + 1, step))
    return frozenset(found)


def _number(text: str, name: str, least: int, most: int, words: list[str]) -> int:
    number = words.index(text) + least if text in words else int(text) if text.isdigit() else -1
    if not least <= number <= most:
        raise ValueError(f"{shown(text)} is no {name}: it is {least} to {most}")
    return number


def parse_schedule(text: str) -> Cron | Recurrence:
    """The schedule of a line of cron or of a rule; raises ValueError in words."""
    return parse_recurrence(text) if is_recurrence(text) else parse_cron(text)


def _schedule(value: object) -> object:
    if isinstance(value, Cron | Recurrence):
        return value
    try:
        return parse_schedule(str(value))
    except ValueError as error:
        raise PydanticCustomError(
            "polynya_value", "{message}", {"message": str(error), "fix": _FIX}
        ) from None


Schedule: TypeAlias = Annotated[
    Cron | Recurrence,
    BeforeValidator(_schedule),
    PlainSerializer(str),
    WithJsonSchema(
        {"type": "string", "examples": ["30 2 * * *", "@hourly", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=2"]}
    ),
]
