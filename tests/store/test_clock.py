"""Clocks."""

from __future__ import annotations

from datetime import UTC, timedelta

from polynya.store.clock import BootClock, SystemClock
from polynya.testing.fakes import FakeClock


def test_the_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock()
    start = clock.now()

    clock.sleep(1.5)
    clock.advance(timedelta(seconds=2))

    assert clock.now() - start == timedelta(seconds=3.5)
    assert clock.monotonic() == 3.5


def test_the_system_clock_is_utc_and_monotonic() -> None:
    clock = SystemClock()

    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


def test_the_boot_clock_has_seen_no_less_time_than_the_one_that_stops_in_a_suspend() -> None:
    clock = BootClock()

    assert clock.monotonic() <= clock.monotonic()
    assert clock.monotonic() + 1.0 >= SystemClock().monotonic()
