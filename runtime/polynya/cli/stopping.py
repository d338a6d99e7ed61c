"""Stopping: Ctrl-C and SIGTERM end a command after its running steps, a second one immediately."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import release
from polynya.cli.output import Output
from polynya.store.clock import Clock, SystemClock

#: Programs that start others pass a Ctrl-C on that these got already: within so many seconds it is
#: the same one.
SAME_SIGNAL_SECONDS: Final = 0.3
#: Number of the process that a run ends with (`cluster/submit/processes.py`).
PARENT: Final = "POLYNYA_PARENT"
_PARENT_SECONDS: Final = 1.0
#: Setting an event takes no time, unless the interrupted thread holds its lock.
_SET_SECONDS: Final = 0.1
#: Progress on a terminal hides the cursor, and nothing else is left to show it again.
_SHOW_CURSOR: Final = "\x1b[?25h"


def stop_with_parent(stop: threading.Event, environment: Mapping[str, str]) -> None:
    """Set `stop` when the process that PARENT names is no longer the parent of this one.

    Processes that an agent has started must not outlive it.
    """
    parent = environment.get(PARENT, "")
    if not parent.isdecimal():
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            if stop.wait(_PARENT_SECONDS):
                return
        stop.set()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_with_parent(environment: Mapping[str, str]) -> None:
    """Send this process SIGTERM when the process that PARENT names is no longer its parent.

    A command of an automation must not outlive the process that logs it.
    """
    if not environment.get(PARENT):
        return
    gone = threading.Event()
    stop_with_parent(gone, environment)

    def end() -> None:
        gone.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, name="ended with parent", daemon=True).start()


class EndedEarly(BaseException):
    """Raised where SIGTERM comes before a command has begun any work.

    Not KeyboardInterrupt: Python ends itself by SIGINT when that once passed through a library.
    """


@dataclass(slots=True)
class Stopping:
    """Whether the command should stop; `interrupted` distinguishes Ctrl-C from SIGTERM.

    As long as the command is `starting`, no step is under way: a signal ends it at once, as
    KeyboardInterrupt or EndedEarly.

    `leave` ends the process at once, with an exit code. Every commit is atomic, so that nothing is
    lost by it: what was not committed is done again by the next run.
    """

    stop: threading.Event
    output: Output
    clock: Clock = field(default_factory=SystemClock)
    leave: Callable[[int], object] = os._exit
    interrupted: bool = False
    starting: bool = False
    _asked_at: float | None = None

    @classmethod
    def on_signals(
        cls, stop: threading.Event, output: Output, *, starting: bool = False
    ) -> Stopping:
        """Set `stop` from now on when a signal comes, or one has come that was held."""
        stopping = cls(stop, output, starting=starting)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stopping)
        release()
        return stopping

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._asked_at is not None

    def _set(self) -> None:
        """Set `stop`, by a thread of its own.

        The thread that a signal interrupts may be the one that begins to wait for `stop`, and hold
        its lock: then this one would wait for itself.
        """
        setting = threading.Thread(target=self.stop.set, name="stop", daemon=True)
        setting.start()
        setting.join(_SET_SECONDS)

    def __call__(self, number: int, _frame: object) -> None:
        """Take a signal."""
        now = self.clock.monotonic()
        self.interrupted = self.interrupted or number == signal.SIGINT
        if self._asked_at is None:
            self._asked_at = now
            self._set()
            if signal.getsignal(signal.SIGTERM) is self:
                # It has been asked. Python would let another one end it in its last moments.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if self.starting:
                raise KeyboardInterrupt if self.interrupted else EndedEarly
            self.output.note("stopping after the running steps; Ctrl-C again ends immediately")
        elif number == signal.SIGINT and now - self._asked_at > SAME_SIGNAL_SECONDS:
            self.output.warning(
                "ended immediately: the next run repeats steps that were not committed"
            )
            if sys.stderr.isatty():
                sys.stderr.write(_SHOW_CURSOR)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            self.leave(ExitCode.INTERRUPTED)
