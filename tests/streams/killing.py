"""A process that is killed just before or after any call of its landing zone or its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

#: How the names of the calls begin that count as a step: of stores, and of shards.
STEPS: Final = ("put", "delete", "beginning", "read", "stream", "after", "since")


class KilledError(BaseException):
    """Raised where the process is killed."""


@dataclass
class Killed:
    """A store whose `at`-th step ends the process: before it, or when it is `done`.

    `steps` counts those of all stores of the process.
    """

    store: Any
    steps: list[int]
    at: int
    done: bool

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self.store, name)
        if not name.startswith(STEPS):
            return call

        def counted(*given: Any, **named: Any) -> Any:
            self.steps[0] += 1
            if self.steps[0] < self.at:
                return call(*given, **named)
            if self.done and self.steps[0] == self.at:
                call(*given, **named)
            # Who is dead does nothing any more.
            raise KilledError

        return counted
