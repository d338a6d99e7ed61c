"""Time as a port, so that tests can hold it still, and retries with growing pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar


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
    """The clock of this machine, whose monotonic time advances while the machine is suspended.

    A lease ends for the others while its holder sleeps, so the holder has to know that it slept.
    """

    def monotonic(self) -> float:
        """Seconds that never go backwards, since the machine was booted."""
        boot_time = getattr(time, "CLOCK_BOOTTIME", None)  # Linux only
        return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to retry, and how fast; times in seconds.

    A pause is drawn between 0 and a limit that doubles ("full jitter", AWS Architecture Blog,
    Exponential Backoff And Jitter, 2015), so that many that were throttled do not come back at
    once.
    """

    deadline: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0
    clock: Clock = field(default_factory=SystemClock)
    draw: Callable[[], float] = random.random

    def run(self, attempt: Callable[[], T], is_transient: Callable[[Exception], bool]) -> T:
        """The first result of `attempt`.

        Raises what the last attempt raised: at once when that will not pass, else when there is no
        time for another one.
        """
        start = self.clock.monotonic()
        number = 0
        while True:
            try:
                return attempt()
            except Exception as error:
                limit = min(self.longest_pause, self.first_pause * 2 ** min(number, 32))
                pause = limit * self.draw()
                over = self.clock.monotonic() + pause - start >= self.deadline
                if over or not is_transient(error):
                    raise
            self.clock.sleep(pause)
            number += 1
