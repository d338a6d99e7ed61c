"""When something is due: cron lines, recurrence rules, time windows, each on a zone's clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Final, TypeAlias
from zoneinfo import ZoneInfo

from cronsim import CronSim
from dateutil.rrule import rrulestr
from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from polynya.model.config.fields import Parsed
from polynya.model.names import shown

#: A Monday and the first day of a year: what a rule without DTSTART counts from.
_ANCHOR: Final = datetime(2001, 1, 1, tzinfo=UTC)
#: Frequencies whose period has always the same length: there a rule can be begun near its moment.
_PERIODS: Final = {
    "MINUTELY": timedelta(minutes=1),
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}
_FREQUENCIES: Final = frozenset({*_PERIODS, "MONTHLY", "YEARLY"})
_PARTS: Final = frozenset(
    {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYSETPOS", "BYMONTH", "BYMONTHDAY", "BYDAY",
     "BYHOUR", "BYMINUTE"}
)  # fmt: skip
_START: Final = re.compile(r"DTSTART(?:;TZID=([A-Za-z0-9_+/-]{1,64}))?:(\d{8}T\d{6})(Z?)")
_LONGEST: Final = 1000
#: By how much the clocks of a zone are put forward or back at most; usual is an hour.
_LARGEST_CHANGE: Final = timedelta(hours=3)
#: Days of the months at most, from January on.
_DAYS_OF_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Recurring moments, on the clock of a time zone.

    Attributes:
        text: as it was written.
        rule: its parts, `FREQ=…;…`.
        start: moment from which it counts.
    """

    text: str
    rule: str
    start: datetime

    def __str__(self) -> str:
        return self.text

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment of the rule after another one, in UTC; None if it has ended.

        A moment that the clock skips in spring is read with the offset before the change, and of
        one that comes twice in autumn the first counts.
        """
        # Moments of one zone are compared by its clock, so near a change of it look back further.
        here = moment.astimezone(self.start.tzinfo) - _LARGEST_CHANGE
        rule = rrulestr(self.rule, dtstart=self._near(here))
        following = rule.after(here)
        while following is not None and following.astimezone(UTC) <= moment:
            following = rule.after(following)
        return None if following is None else following.astimezone(UTC)

    def _near(self, moment: datetime) -> datetime:
        """A start that gives the same moments, not long before one."""
        parts = _parts(self.rule)
        period = _PERIODS.get(parts["FREQ"])
        if period is None or "COUNT" in parts:
            return self.start
        step = period * int(parts.get("INTERVAL", "1"))
        # Both are of one zone, so this is the time on its clock, as rules count it.
        return self.start + step * max(0, (moment - self.start) // step - 1)


_LONGEST_WINDOW: Final = timedelta(days=366)
#: Edges of windows that are looked at for one that is open.
_MOST_EDGES: Final = 2000


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A recurring span of time. It begins by the clock of a zone, and lasts so long in real time.

    A start that the clock skips in spring is read with the offset before the change: 02:30 is 03:30
    then. Of a start that comes twice in autumn the first one counts.
    """

    starts: Recurrence
    duration: timedelta

    def closes_at(self, now: datetime) -> datetime | None:
        """When the span ends that `now` is in, in UTC; None: `now` is outside."""
        start = self.starts.next_after(now - self.duration)
        return start + self.duration if start is not None and start <= now else None

    def opens_after(self, now: datetime) -> datetime | None:
        """When the next span begins after `now`, in UTC; None: there is none any more."""
        return self.starts.next_after(now)


def parse_window(rule: str, duration: timedelta, time_zone: str = "UTC") -> TimeWindow:
    """The window of a rule, its length and its zone; raises ValueError with a message."""
    text = rule.strip()
    if text.startswith("DTSTART") and time_zone != "UTC":
        raise ValueError("the rule has a start with a zone of its own: remove `time_zone`")
    if not text.startswith("DTSTART"):
        start = f"DTSTART;TZID={time_zone}:{_ANCHOR:%Y%m%dT%H%M%S}"
        text = f"{start} RRULE:{text.removeprefix('RRULE:')}"
    if not timedelta() < duration <= _LONGEST_WINDOW:
        raise ValueError("a window lasts longer than 0 seconds and at most 366 days")
    return TimeWindow(parse_recurrence(text), duration)


@dataclass(frozen=True, slots=True)
class ReadingTimes:
    """When a capture may read: in one of the active windows, if any, and in no pause."""

    active: tuple[TimeWindow, ...] = ()
    maintenance: tuple[TimeWindow, ...] = ()

    def waits_until(self, now: datetime) -> datetime | None:
        """When it may read again; `now` or earlier: it may. None: never again.

        Windows may touch and overlap, so it looks from edge to edge.
        """
        moment = now
        for _ in range(_MOST_EDGES):
            pauses = [window.closes_at(moment) for window in self.maintenance]
            ends = [end for end in pauses if end is not None]
            if ends:
                moment = max(ends)
                continue
            if not self.active or any(window.closes_at(moment) for window in self.active):
                return moment
            opens = [window.opens_after(moment) for window in self.active]
            following = [start for start in opens if start is not None]
            if not following:
                return None
            moment = min(following)
        # Pauses that cover each window of so many: as good as never.
        return None


@dataclass(frozen=True, slots=True)
class EitherSchedule:
    """The moments of several schedules."""

    schedules: tuple[Cron | Recurrence, ...]

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment of any of them after another one, in UTC; None if all have ended."""
        found = [schedule.next_after(moment) for schedule in self.schedules]
        return min((one for one in found if one is not None), default=None)


#: A moment of the past: what never happened is due.
AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_recurrence(text: str) -> bool:
    """Whether a text is meant as a rule and not as a cron line."""
    return re.match(r"\s*(DTSTART|RRULE|[A-Z]+=)", text) is not None


def parse_recurrence(text: str) -> Recurrence:
    """The schedule of a rule; raises ValueError with a message for its author."""
    if len(text) > _LONGEST:
        raise ValueError("the rule is too long")
    lines = text.split()
    start = _ANCHOR
    if lines and lines[0].startswith("DTSTART"):
        start = _start(lines.pop(0))
    if len(lines) != 1:
        raise ValueError(
            f"{shown(text)} is not a rule: write one `RRULE:` after one `DTSTART` at most"
        )
    rule = lines[0].removeprefix("RRULE:")
    parts = _parts(rule)
    _check(parts, has_start=start is not _ANCHOR)
    _check_days(parts)
    recurrence = Recurrence(" ".join(text.split()), rule, start)
    try:
        first = recurrence.next_after(start - timedelta(minutes=1))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{shown(rule)} is not a rule: {error}") from None
    if first is None:
        raise _never(rule)
    return recurrence


def _start(line: str) -> datetime:
    match = _START.fullmatch(line)
    if match is None or (match[1] and match[3]):
        raise ValueError(
            f"{shown(line)} is not a start: write `DTSTART;TZID=Europe/Berlin:20260101T023000`"
        )
    zone: tzinfo = UTC
    if match[1]:
        zone = time_zone(match[1])
    return datetime.strptime(match[2], "%Y%m%dT%H%M%S").replace(tzinfo=zone)


def _parts(rule: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in rule.rstrip(";").split(";")]
    return {name: value for name, _, value in pairs}


def _check(parts: dict[str, str], *, has_start: bool) -> None:
    unknown = sorted(set(parts) - _PARTS)
    if unknown:
        raise ValueError(f"a rule of a schedule cannot have {shown(unknown[0])}")
    if parts.get("FREQ") not in _FREQUENCIES:
        raise ValueError(f"a rule needs a `FREQ`: one of {', '.join(sorted(_FREQUENCIES))}")
    for name in ("INTERVAL", "COUNT"):
        number = parts.get(name, "1")
        if not (number.isascii() and number.isdigit() and 0 < int(number) <= 100_000):
            raise ValueError(f"{shown(number)} is not a valid `{name}`: it is 1 to 100,000")
    if "COUNT" in parts and not has_start:
        raise ValueError("`COUNT` needs a `DTSTART` to count from")
    if "BYSETPOS" in parts and parts["FREQ"] in _PERIODS:
        raise ValueError("`BYSETPOS` is for `MONTHLY` and `YEARLY`")


def _check_days(parts: dict[str, str]) -> None:
    """Refuse days that no month has: the search for them would run until the year 9999."""
    days = [int(day) for day in re.findall(r"\d{1,4}", parts.get("BYMONTHDAY", ""))]
    months = [int(month) for month in re.findall(r"\d{1,4}", parts.get("BYMONTH", ""))]
    longest = max((_DAYS_OF_MONTHS[month - 1] for month in months if 1 <= month <= 12), default=31)
    if days and min(days) > longest:
        raise _never(f"BYMONTH={parts.get('BYMONTH', '')};BYMONTHDAY={parts['BYMONTHDAY']}")


def _never(rule: str) -> ValueError:
    return ValueError(f"{shown(rule)} never comes")


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
_DAY_NAMES: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
#: Name, least, most, and words for the numbers from the least on.
_FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day of the month", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAY_NAMES),
)
_PART: Final = re.compile(r"(\*|[a-z0-9]+(?:-[a-z0-9]+)?)(?:/(\d{1,4}))?")
#: Between two 29ths of February on the same day of the week there are at most forty years.
_HORIZON: Final = timedelta(days=366 * 40)
_FIX: Final = (
    "write five fields, minute, hour, day, month, day of the week: `30 2 * * *`; or a rule: "
    "`FREQ=DAILY;BYHOUR=2;BYMINUTE=30`"
)


@dataclass(frozen=True, slots=True)
class Cron:
    """Recurring moments in UTC."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """If day of the month and day of the week are both restricted, one of them suffices."""

    def __str__(self) -> str:
        return self.text

    def next_after(self, moment: datetime) -> datetime:
        """The first moment of the schedule after another one, both with their offset.

        Raises ValueError if there is none in forty years, which `parse_cron` refuses.
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
        raise ValueError(f"{shown(self.text)} never comes")

    def _is_day(self, moment: datetime) -> bool:
        in_month = moment.day in self.days
        in_week = moment.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


def parse_cron(text: str) -> Cron:
    """The schedule of a cron line; raises ValueError with a message for its author."""
    written = text.strip()
    fields = _SHORT.get(written.lower(), written).lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"{shown(text)} is not a schedule")
    sets = [_values(field, *facts) for field, facts in zip(fields, _FIELDS, strict=True)]
    weekdays = frozenset(day % 7 for day in sets[4])
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    cron = Cron(written, sets[0], sets[1], sets[2], sets[3], weekdays, either)
    cron.next_after(datetime(2000, 1, 1, tzinfo=UTC))
    return cron


def _values(field: str, name: str, least: int, most: int, words: list[str]) -> frozenset[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is not a valid {name} of a schedule")
        span, step = match[1], int(match[2] or 1)
        if span == "*":
            begin, end = least, most
        else:
            first, _, last = span.partition("-")
            begin = _number(first, name, least, most, words)
            end = _number(last, name, least, most, words) if last else (most if match[2] else begin)
        if step < 1 or begin > end:
            raise ValueError(f"{shown(part)} is not a valid {name} of a schedule")
        numbers.update(range(begin, end + 1, step))
    return frozenset(numbers)


def _number(text: str, name: str, least: int, most: int, words: list[str]) -> int:
    number = words.index(text) + least if text in words else int(text) if text.isdigit() else -1
    if not least <= number <= most:
        raise ValueError(f"{shown(text)} is not a valid {name}: it is {least} to {most}")
    return number


@dataclass(frozen=True, slots=True)
class ZonedCron:
    """A cron line on the clock of a time zone, with the rules of Debian's cron (`cronsim`).

    A moment that the clock skips in spring comes right after the gap, and one that comes twice in
    autumn comes once. A line that names each hour or minute follows real time instead.
    """

    cron: Cron
    zone: ZoneInfo

    def __str__(self) -> str:
        return self.cron.text

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment of the schedule after another one, in UTC."""
        fields = _SHORT.get(self.cron.text.lower(), self.cron.text)
        following = next(CronSim(fields, moment.astimezone(self.zone)), None)
        return None if following is None else following.astimezone(UTC)


def on_clock(schedule: Cron | Recurrence, zone: str) -> ZonedCron | Recurrence:
    """A schedule on the clock of a zone; a rule whose `DTSTART` has a zone keeps that one.

    Raises ValueError when the machine does not know the zone.
    """
    known = time_zone(zone)
    if isinstance(schedule, Cron):
        return ZonedCron(schedule, known)
    if schedule.start is not _ANCHOR:
        return schedule
    return parse_recurrence(
        f"DTSTART;TZID={zone}:{_ANCHOR:%Y%m%dT%H%M%S} RRULE:{schedule.rule.removeprefix('RRULE:')}"
    )


def time_zone(name: str) -> ZoneInfo:
    """The zone of a name such as `Europe/Berlin`; raises ValueError when it is unknown."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError(f"this machine knows no time zone {shown(name)}") from None


#: Anything that has moments.
Schedules: TypeAlias = Cron | Recurrence | EitherSchedule


def parse_schedule(text: str) -> Cron | Recurrence:
    """The schedule of a cron line or of a rule; raises ValueError with a message for its author."""
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
    Parsed(_schedule),
    WithJsonSchema(
        {"type": "string", "examples": ["30 2 * * *", "@hourly", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=2"]}
    ),
]


def _zone_name(value: object) -> str:
    try:
        time_zone(str(value))
    except ValueError as error:
        fix = "write a name of the IANA database: `Europe/Berlin`, `UTC`"
        raise PydanticCustomError(
            "polynya_value", "{message}", {"message": str(error), "fix": fix}
        ) from None
    return str(value)


TimeZone: TypeAlias = Annotated[
    str,
    BeforeValidator(_zone_name),
    WithJsonSchema({"type": "string", "examples": ["Europe/Berlin", "UTC"]}),
]
