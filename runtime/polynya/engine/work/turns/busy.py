"""How long the threads of an engine have worked, all together."""

from __future__ import annotations

import threading

from polynya.store.clock import Clock


class BusyMeter:
    """Adds up the time of turns, also of those that have not ended yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._offset = 0, 0.0

    def begin(self) -> None:
        """A thread begins to work."""
        with self._lock:
            self._running += 1
            self._offset -= self._clock.monotonic()

    def end(self) -> None:
        """A thread that began has ended."""
        with self._lock:
            self._running -= 1
            self._offset += self._clock.monotonic()

    def seconds(self) -> float:
        """Seconds of work until now; two threads do two in a second."""
        with self._lock:
            return self._offset + self._running * self._clock.monotonic()
