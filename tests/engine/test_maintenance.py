"""Maintenance beside copies and applies, on real tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.engine import maintenance_choice as choosing
from polynya.engine.dataset import WorkingDataset
from polynya.engine.maintenance import (
    EXAMINATION_INTERVAL_SECONDS,
    MaintenanceUnit,
    YieldDelay,
    maintain,
)
from polynya.engine.maintenance_choice import cost_of_seconds, review_actions
from polynya.engine.runner import run_once, units
from polynya.engine.unit import IDLE, TimeSlice
from polynya.lake.maintenance import actions
from polynya.lake.maintenance.health import PROPERTY, MaintenanceRecord
from polynya.model.headers import Partition
from polynya.observe.events import Event
from polynya.observe.maintenance import MaintenanceDone, MaintenanceFailed, TableHealth
from polynya.testing.fakes import FakeClock
from tests.lab.kept import Kept
from tests.lab.lab import Feed, Lab, put

ROWS = [(key, f"n{key}") for key in range(10)]


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    """A table of ten files, each of one apply."""
    users = module_lab.feed(history=False)
    for key, name in ROWS:
        users.apply(put(key, key + 1, name=name))
    # The snapshot that each test begins with never expires.
    module_lab.spark.sql(f"ALTER TABLE {users.relation} CREATE TAG kept")
    return Kept(users)


@pytest.fixture
def fed(kept: Kept) -> Feed:
    """The table as it was, most of a day later by the clock of the next run."""
    users = kept.again()
    users.lab.clock = FakeClock(datetime.now(UTC) + timedelta(hours=20))
    users.lab.spark.sql(f"ALTER TABLE {users.relation} UNSET TBLPROPERTIES ('{PROPERTY}')")
    return users


def told(users: Feed, kind: type[Event]) -> list[Any]:
    return [event for event in users.lab.events if isinstance(event, kind)]


def record(users: Feed) -> MaintenanceRecord:
    return MaintenanceRecord.of(dict(users.table().table.java.properties()))


def test_a_run_that_ends_takes_one_action_and_results_stay(fed: Feed) -> None:
    context = fed.lab.context()

    assert not run_once(context, units(context, [fed.task])).failures
    (done,) = told(fed, MaintenanceDone)
    assert done.action == "rewrite_data_files"
    assert done.reason.startswith("9 small files fewer to open: saves ")
    assert (done.files_removed, done.files_added) == (10, 1)
    assert done.gain_bytes == done.expected_gain_bytes > 0
    assert record(fed).last["rewrite_data_files"].files_removed == 10
    table = fed.table()
    assert len(table.table.files(Partition.CURRENT, table.state.snapshot)) == 1
    assert fed.current("id", "name") == ROWS


def test_continuous_run_takes_actions_until_none_pays(fed: Feed) -> None:
    table = WorkingDataset.existing(fed.lab.context(), fed.dataset)
    beside = MaintenanceUnit(fed.dataset)
    turn = TimeSlice(at_once=False)
    while beside.request_if_due(table, IDLE).ready_units:
        beside.unit.step(turn)

    assert [one.action for one in told(fed, MaintenanceDone)] == [
        "rewrite_data_files",
        "expire_snapshots",
    ]
    assert all(one.gain_bytes == one.expected_gain_bytes > 0 for one in told(fed, MaintenanceDone))
    assert fed.current("id", "name") == ROWS
    looks = len(told(fed, TableHealth))
    fed.lab.clock.sleep(10 * EXAMINATION_INTERVAL_SECONDS)
    # Nothing changed and nothing expires: the table costs nothing.
    assert beside.request_if_due(table, IDLE) is IDLE
    assert len(told(fed, TableHealth)) == looks


def test_submitted_run_takes_paying_actions_within_its_time(
    fed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "CHEAP_BYTES", 0)
    context = fed.lab.context(maintenance_seconds=600.0)

    assert not run_once(context, units(context, [fed.task])).failures
    done = told(fed, MaintenanceDone)
    assert done[0].action == "rewrite_data_files"
    assert all(one.whole for one in done)
    # After each action it looked for another one, until none paid.
    assert len(told(fed, TableHealth)) == len(done) + 1
    assert fed.current("id", "name") == ROWS


@pytest.mark.parametrize("seconds", [None, 0.0], ids=["a person waits", "its time is over"])
def test_no_large_action_begins_without_time_for_it(
    fed: Feed, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    monkeypatch.setattr(choosing, "CHEAP_BYTES", 0)
    context = fed.lab.context(maintenance_seconds=seconds)

    assert not run_once(context, units(context, [fed.task])).failures

    assert told(fed, MaintenanceDone) == []


def test_maintenance_gives_way_before_anything_is_written(fed: Feed) -> None:
    table = WorkingDataset.existing(fed.lab.context(), fed.dataset)
    beside = MaintenanceUnit(fed.dataset)
    beside.request_if_due(table, IDLE)
    beside.unit.step(TimeSlice(at_once=False, is_wanted=lambda: True))

    (done,) = told(fed, MaintenanceDone)
    assert not done.whole
    assert done.written_bytes == 0
    assert "gave way" in done.ended


def test_maintenance_that_gave_way_works_for_a_while_next_time(fed: Feed) -> None:
    table = WorkingDataset.existing(fed.lab.context(), fed.dataset)
    beside = MaintenanceUnit(fed.dataset)
    for _ in range(2):
        beside.request_if_due(table, IDLE)
        beside.unit.step(TimeSlice(at_once=False, is_wanted=lambda: True))
        fed.lab.clock.sleep(61)

    assert [one.whole for one in told(fed, MaintenanceDone)] == [False, True]
    assert fed.current("id", "name") == ROWS


def test_delay_grows_while_others_always_wait_and_ends_with_the_work() -> None:
    delay, seconds = YieldDelay(), []
    for whole in (False, False, False, False, False, False, True):
        delay.action_ended(whole=whole)
        seconds.append(delay.seconds)

    assert seconds == [1, 2, 4, 8, 16, 16, 0]


def test_disabled_maintenance_does_not_examine_the_table(fed: Feed) -> None:
    fed.configure(maintenance={"enabled": False})
    context = fed.lab.context()
    run_once(context, units(context, [fed.task]))

    assert told(fed, TableHealth) == []
    assert told(fed, MaintenanceDone) == []

    # Who asks for it by hand gets it.
    taken = list(maintain(context, fed.dataset, ()))
    assert taken[0].verdict.action == "rewrite_data_files"
    # What it cost stands beside what was expected, here and in the table.
    done = taken[0].done
    assert done.cost == cost_of_seconds(taken[0].outcome.seconds) > 0 < done.expected_cost
    assert review_actions(record(fed))[-1].cost == done.cost
    assert fed.current("id", "name") == ROWS
    (one,) = maintain(context, fed.dataset, ("remove_orphan_files",))
    assert one.verdict.reason == "requested"
    assert one.outcome.files_removed == 0


def test_maintenance_that_fails_stops_no_data(fed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_call: actions.Call) -> Any:
        raise OSError("the disk is full")

    broken = {**actions.BUILT, "rewrite_data_files": fail}
    monkeypatch.setattr("polynya.engine.maintenance.BUILT", broken)
    fed.land(put(11, 11, name="late"))
    context = fed.lab.context()
    outcome = run_once(context, units(context, [fed.task]))

    assert not outcome.failures
    (failed,) = told(fed, MaintenanceFailed)
    assert failed.action == "rewrite_data_files"
    assert (11, "late") in fed.current("id", "name")
