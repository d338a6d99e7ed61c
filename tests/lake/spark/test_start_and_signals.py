"""SIGTERM while the JVM starts: this process gets it, and the JVM does not."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya.lake.spark import session
from polynya.lake.spark.api import java_gateway

SLEEPS = ["sleep", "60"]


@pytest.fixture
def taken() -> Iterator[list[int]]:
    """The signals that this process has taken."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def at_work() -> Iterator[None]:
    """Another thread, as landings and copies have them."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


def start() -> subprocess.Popen[bytes]:
    """A process in place of the JVM, started as PySpark does it."""
    begin = vars(java_gateway)["Popen"]
    made: subprocess.Popen[bytes] = begin(
        SLEEPS,
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    return made


@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize("in_thread", [False, True])
def test_a_sigterm_is_not_lost_while_java_starts(taken: list[int], in_thread: bool) -> None:
    def run() -> None:
        with session._java_without_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)  # which the other thread needs to take it

    if in_thread:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()

    assert taken == [signal.SIGTERM]


def test_java_ignores_the_signals_of_the_process_that_started_it(taken: list[int]) -> None:
    with session._java_without_sigterm():
        process = start()
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        (ignored,) = (int(one.split()[1], 16) for one in lines if one.startswith("SigIgn"))
        process.send_signal(signal.SIGTERM)

        assert all(ignored >> (one - 1) & 1 for one in (signal.SIGTERM, signal.SIGINT))
        assert process.poll() is None
        assert vars(java_gateway)["Popen"] is subprocess.Popen
        assert taken == []
    finally:
        process.kill()
        process.wait()


def test_java_whose_start_was_interrupted_is_ended() -> None:
    with pytest.raises(KeyboardInterrupt), session._java_without_sigterm():
        process = start()
        raise KeyboardInterrupt

    assert process.wait(10) == -signal.SIGKILL
