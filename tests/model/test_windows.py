"""Windows in which a capture may read, over the changes of clocks; schedules likewise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from polynya.model.config.schedule import (
    ReadingTimes,
    TimeWindow,
    parse_recurrence,
    parse_schedule,
    parse_window,
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def nightly(hour: int = 22, minute: int = 0, hours: float = 8) -> TimeWindow:
    rule = f"FREQ=DAILY;BYHOUR={hour};BYMINUTE={minute}"
    return parse_window(rule, timedelta(hours=hours), "Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "closes"),
    [
        ("2026-01-10 20:59:59", None),
        ("2026-01-10 21:00", "2026-01-11 05:00"),
        ("2026-01-11 04:59:59", "2026-01-11 05:00"),
        ("2026-01-11 05:00", None),
        # In summer 22:00 is 20:00 UTC.
        ("2026-07-10 20:00", "2026-07-11 04:00"),
        # The night of a change lasts as long as others: the clock shows 07:00 then, or 05:00.
        ("2026-03-28 21:00", "2026-03-29 05:00"),
        ("2026-10-24 20:00", "2026-10-25 04:00"),
    ],
)
def test_a_window_opens_by_the_clock_and_lasts_in_real_time(now: str, closes: str | None) -> None:
    assert nightly().closes_at(utc(now)) == (None if closes is None else utc(closes))


def test_a_start_that_the_clock_skips_is_an_hour_later_by_the_clock() -> None:
    window = nightly(2, 30, hours=1)

    assert window.opens_after(utc("2026-03-28 23:00")) == utc("2026-03-29 01:30")
    assert window.opens_after(utc("2026-03-29 01:10")) == utc("2026-03-29 01:30")
    assert window.opens_after(utc("2026-03-29 01:30")) == utc("2026-03-30 00:30")


def test_of_a_start_that_comes_twice_the_first_counts() -> None:
    window = nightly(2, 30, hours=1)

    assert window.opens_after(utc("2026-10-24 23:00")) == utc("2026-10-25 00:30")
    # The clock shows 02:10 again, and 02:30 is over.
    assert window.opens_after(utc("2026-10-25 01:10")) == utc("2026-10-26 01:30")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_each_moment_of_a_rule_comes_once_and_later_than_the_one_before(zone: str) -> None:
    for minute in (0, 15, 45):
        rule = parse_recurrence(
            f"DTSTART;TZID={zone}:20260101T000000 RRULE:FREQ=HOURLY;BYMINUTE={minute}"
        )
        moment = utc("2026-03-01 00:00")
        while moment < utc("2026-12-01 00:00"):
            following = rule.next_after(moment)
            assert following is not None
            assert timedelta() < following - moment <= timedelta(hours=2)
            moment = max(following, moment + timedelta(hours=7))


def test_pauses_win_over_windows_and_windows_that_touch_are_one() -> None:
    times = ReadingTimes(
        (nightly(22, 0, 2), nightly(0, 0, 2)),
        (parse_window("FREQ=DAILY;BYHOUR=21;BYMINUTE=30", timedelta(hours=1)),),
    )

    assert times.waits_until(utc("2026-01-10 21:00")) == utc("2026-01-10 21:00")
    assert times.waits_until(utc("2026-01-10 21:30")) == utc("2026-01-10 22:30")
    assert times.waits_until(utc("2026-01-10 23:30")) == utc("2026-01-10 23:30")
    assert times.waits_until(utc("2026-01-11 01:00")) == utc("2026-01-11 21:00")
    assert ReadingTimes().waits_until(utc("2026-01-11 01:00")) == utc("2026-01-11 01:00")


def test_windows_that_are_over_never_open_again() -> None:
    over = parse_window("FREQ=DAILY;UNTIL=20200101T000000Z", timedelta(hours=1))

    assert ReadingTimes((over,)).waits_until(utc("2026-01-11 01:00")) is None


def test_a_pause_that_covers_every_window_leaves_no_time_to_read() -> None:
    pause = parse_window("FREQ=DAILY", timedelta(days=2))

    assert ReadingTimes((nightly(),), (pause,)).waits_until(utc("2026-01-11 01:00")) is None


@pytest.mark.parametrize(
    ("rule", "hours", "zone", "says"),
    [
        ("FREQ=DAILY", 0, "UTC", "longer than 0 seconds"),
        ("FREQ=DAILY", 24 * 400, "UTC", "at most 366 days"),
        ("FREQ=DAILY", 1, "Mars/Base", "no time zone"),
        ("FREQ=SECONDLY", 1, "UTC", "needs a `FREQ`"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=DAILY", 1, "Europe/Berlin", "remove `time_zone`"),
    ],
)
def test_a_wrong_window_says_what_is_wrong(rule: str, hours: int, zone: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_window(rule, timedelta(hours=hours), zone)


def test_a_schedule_in_utc_knows_no_change_of_clocks() -> None:
    schedule = parse_schedule("30 2 * * *")

    assert schedule.next_after(utc("2026-03-29 00:00")) == utc("2026-03-29 02:30")
