"""Recurrence rules of iCalendar: the next moment on the clock of its zone, and what is none."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from polynya.model.config.schedule import parse_recurrence, parse_schedule

NOON = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)  # a Tuesday
BERLIN = "DTSTART;TZID=Europe/Berlin:20251201T023000 RRULE:FREQ=DAILY"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "2026-04-01T02:30"),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=2", "2026-04-01T02:00"),
        ("FREQ=MINUTELY;INTERVAL=15", "2026-03-31T12:15"),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=22", "2026-04-24T22:00"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=23", "2026-03-31T23:00"),
        # Without a start rules count from a Monday that is the first of a year.
        ("FREQ=WEEKLY", "2026-04-06T00:00"),
        ("FREQ=YEARLY", "2027-01-01T00:00"),
        ("DTSTART:20260324T000000Z\nRRULE:FREQ=WEEKLY;INTERVAL=2", "2026-04-07T00:00"),
        ("DTSTART:20260324T060000 RRULE:FREQ=WEEKLY", "2026-04-07T06:00"),
        (BERLIN, "2026-04-01T00:30"),
    ],
)
def test_the_next_moment(text: str, expected: str) -> None:
    found = parse_recurrence(text).next_after(NOON)

    assert found is not None
    assert found.isoformat(timespec="minutes") == f"{expected}+00:00"


def test_a_zone_keeps_its_hour_in_winter() -> None:
    winter = parse_recurrence(BERLIN).next_after(datetime(2026, 1, 1, tzinfo=UTC))

    assert winter == datetime(2026, 1, 1, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["FREQ=HOURLY;UNTIL=20260331T120000Z", "DTSTART:20260330T120000Z RRULE:FREQ=DAILY;COUNT=2"],
)
def test_a_rule_may_end(text: str) -> None:
    assert parse_recurrence(text).next_after(NOON) is None


def test_a_schedule_is_either() -> None:
    assert str(parse_schedule("30 2 * * *")) == "30 2 * * *"
    assert str(parse_schedule("FREQ=DAILY\n")) == "FREQ=DAILY"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FREQ=SECONDLY", "a rule needs a `FREQ`: one of DAILY"),
        ("RRULE:INTERVAL=2", "a rule needs a `FREQ`"),
        ("FREQ=DAILY;INTERVAL=0", "`0` is not a valid `INTERVAL`: it is 1 to 100,000"),
        ("FREQ=DAILY;COUNT=3", "`COUNT` needs a `DTSTART`"),
        ("FREQ=DAILY;BYHOUR=25", "hour must be in 0..23"),
        ("FREQ=DAILY;BYHOUR=noon", "is not a rule: invalid 'BYHOUR'"),
        ("FREQ=DAILY;BYEASTER=1", "cannot have `BYEASTER`"),
        ("FREQ=MINUTELY;BYSETPOS=2", "`BYSETPOS` is for `MONTHLY` and `YEARLY`"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "`BYMONTH=2;BYMONTHDAY=30` never comes"),
        ("FREQ=HOURLY;INTERVAL=24;BYHOUR=5", "is not a rule"),
        ("DTSTART;TZID=Mars/Olympus:20260101T000000 RRULE:FREQ=DAILY", "no time zone"),
        ("DTSTART:tomorrow RRULE:FREQ=DAILY", "`DTSTART:tomorrow` is not a start"),
        ("FREQ=DAILY EXDATE:20260101T000000Z", "one `RRULE:` after one `DTSTART` at most"),
        ("FREQ=DAILY;" + "BYHOUR=1;" * 200, "too long"),
    ],
)
def test_what_is_no_rule(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_recurrence(text)
