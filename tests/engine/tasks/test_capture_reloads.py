"""When a capture that follows no changes loads everything again."""

from __future__ import annotations

from polynya.capture.wire import CaptureRequest
from polynya.engine.tasks.capture_supervisor import REQUEST_CHECK_SECONDS, ReloadSchedule
from polynya.model.config.schedule import parse_cron, parse_recurrence
from polynya.testing.fakes import FakeClock
from tests.engine.tasks.test_capture_supervisor import (
    LANDED,
    REFUSED,
    TABLES,
    FakeProcess,
    Zone,
    failed,
)


def test_a_reload_waits_for_its_moment_and_for_the_next_one():
    clock = FakeClock()
    last = clock.now().replace(hour=0, minute=10)
    zone = Zone(
        clock=clock,
        reloads=ReloadSchedule(parse_cron("30 * * * *"), lambda: last),
        coming=[FakeProcess([[LANDED]], ends=0) for _ in range(2)],
    )
    clock.sleep((last - clock.now()).total_seconds())

    clock.sleep(20 * 60 - REQUEST_CHECK_SECONDS / 2)
    assert zone.look().wait == REQUEST_CHECK_SECONDS / 2
    clock.sleep(REQUEST_CHECK_SECONDS / 2)
    assert zone.look().landed
    assert zone.modes == ["reload"]
    clock.sleep(60 * 60 - 1)
    assert zone.look().wait == 1


def test_moments_that_passed_while_nothing_ran_are_caught_up_once():
    clock = FakeClock()
    last = clock.now().replace(hour=0, minute=10)
    zone = Zone(
        clock=clock,
        reloads=ReloadSchedule(parse_cron("30 * * * *"), lambda: last),
        coming=[FakeProcess([[LANDED]], ends=0)],
    )
    clock.sleep((last - clock.now()).total_seconds() + 5 * 60 * 60)

    assert zone.look().landed
    assert zone.look().wait == REQUEST_CHECK_SECONDS
    assert zone.modes == ["reload"]


def test_after_the_last_moment_of_a_rule_only_what_is_asked_for_is_loaded():
    over = parse_recurrence("FREQ=DAILY;UNTIL=20010101T000000Z")
    zone = Zone(
        reloads=ReloadSchedule(over, lambda: zone.clock.now()),
        coming=[FakeProcess([[TABLES]], ends=0)],
    )
    assert zone.look().wait == REQUEST_CHECK_SECONDS
    zone.requests.add(CaptureRequest((), reload=True), "a")
    zone.clock.sleep(REQUEST_CHECK_SECONDS)
    zone.look()

    assert zone.modes == ["reload"]


def test_what_was_never_loaded_is_loaded_at_once():
    zone = Zone(
        reloads=ReloadSchedule(parse_cron("@daily"), lambda: None),
        coming=[FakeProcess([[LANDED]], ends=0)],
    )

    assert zone.look().landed


def test_a_reload_that_failed_is_tried_again_after_a_pause_and_not_at_the_next_moment():
    zone = Zone(
        reloads=ReloadSchedule(parse_cron("@daily"), lambda: None),
        coming=[FakeProcess([[failed(REFUSED)]], ends=4), FakeProcess([[LANDED]], ends=0)],
    )

    zone.clock.sleep(zone.look().wait)

    assert zone.look().landed


def test_a_run_that_ends_reloads_whatever_the_time_is():
    zone = Zone(
        reloads=ReloadSchedule(parse_cron("@daily"), lambda: zone.clock.now()),
        coming=[FakeProcess([[LANDED]], ends=0)],
    )

    assert zone.look(once=True).done
    assert zone.modes == ["reload"]


def test_a_reload_that_is_asked_for_does_not_wait_for_its_moment():
    zone = Zone(
        reloads=ReloadSchedule(parse_cron("@daily"), lambda: zone.clock.now()),
        coming=[FakeProcess([[TABLES]], ends=0)],
    )
    assert zone.look().wait == REQUEST_CHECK_SECONDS
    zone.requests.add(CaptureRequest((), reload=True), "a")
    zone.clock.sleep(REQUEST_CHECK_SECONDS)
    zone.look()

    assert zone.modes == ["reload"]
    assert not zone.requests.pending().requests
