"""How long threads have worked, also those that still do."""

from __future__ import annotations

from datetime import timedelta

from polynya.engine.scheduler import BusyMeter
from polynya.testing.fakes import FakeClock


def test_two_threads_work_two_seconds_in_one_and_an_idle_one_none() -> None:
    clock = FakeClock()
    meter = BusyMeter(clock)

    def after(seconds: float) -> float:
        clock.advance(timedelta(seconds=seconds))
        return round(meter.seconds(), 6)

    assert after(5) == 0
    meter.begin()
    assert after(2) == 2
    meter.begin()
    assert after(3) == 8
    meter.end()
    assert after(1) == 9
    meter.end()
    assert after(60) == 9
