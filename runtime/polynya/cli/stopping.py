"""Ctrl-C and SIGTERM end a command after the step that is running."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass

from polynya.cli.output import Output


@dataclass(slots=True)
class Stopping:
    """Whether somebody asked to stop; `interrupted` tells Ctrl-C from SIGTERM."""

    stop: threading.Event
    output: Output
    interrupted: bool = False

    @classmethod
    def on_signals(cls, stop: threading.Event, output: Output) -> Stopping:
        """Set `stop` from now on when a signal comes."""
        stopping = cls(stop, output)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stopping)
        return stopping

    def __call__(self, number: int, _frame: object) -> None:
        """Take a signal."""
        self.interrupted = self.interrupted or number == signal.SIGINT
        self.stop.set()
        self.output.note("stopping after the step that is running…")
