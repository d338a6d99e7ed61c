"""Latencies: what an event tells of each part, and percentiles over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.observe.events import Event
from polynya.observe.latency import (
    BUCKET,
    DatasetBacklog,
    LatencyMeter,
    LatencySample,
    bucket_of,
    latency_series,
    nearest_rank,
    samples_of_task,
)

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def copied(seconds: float, *, waited: float | None = None, age: float | None = None) -> BatchCopied:
    return BatchCopied(
        subject="shop.users", rows_in=10, rows_out=10, rows_filtered=0, rows_quarantined=0,
        files=1, seconds=seconds, waited_seconds=waited, event_age_seconds=age,
    )  # fmt: skip


APPLIED = DatasetApplied(subject="shop.users", reason="cost", seconds=1.0, rows={})


def measured(*events: tuple[float, Event]) -> list[LatencySample]:
    """The samples of events at minutes after noon."""
    meter = LatencyMeter()
    for minute, event in events:
        meter = meter.after(event, NOON + minute * MINUTE, "users")
    samples, left = meter.taken(NOON + timedelta(days=1))
    assert left.samples == {}
    return samples


def test_the_age_of_an_event_is_split_into_source_landing_and_copy() -> None:
    [one] = measured((1, copied(2.0, waited=5.0, age=60.0)))

    assert (one.source, one.landing, one.copy, one.total) == (55.0, 3.0, 2.0, 60.0)
    assert (one.at, one.task, one.batches, one.rows) == (NOON, "users", 1, 10)


def test_without_a_time_of_the_source_the_way_begins_with_the_file() -> None:
    [one] = measured((1, copied(2.0, waited=5.0)))

    assert (one.source, one.landing, one.copy, one.total) == (None, 3.0, 2.0, 5.0)


def test_a_clock_of_the_source_that_is_ahead_makes_nothing_negative() -> None:
    [one] = measured((1, copied(2.0, waited=1.0, age=-30.0)))

    assert (one.source, one.landing, one.total) == (0.0, 0.0, 0.0)


def test_a_bucket_keeps_the_worst_of_its_batches() -> None:
    first, second = measured((1, copied(2.0, age=9.0)), (4, copied(7.0)), (5, copied(1.0)))

    assert (first.copy, first.total, first.batches, first.rows) == (7.0, 9.0, 2, 20)
    assert (second.at, second.copy) == (NOON + BUCKET, 1.0)


def test_an_apply_took_as_long_as_its_oldest_copy_waited() -> None:
    samples = measured((1, copied(1.0)), (3, copied(1.0)), (11, APPLIED), (12, APPLIED))

    assert [one.apply for one in samples] == [None, 600.0]


def test_buckets_that_are_not_over_are_left() -> None:
    meter = LatencyMeter().after(copied(1.0), NOON + MINUTE, "users")

    assert meter.taken(NOON + BUCKET - MINUTE)[0] == []
    assert len(meter.taken(NOON + BUCKET)[0]) == 1


def sample(minutes: float, total: float, dataset: str = "shop.users") -> LatencySample:
    return LatencySample(NOON - minutes * MINUTE, "users", dataset, 1, 10, total=total)


def test_a_series_has_a_step_for_each_time_and_dataset_with_samples() -> None:
    samples = [sample(55, 1.0), sample(50, 3.0), sample(5, 2.0), sample(5, 9.0, "shop.orders"),
               sample(90, 7.0)]  # fmt: skip

    found = latency_series(
        samples, now=NOON, window=60 * MINUTE, step=30 * MINUTE, percentiles=(50, 100)
    )

    assert [(one.dataset, one.at, one.samples, one.percentiles) for one in found] == [
        ("shop.orders", NOON - 30 * MINUTE, 1, {"total": {50: 9.0, 100: 9.0}}),
        ("shop.users", NOON - 60 * MINUTE, 2, {"total": {50: 1.0, 100: 3.0}}),
        ("shop.users", NOON - 30 * MINUTE, 1, {"total": {50: 2.0, 100: 2.0}}),
    ]


@pytest.mark.parametrize(
    ("window", "step", "percent"), [(60, 1, 50), (5, 10, 50), (60, 5, 0), (60, 5, 101)]
)
def test_a_series_that_means_nothing_is_refused(window: int, step: int, percent: int) -> None:
    with pytest.raises(ValueError, match=r"percentile|step"):
        latency_series(
            [], now=NOON, window=window * MINUTE, step=step * MINUTE, percentiles=(percent,)
        )


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(
    values: list[float], percent: int
) -> None:
    values.sort()
    found = nearest_rank(values, percent)

    assert found in values
    assert sum(one <= found for one in values) * 100 >= percent * len(values)
    assert sum(one < found for one in values) * 100 < percent * len(values)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_a_bucket_begins_at_most_five_minutes_before_its_moments(at: datetime) -> None:
    moment = at.replace(tzinfo=UTC)

    assert timedelta(0) <= moment - bucket_of(moment) < BUCKET
    assert bucket_of(bucket_of(moment)) == bucket_of(moment)


WAITING = DatasetBacklog(size_bytes=500, seconds=20.0, pending_rows=7)


def looked(meter: LatencyMeter, backlog: DatasetBacklog, minute: float) -> LatencyMeter:
    return meter.with_backlog({"shop.users": backlog}, NOON + minute * MINUTE, lambda _: "users")


def test_the_most_that_waited_in_a_bucket_is_kept_also_without_a_copy() -> None:
    meter = looked(looked(LatencyMeter(), WAITING, 1), DatasetBacklog(pending_rows=9), 2)

    [one] = meter.taken(NOON + timedelta(days=1))[0]
    assert (one.waiting_bytes, one.waiting_seconds, one.pending_rows) == (500, 20.0, 9)
    assert (one.batches, one.copy, one.task) == (0, None, "users")


def test_an_idle_dataset_has_no_sample_and_one_that_copied_a_backlog_of_nothing() -> None:
    copies = LatencyMeter().after(copied(1.0), NOON + MINUTE, "users")

    assert looked(LatencyMeter(), DatasetBacklog(), 1).samples == {}
    [one] = looked(copies, DatasetBacklog(), 2).samples.values()
    assert (one.waiting_bytes, one.pending_rows) == (0, 0)


def test_a_task_waits_for_all_of_its_datasets_and_is_as_slow_as_the_slowest() -> None:
    def one(dataset: str, pending: int, total: float) -> LatencySample:
        return LatencySample(NOON, "shop", dataset, 1, 10, total=total, pending_rows=pending)

    # Another node had the orders, too, in the same five minutes.
    samples = [one("shop.users", 3, 5.0), one("shop.orders", 4, 9.0), one("shop.orders", 6, 1.0)]

    [found] = samples_of_task(samples, "shop")
    assert (found.dataset, found.pending_rows, found.total) == ("shop", 9, 9.0)
    assert (found.rows, found.waiting_bytes) == (30, None)
