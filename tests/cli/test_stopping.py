"""The first Ctrl-C lets running steps end, the second one ends the process; both say so."""

from __future__ import annotations

import io
import signal
import threading

from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import GlobalOptions
from polynya.cli.output import TextOutput
from polynya.cli.stopping import Stopping
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
