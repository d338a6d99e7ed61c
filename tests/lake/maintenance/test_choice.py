"""What expires, decided without a table."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.lake.maintenance.snapshots import ExpiryChoice, Keep, choose
from polynya.lake.warehouse.readers import CLOCK_SKEW, RunningReader

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ago(hours: float) -> datetime:
    return NOW - hours * HOUR


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def metadata(*hours: float, **more: Any) -> dict[str, Any]:
    """A table whose snapshots 1, 2, … were made so many hours ago."""
    times = [ms(ago(one)) for one in hours]
    snapshots = [
        {"snapshot-id": number, "timestamp-ms": time}
        | ({"parent-snapshot-id": number - 1} if number > 1 else {})
        for number, time in enumerate(times, 1)
    ]
    log = [
        {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]}
        for one in snapshots
    ]
    return {
        "current-snapshot-id": len(times),
        "snapshots": snapshots,
        "snapshot-log": log,
        "refs": {"main": {"snapshot-id": len(times), "type": "branch"}},
    } | more


def stays(choice: ExpiryChoice, table: dict[str, Any]) -> list[int]:
    """Snapshots that Iceberg keeps when it is asked for the choice."""
    if not choice.expired:
        return [one["snapshot-id"] for one in table["snapshots"]]
    ordered = sorted(table["snapshots"], key=lambda one: -one["snapshot-id"])
    kept = []
    for place, one in enumerate(ordered):
        if place >= choice.newest and one["timestamp-ms"] < choice.older_than_ms:
            break
        kept.append(one["snapshot-id"])
    return sorted(kept)


def test_old_snapshots_beyond_the_newest_expire() -> None:
    table = metadata(9, 8, 7, 6, 1)

    choice = choose(table, Keep(2 * HOUR, 2), now=NOW)

    assert stays(choice, table) == [4, 5]
    assert choice.expired == 3
    assert choice.why == (
        "3 of 5 snapshots were followed by another before 2026-06-01 10:00 UTC and are not among "
        "the newest 2"
    )


def test_the_age_counts_from_when_another_snapshot_followed() -> None:
    """A week without a commit, then many at once: a query of a minute ago reads the old one."""
    table = metadata(170, 169, *(0.01 - 0.0005 * number for number in range(15)))

    assert stays(choose(table, Keep(2 * HOUR, 10), now=NOW), table)[0] == 2


@pytest.mark.parametrize("seed", range(50))
def test_what_was_current_within_the_age_stays(seed: int) -> None:
    chance = random.Random(seed)
    hours = sorted((chance.uniform(0, 6) for _ in range(chance.randint(1, 30))), reverse=True)
    table, keep = metadata(*hours), Keep(chance.uniform(0.5, 3) * HOUR, chance.randint(1, 12))

    kept = stays(choose(table, keep, now=NOW), table)

    newest = len(hours)
    begin = ago(keep.age / HOUR)
    read = {
        number for number in range(1, newest + 1) if number == newest or ago(hours[number]) >= begin
    }
    wanted = read | set(range(max(1, newest - keep.at_least + 1), newest + 1))
    assert kept == sorted(wanted)


def test_of_very_many_only_the_newest_stay_for_all_of_their_age() -> None:
    """A commit every two minutes; the first three are older than the age."""
    table = metadata(*(2.1 - number / 30 for number in range(63)))

    choice = choose(table, Keep(2 * HOUR, 10, at_most=40), now=NOW)

    assert stays(choice, table) == list(range(24, 64))
    assert choice.why == (
        "23 of 63 snapshots were followed by another before 2026-06-01 11:30 UTC and are not among "
        "the newest 40"
    )


def test_what_was_current_within_half_an_hour_stays_however_many_there_are() -> None:
    hours = [0.6 - number / 60 for number in range(36)]
    table = metadata(*hours)

    kept = stays(choose(table, Keep(2 * HOUR, 1, at_most=3), now=NOW), table)

    assert len(kept) == 31
    assert kept == [one for one in range(1, 37) if one == 36 or hours[one] <= 0.5 + 1e-9]
    short = stays(choose(table, Keep(HOUR / 10, 1, at_most=3), now=NOW), table)
    assert short == [one for one in range(1, 37) if one == 36 or hours[one] <= 0.1 + 1e-9]


def test_a_reader_holds_more_than_that() -> None:
    table = metadata(*(1.9 - number / 30 for number in range(57)))
    keep = Keep(2 * HOUR, 1, at_most=20)

    kept = stays(choose(table, keep, now=NOW, readers=[RunningReader(ago(1.5), NOW + HOUR)]), table)

    assert len(kept) > 45 > len(stays(choose(table, keep, now=NOW), table))


def test_a_snapshot_that_is_worked_on_stays_with_all_that_came_later() -> None:
    table = metadata(9, 8, 7, 6, 5, 1)

    assert stays(choose(table, Keep(2 * HOUR, 1), now=NOW, held={3}), table) == [3, 4, 5, 6]


def test_what_a_reader_may_see_stays() -> None:
    table = metadata(9, 8, 7, 6, 5, 1)
    reader = RunningReader(ago(6.5), NOW + HOUR)

    kept = stays(choose(table, Keep(2 * HOUR, 1), now=NOW, readers=[reader]), table)

    assert kept == [3, 4, 5, 6]


def test_a_clock_of_a_reader_may_be_fast() -> None:
    table = metadata(9, 8, 7, 1)
    reader = RunningReader(ago(7) + CLOCK_SKEW / 2, NOW + HOUR)

    assert 2 in stays(choose(table, Keep(2 * HOUR, 1), now=NOW, readers=[reader]), table)


def test_a_reader_of_the_past_holds_everything() -> None:
    table = metadata(9, 8, 7, 1)

    choice = choose(table, Keep(2 * HOUR, 1), now=NOW, readers=[RunningReader(None, NOW + HOUR)])

    assert choice == ExpiryChoice("a reader may read any snapshot of the past")


def test_a_rollback_counts_as_a_snapshot_that_followed() -> None:
    """Snapshot 3 was current until the table was rolled back to 2 a minute ago."""
    table = metadata(9, 8, 7)
    table["current-snapshot-id"] = table["refs"]["main"]["snapshot-id"] = 2
    table["snapshot-log"].append({"snapshot-id": 2, "timestamp-ms": ms(ago(0.01))})

    choice = choose(table, Keep(2 * HOUR, 1), now=NOW)

    assert not choice.expired or choice.older_than_ms <= ms(ago(7))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"properties": {"gc.enabled": "false"}}, "`gc.enabled`"),
        (
            {"refs": {"main": {"snapshot-id": 4, "type": "branch", "min-snapshots-to-keep": 3}}},
            "its own retention",
        ),
    ],
)
def test_what_somebody_has_ruled_is_left_to_them(more: dict[str, Any], why: str) -> None:
    choice = choose(metadata(9, 8, 7, 6) | more, Keep(2 * HOUR, 1), now=NOW)

    assert not choice.expired
    assert why in choice.why


@pytest.mark.parametrize(
    ("hours", "why"),
    [
        ((), "there is no snapshot"),
        ((9, 8), "there are 2 snapshots, and 3 always stay"),
        ((1.5, 1.4, 1.3, 1.2), "no snapshot is older than 2:00:00 and free"),
    ],
)
def test_why_nothing_expires(hours: tuple[float, ...], why: str) -> None:
    assert choose(metadata(*hours), Keep(2 * HOUR, 3), now=NOW).why == why
