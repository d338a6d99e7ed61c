"""The first Ctrl-C lets running steps end, the second one ends the process; both say so."""

from __future__ import annotations

import io
import os
import signal
import threading

import pytest

from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import GlobalOptions
from polynya.cli.output import TextOutput
from polynya.cli.stopping import EndedEarly, Stopping
from polynya.testing.fakes import FakeClock
from tests.lab.lab import STARTED


def test_the_second_ctrl_c_ends_at_once() -> None:
    err, left, clock = io.StringIO(), [], FakeClock(STARTED)
    output = TextOutput(GlobalOptions(no_color=True), io.StringIO(), err)
    stopping = Stopping(threading.Event(), output, clock, left.append)

    stopping(signal.SIGINT, None)
    assert stopping.stop.is_set()
    assert "Ctrl-C again ends at once" in err.getvalue()

    # The same Ctrl-C, passed on by a program that started this one.
    clock.sleep(0.01)
    stopping(signal.SIGINT, None)
    assert left == []

    clock.sleep(1)
    stopping(signal.SIGTERM, None)
    assert left == []
    stopping(signal.SIGINT, None)
    assert left == [ExitCode.INTERRUPTED]
    assert "ended at once" in err.getvalue()
    assert stopping.interrupted


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
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    output = TextOutput(GlobalOptions(quiet=True), io.StringIO(), io.StringIO())
    try:
        stopping = Stopping.on_signals(threading.Event(), output)
        os.kill(os.getpid(), signal.SIGTERM)

        assert stopping.stop.wait(5)
        # Until the very end of the process, when Python takes its handlers away.
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
