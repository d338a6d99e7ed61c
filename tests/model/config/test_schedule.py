"""Lines of cron: the next moment, as cron means it, and what is no schedule."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from polynya.model.config.schedule import parse_cron

NOON = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-03-31T12:01"),
        ("30 2 * * *", "2026-04-01T02:30"),
        ("*/15 * * * *", "2026-03-31T12:15"),
        ("5/20 * * * *", "2026-03-31T12:05"),
        ("0 0 31 * *", "2026-05-31T00:00"),
        ("0 9-17/4 * * mon-fri", "2026-03-31T13:00"),
        ("0 12 * * 7", "2026-04-05T12:00"),
        ("0 12 * * 0", "2026-04-05T12:00"),
        ("0 0 29 feb *", "2028-02-29T00:00"),
        ("0 0 1,15 * *", "2026-04-01T00:00"),
        ("@hourly", "2026-03-31T13:00"),
        ("@monthly", "2026-04-01T00:00"),
        # A day of the month and, as `*/9` restricts it, a Sunday.
        ("36 23 30 oct */9", "2033-10-30T23:36"),
        ("0 0 29 feb */7", "2032-02-29T00:00"),
    ],
)
def test_the_next_moment(text, expected):
    assert parse_cron(text).next_after(NOON).isoformat(timespec="minutes") == f"{expected}+00:00"


def test_a_day_of_the_month_or_of_the_week_suffices_when_both_are_named():
    cron = parse_cron("0 0 13 * fri")

    assert cron.next_after(NOON).day == 3  # Friday, 3 April
    assert cron.next_after(datetime(2026, 4, 10, 1, tzinfo=UTC)).day == 13


def test_the_moment_itself_is_over_and_zones_are_converted():
    here = timezone(timedelta(hours=2))
    moment = datetime(2026, 3, 31, 14, 0, 0, tzinfo=here)

    assert parse_cron("0 12 * * *").next_after(moment) == NOON + timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("every day", "`every day` is not a schedule"),
        ("60 * * * *", "`60` is not a valid minute: it is 0 to 59"),
        ("* * * foo *", "`foo` is not a valid month: it is 1 to 12"),
        ("5-1 * * * *", "`5-1` is not a valid minute of a schedule"),
        ("*/0 * * * *", "`*/0` is not a valid minute of a schedule"),
        ("1,,2 * * * *", "is not a valid minute of a schedule"),
        ("0 0 30 2 *", "`0 0 30 2 *` never comes"),
    ],
)
def test_what_is_no_schedule_says_why(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_cron(text)
