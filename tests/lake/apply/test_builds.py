"""The thread that builds: how much may wait for it, and how a process ends."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest

from polynya.lake.apply.key_index import Builds

ENDING = """
import sys, time
from polynya.lake.apply.key_index import Builds
builds = Builds()
for number in range(3):
    builds.offer(str(number), 1, lambda: (time.sleep(0.05), print("done", flush=True)))
sys.exit(130)
"""


def test_so_much_waits_as_a_process_can_finish() -> None:
    builds, may_end, done = Builds(most_ns=10), threading.Event(), list[str]()

    def job(name: str) -> bool:
        return builds.offer(name, 6, lambda: (may_end.wait(10), done.append(name))[1])

    # A single one may be larger than what may wait.
    assert builds.offer("large", 100, lambda: (may_end.wait(10), done.append("large"))[1])
    assert not job("a")
    may_end.set()
    builds.wait()
    may_end.clear()
    assert job("a")
    assert not job("a")
    assert not job("b")
    may_end.set()
    builds.wait()
    assert job("b")
    builds.wait()
    assert done == ["large", "a", "b"]


def test_a_failure_is_told_and_the_next_one_is_built(caplog: pytest.LogCaptureFixture) -> None:
    builds, done = Builds(), list[str]()

    def fails() -> None:
        raise RuntimeError("broken")

    with caplog.at_level(logging.ERROR):
        assert builds.offer("a", 1, fails)
        assert builds.offer("b", 1, lambda: done.append("b"))
        builds.wait()

    assert done == ["b"]
    assert "broken" in caplog.text


def test_a_process_that_is_ended_finishes_what_waits() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "done\n" * 3, "")
