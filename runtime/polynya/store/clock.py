"""Time as a port, so that every test can hold it still. All times are UTC with microseconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the engine may know about time."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards; only differences mean something."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The wall clock, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        time.sleep(seconds)


class BootClock(SystemClock):
    """The clock of this machine, whose monotonic time goes on while the machine is suspended.

    A lease ends for the others while its holder sleeps, so the holder has to know that it slept.
    """

    def monotonic(self) -> float:
        """Seconds that never go backwards, since the machine was booted."""
        boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # Linux only
        return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)
