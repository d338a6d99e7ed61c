"""What stops a statement of the embedded engine while it runs: its time, its size, a person.

A stop holds for everything that runs inside `statement.running()`, and for threads that are started
with a copy of that context. It interrupts the databases that are open, also those that a view is
folded in, and ends the reading of files at the next batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from polynya.model.errors import PolynyaError

#: Seconds between two interrupts: one that comes just before a database begins is lost.
_AGAIN: Final = 0.05


class StatementStop:
    """Stops one statement from other threads. Without a call of `stop` it changes nothing."""

    def __init__(self, most_bytes: int = 0, too_large: PolynyaError | None = None) -> None:
        """`too_large` stops an answer whose rows take more than `most_bytes` in memory."""
        self._left, self._too_large = most_bytes, too_large
        self._error: PolynyaError | None = None
        self._interrupts: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()

    @property
    def error(self) -> PolynyaError | None:
        """Why the statement was stopped."""
        return self._error

    def stop(self, error: PolynyaError) -> None:
        """Stop the statement: `error` is raised where it runs. A later stop changes nothing."""
        with self._lock:
            if self._error is not None or self._ended.is_set():
                return
            self._error = error
        threading.Thread(target=self._interrupt, name="statement-stop", daemon=True).start()

    def _interrupt(self) -> None:
        while True:
            # Under the lock, so that no database is interrupted that another statement has by now.
            with self._lock:
                for interrupt in self._interrupts:
                    interrupt()
            if self._ended.wait(_AGAIN):
                return

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the stop hold for what runs in the block. Once only."""
        token = _running.set(self)
        try:
            self.check()
            yield
        finally:
            _running.reset(token)
            self._ended.set()

    @contextmanager
    def stopping_after(self, seconds: float, error: PolynyaError) -> Iterator[None]:
        """Stop the statement with an error if it runs in the block for longer than this."""
        timer = threading.Timer(seconds, self.stop, [error])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Have a stop call this while the block runs. Raises what it was stopped with."""
        with self._lock:
            self._interrupts.add(interrupt)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._interrupts.discard(interrupt)

    def count(self, size: int) -> None:
        """Take note of bytes of the answer. Raises `too_large` for more than there may be."""
        if self._too_large is None:
            return
        self._left -= size
        if self._left < 0:
            raise self._too_large

    def check(self) -> None:
        """Raise what the statement was stopped with, if it was."""
        if self._error is not None:
            raise self._error


_running: ContextVar[StatementStop | None] = ContextVar("statement_stop", default=None)
_never: Final = StatementStop()


def current_stop() -> StatementStop:
    """What stops the statement that runs here; one that never does where nothing stops it."""
    return _running.get() or _never
