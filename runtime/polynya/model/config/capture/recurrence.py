"""A schedule as a recurrence rule of iCalendar (RFC 5545): `FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=2`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from polynya.model.contract.identifiers import shown

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
#: Days of the months at most, from January on.
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Moments that come again: `next_after` gives them one by one, on the clock of their zone.

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
        """The first moment of the rule after another one, in UTC; None: it is over."""
        here = moment.astimezone(self.start.tzinfo)
        found = rrulestr(self.rule, dtstart=self._near(here)).after(here)
        return None if found is None else found.astimezone(UTC)

    def _near(self, moment: datetime) -> datetime:
        """A start that gives the same moments, not long before one."""
        parts = _parts(self.rule)
        period = _PERIODS.get(parts["FREQ"])
        if period is None or "COUNT" in parts:
            return self.start
        step = period * int(parts.get("INTERVAL", "1"))
        # Both are of one zone, so this is the time on its clock, as rules count it.
        return self.start + step * max(0, (moment - self.start) // step - 1)


def is_recurrence(text: str) -> bool:
    """Whether a text is meant as a rule and not as a line of cron."""
    return re.match(r"\s*(DTSTART|RRULE|[A-Z]+=)", text) is not None


def parse_recurrence(text: str) -> Recurrence:
    """The schedule of a rule; raises ValueError in words for who wrote it."""
    if len(text) > _LONGEST:
        raise ValueError("the rule is too long")
    lines = text.split()
    start = _ANCHOR
    if lines and lines[0].startswith("DTSTART"):
        start = _start(lines.pop(0))
    if len(lines) != 1:
        raise ValueError(
            f"{shown(text)} is no rule: it is one `RRULE:` after one `DTSTART` at most"
        )
    rule = lines[0].removeprefix("RRULE:")
    parts = _parts(rule)
    _check(parts, has_start=start is not _ANCHOR)
    _check_days(parts)
    found = Recurrence(" ".join(text.split()), rule, start)
    try:
        first = found.next_after(start - timedelta(minutes=1))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{shown(rule)} is no rule: {error}") from None
    if first is None:
        raise _never(rule)
    return found


def _start(line: str) -> datetime:
    match = _START.fullmatch(line)
    if match is None or (match[1] and match[3]):
        raise ValueError(
            f"{shown(line)} is no start: write `DTSTART;TZID=Europe/Berlin:20260101T023000`"
        )
    zone: tzinfo = UTC
    if match[1]:
        try:
            zone = ZoneInfo(match[1])
        except (ValueError, OSError, LookupError):
            raise ValueError(f"this machine knows no time zone {shown(match[1])}") from None
    return datetime.strptime(match[2], "%Y%m%dT%H%M%S").replace(tzinfo=zone)


def _parts(rule: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in rule.rstrip(";").split(";")]
    return {name: value for name, _, value in pairs}


def _check(parts: dict[str, str], *, has_start: bool) -> None:
    unknown = sorted(set(parts) - _PARTS)
    if unknown:
        raise ValueError(f"a rule of a schedule has no {shown(unknown[0])}")
    if parts.get("FREQ") not in _FREQUENCIES:
        raise ValueError(f"a rule has a `FREQ`: one of {', '.join(sorted(_FREQUENCIES))}")
    for name in ("INTERVAL", "COUNT"):
        number = parts.get(name, "1")
        if not (number.isascii() and number.isdigit() and 0 < int(number) <= 100_000):
            raise ValueError(f"{shown(number)} is no `{name}`: it is 1 to 100,000")
    if "COUNT" in parts and not has_start:
        raise ValueError("`COUNT` needs a `DTSTART` to count from")
    if "BYSETPOS" in parts and parts["FREQ"] in _PERIODS:
        raise ValueError("`BYSETPOS` is for `MONTHLY` and `YEARLY`")


def _check_days(parts: dict[str, str]) -> None:
    """Refuse days that no month has: they would be looked for until the year 9999."""
    days = [int(day) for day in re.findall(r"\d{1,4}", parts.get("BYMONTHDAY", ""))]
    months = [int(month) for month in re.findall(r"\d{1,4}", parts.get("BYMONTH", ""))]
    longest = max((_DAYS[month - 1] for month in months if 1 <= month <= 12), default=31)
    if days and min(days) > longest:
        raise _never(f"BYMONTH={parts.get('BYMONTH', '')};BYMONTHDAY={parts['BYMONTHDAY']}")


def _never(rule: str) -> ValueError:
    return ValueError(f"{shown(rule)} never comes")
