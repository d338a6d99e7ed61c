"""The first Ctrl-C lets running steps end, the second one ends the process; both say so."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import held, release_unless_handled, stopped_by_signals
from polynya.cli.options import GlobalOptions
from polynya.cli.output import TextOutput
from polynya.cli.stopping import EndedEarly, Stopping
from polynya.testing.fakes import FakeClock
from tests.cli.held import wait_until_held
from tests.lab.lab import STARTED


def test_the_second_ctrl_c_ends_at_once() -> None:
    err, left, clock = io.StringIO(), [], FakeClock(STARTED)
    output = TextOutput(GlobalOptions(no_color=True), io.StringIO(), err)
    stopping = Stopping(threading.Event(), output, clock, left.append)

    stopping(signal.SIGINT, None)
    assert stopping.stop.is_set()
    assert "Ctrl-C again ends immediately" in err.getvalue()

    # The same Ctrl-C, passed on by a program that started this one.
    clock.sleep(0.01)
    stopping(signal.SIGINT, None)
    assert left == []

    clock.sleep(1)
    stopping(signal.SIGTERM, None)
    assert left == []
    stopping(signal.SIGINT, None)
    assert left == [ExitCode.INTERRUPTED]
    assert "ended immediately" in err.getvalue()
    assert stopping.interrupted


def test_a_signal_in_the_moment_in_which_its_event_is_waited_for_is_no_deadlock() -> None:
    output = TextOutput(GlobalOptions(no_color=True), io.StringIO(), io.StringIO())
    stopping = Stopping(threading.Event(), output, FakeClock(STARTED))
    done = threading.Event()

    def waits() -> None:
        # As `Event.wait` holds it before it waits, which may be long on a busy machine.
        with stopping.stop._cond:
            stopping(signal.SIGTERM, None)
        done.set()

    threading.Thread(target=waits, daemon=True).start()

    assert done.wait(20)
    assert stopping.stop.wait(20)


def test_ctrl_c_after_a_sigterm_ends_at_once() -> None:
    left, clock = [], FakeClock(STARTED)
    output = TextOutput(GlobalOptions(quiet=True), io.StringIO(), io.StringIO())
    stopping = Stopping(threading.Event(), output, clock, left.append)

    stopping(signal.SIGTERM, None)
    assert not stopping.interrupted
    clock.sleep(5)
    stopping(signal.SIGINT, None)

    assert left == [ExitCode.INTERRUPTED]


def test_a_signal_before_any_work_ends_the_command_where_it_is() -> None:
    output = TextOutput(GlobalOptions(quiet=True), io.StringIO(), io.StringIO())
    ended = Stopping(threading.Event(), output, FakeClock(STARTED), starting=True)
    interrupted = Stopping(threading.Event(), output, FakeClock(STARTED), starting=True)

    with pytest.raises(EndedEarly):
        ended(signal.SIGTERM, None)
    ended(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt):
        interrupted(signal.SIGINT, None)

    assert ended.stop.is_set()
    assert ended.asked
    assert (ended.interrupted, interrupted.interrupted) == (False, True)


def test_a_second_sigterm_changes_nothing() -> None:
    output = TextOutput(GlobalOptions(quiet=True), io.StringIO(), io.StringIO())
    with handlers_of_before():
        stopping = Stopping.on_signals(threading.Event(), output)
        os.kill(os.getpid(), signal.SIGTERM)

        assert stopping.stop.wait(5)
        # Until the very end of the process, when Python takes its handlers away.
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is stopping


def test_a_signal_that_comes_while_a_command_starts_waits_for_its_handler() -> None:
    output = TextOutput(GlobalOptions(quiet=True), io.StringIO(), io.StringIO())
    with handlers_of_before(), held():
        signal.raise_signal(signal.SIGTERM)  # to this thread, which holds it

        with pytest.raises(EndedEarly):
            Stopping.on_signals(threading.Event(), output, starting=True)


def test_a_command_without_handlers_gets_a_held_signal_before_it_begins() -> None:
    taken: list[int] = []
    command, own = (lambda: 0), stopped_by_signals(lambda: 0)
    with handlers_of_before(), held():
        signal.signal(signal.SIGTERM, lambda number, _: taken.append(number))
        signal.raise_signal(signal.SIGTERM)  # to this thread, which holds it

        release_unless_handled(own)
        assert not taken
        release_unless_handled(command)
        assert taken == [signal.SIGTERM]


@pytest.mark.parametrize("verb", [("run", "--once"), ("landing", "run")])
def test_sigterm_while_modules_are_loaded_ends_a_run_as_documented(
    verb: tuple[str, ...], tmp_path: Path
) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "polynya", *verb, "--project", str(tmp_path)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until_held(started.pid)
    started.terminate()
    _, said = started.communicate(timeout=60)

    assert (started.returncode, said) == (0, "ended before anything was begun\n")


@contextmanager
def handlers_of_before() -> Iterator[None]:
    """Set the handlers of the tests' own process again at the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
