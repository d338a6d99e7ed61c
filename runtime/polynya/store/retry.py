"""Try again what failed for a moment: growing pauses with jitter, until a deadline."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from polynya.store.clock import Clock, SystemClock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to go on, and how fast; times in seconds.

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
