"""The process of a capture: what it is told, what it says, and how it ends. With a fake worker."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from polynya.capture.source import Access
from polynya.capture.wire import WorkerSettings
from polynya.engine.tasks import capture_process as module
from polynya.engine.tasks.capture_process import WorkerProcess
from polynya.model.errors import DependencyError

FAKE = Path(__file__).with_name("fake_worker.py")
SETTINGS = WorkerSettings(
    task="shop_db",
    mode="follow",
    access=Access("postgresql", "127.0.0.1", 5432, "shop", "reader", "hunter2"),
    landing="/landing",
    folder="shop_db",
    include=("public.*",),
)


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(**scenario):
        file = tmp_path / "scenario.json"
        file.write_text(json.dumps({"says": [], **scenario}))
        command = (sys.executable, str(FAKE), str(file))
        started.append(WorkerProcess(SETTINGS, tmp_path / "log" / "capture.log", command))
        return started[-1]

    yield begin
    for one in started:
        one.end()


def all_said(process):
    said = []
    while process.code is None:
        said += process.take(5)
    return said


def heard(tmp_path):
    return [json.loads(line) for line in (tmp_path / "scenario.heard").read_bytes().splitlines()]


def test_it_is_told_its_settings_and_says_what_happens(start, tmp_path):
    process = start(says=[{"type": "streaming"}, "Picked up a library's words", "[]"], ends=0)

    assert all_said(process) == [{"type": "streaming"}]
    assert process.code == 0
    [settings] = heard(tmp_path)
    assert settings["access"]["password"] == "hunter2"


def test_no_argument_of_the_process_has_a_secret(start):
    process = start()

    command = Path(f"/proc/{process._process.pid}/cmdline").read_bytes()
    assert b"hunter2" not in command


def test_it_ends_when_it_is_asked_to(start, tmp_path):
    process = start(says=[{"type": "streaming"}])
    process.take(5)
    process.ask(("public.orders",), reload=False)

    process.end()

    assert all_said(process) == []
    assert process.code == 0
    assert heard(tmp_path)[1] == {"type": "resume", "tables": ["public.orders"]}


def test_one_that_does_not_end_is_ended(start, monkeypatch):
    monkeypatch.setattr(module, "END_SECONDS", 0.3)
    process = start(says=[{"type": "streaming"}], ignores_end=True)
    process.take(5)
    began = time.monotonic()

    process.end()

    assert time.monotonic() - began < 5
    assert all_said(process) == []
    assert process.code is not None
    assert process.code < 0


def test_a_command_that_is_not_there_is_an_error_that_may_pass(tmp_path):
    with pytest.raises(DependencyError) as caught:
        WorkerProcess(SETTINGS, tmp_path / "capture.log", (str(tmp_path / "nothing"),))

    assert caught.value.code == "POLYNYA-GTW-067"


def test_asking_one_that_has_ended_is_no_error(start):
    process = start(ends=3)
    all_said(process)

    process.ask((), reload=True)

    assert process.code == 3
