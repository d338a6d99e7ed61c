"""A capture beside the other units of a run: when it is over, and what ends with the run."""

from __future__ import annotations

import threading
import time
from typing import cast

import pytest

from polynya.capture.wire import RequestFolder, error_fields
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, run_until_stopped
from polynya.engine.tasks.capture import CaptureUnit
from polynya.engine.tasks.capture_process import CaptureSecrets, worker_settings
from polynya.engine.tasks.capture_supervisor import CaptureSupervisor
from polynya.engine.unit import IDLE, Unit
from polynya.lake.spark.api import SparkSession
from polynya.model.config.capture import EnvironmentErrors
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import DependencyError, OperationError
from polynya.observe.capture import CaptureLanded
from polynya.store.vault import Vault
from polynya.testing.fakes import MemoryObjectStore
from tests.engine.tasks.test_capture_supervisor import LANDED, NO_RIGHT, REFUSED, FakeProcess

TASK = {
    "apiVersion": "polynya/v1",
    "kind": "landing",
    "name": "shop_db",
    "connection": "shop",
    "tables": {"include": ["public.*"], "exclude": ["public.tmp_%"]},
    "write": {"roll": {"size": "1MB", "age": "2s"}},
    "mask": {
        "public.a": {
            "b": "drop",
            "c": {"hash": {"key": {"env": "PEPPER"}}},
            "d": {"truncate": 3},
            "e": {"replace": None},
        }
    },
    "database": {
        "type": "postgresql",
        "host": "db",
        "database": "shop",
        "user": "${secret:shop#user}",
        "password": {"env": "SHOP_PW"},
    },
}


def task(**settings):
    return ConnectedCapture.model_validate({**TASK, **settings})


def target(tmp_path):
    return ResolvedTarget("local", tmp_path / "landing", tmp_path / "tables", "jdbc", "")


def vault():
    return Vault(lambda name: '{"user": "reader"}')


def test_the_process_is_told_the_settings_with_their_secrets(tmp_path):
    secrets = CaptureSecrets("shop_db", {"SHOP_PW": "hunter2", "PEPPER": "black"}, vault())

    told = worker_settings(task(), target(tmp_path), "once", secrets)

    assert (told.access.user, told.access.password, told.access.port) == ("reader", "hunter2", 5432)
    assert (told.folder, told.landing) == ("shop_db", str(tmp_path / "landing"))
    assert (told.roll_bytes, told.roll_seconds, told.mode) == (2**20, 2.0, "once")
    assert told.masks == {
        "public.a": {
            "b": "drop",
            "c": {"hash": {"key": "black"}},
            "d": {"truncate": 3},
            "e": {"replace": None},
        }
    }


def test_a_secret_that_is_not_there_is_named_and_not_guessed(tmp_path):
    nothing = CaptureSecrets("shop_db", {}, vault())
    with pytest.raises(OperationError, match="SHOP_PW is not set"):
        worker_settings(task(), target(tmp_path), "once", nothing)

    lost = task(database={**TASK["database"], "user": "${file:/nowhere/user}"})
    with pytest.raises(DependencyError) as caught:
        worker_settings(lost, target(tmp_path), "once", nothing)
    assert caught.value.code == "POLYNYA-GTW-066"


class Run:
    """A run with a capture, and a unit that reads what it lands."""

    def __init__(self, *processes):
        self.events, self.coming, self.started = [], list(processes), []
        self.looks: list[bool] = []
        self.context = EngineContext(
            spark=cast("SparkSession", None),
            landing=MemoryObjectStore(),
            sink=self.events.append,
        )
        supervisor = CaptureSupervisor(
            "shop_db",
            EnvironmentErrors(),
            self.launch,
            RequestFolder(self.context.landing, "shop_db"),
            clock=self.context.clock,
            sink=self.context.sink,
        )
        landing = CaptureUnit(self.context, supervisor, "shop_db")
        self.units = [
            Unit("reader", "reader", self.read, follows=True),
            Unit("shop_db", "shop_db", landing.step, lands=True),
        ]

    def launch(self, mode, wishes):
        self.started.append(self.coming.pop(0))
        return self.started[-1]

    def read(self, turn):
        self.looks.append(turn.more_comes)
        return IDLE


def test_a_run_that_ends_waits_for_the_capture_and_reads_what_it_landed():
    run = Run(FakeProcess([[LANDED], [LANDED]], ends=0))

    outcome = run_once(run.context, run.units)

    assert not outcome.failures
    assert sum(isinstance(event, CaptureLanded) for event in run.events) == 2
    assert run.looks[-1] is False


def test_a_capture_that_fails_in_a_run_that_ends_is_an_error_of_its_unit_alone():
    failed = {"type": "failed", "error": error_fields(REFUSED)}
    run = Run(FakeProcess([[failed]], ends=4))

    outcome = run_once(run.context, run.units)

    assert outcome.failures["shop_db"].exit_code == 4
    assert list(outcome.failures) == ["shop_db"]


def test_a_capture_that_waits_to_begin_again_is_no_failure_of_a_run_that_was_ended():
    run = Run(FakeProcess([[LANDED]], ends=-9))
    threading.Timer(0.5, run.context.stop.set).start()

    outcome = run_until_stopped(run.context, run.units, poll_seconds=0.1)

    assert [one.code for one in outcome.failures.values()] == ["POLYNYA-GTW-068"]
    assert outcome.without_waiting().failures == {}


def test_a_capture_that_needs_a_person_is_a_failure_of_a_run_that_was_ended():
    run = Run(FakeProcess([[{"type": "failed", "error": error_fields(NO_RIGHT)}]], ends=1))
    threading.Timer(0.5, run.context.stop.set).start()

    outcome = run_until_stopped(run.context, run.units, poll_seconds=10.0)

    assert outcome.without_waiting().failures == outcome.failures
    assert [*outcome.failures] == ["shop_db"]


def test_the_process_ends_with_the_run():
    run = Run(FakeProcess([[LANDED], [], []]))
    threading.Timer(0.5, run.context.stop.set).start()

    run_until_stopped(run.context, run.units, poll_seconds=0.1)

    deadline = time.monotonic() + 5
    while not run.started[0].ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert run.started[0].ended
    assert len(run.started) == 1
