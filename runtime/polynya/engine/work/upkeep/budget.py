"""What maintenance has used of its budget in this process, over the last hour. No clock in here."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from polynya.engine.work.upkeep.choose import Left
from polynya.model.config.maintenance.settings import MaintenanceBudget

_HOUR: Final = 3600.0


@dataclass(slots=True)
class Used:
    """What all actions of this process wrote and took. Told and asked by its threads.

    `now` is in monotonic seconds.
    """

    _entries: deque[tuple[float, int, float]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """What all actions took since the process began."""
        return self._seconds

    def took(self, written_bytes: int, seconds: float, now: float) -> None:
        """Take note of an action that has ended."""
        with self._lock:
            self._entries.append((now, written_bytes, seconds))
            self._seconds += seconds

    def left(self, budget: MaintenanceBudget, now: float, *, cheap_only: bool = False) -> Left:
        """What is left of a budget."""
        with self._lock:
            while self._entries and self._entries[0][0] <= now - _HOUR:
                self._entries.popleft()
            written = sum(size for _, size, _ in self._entries)
            seconds = sum(took for _, _, took in self._entries)
        return Left(
            written_bytes=max(0, budget.bytes_per_hour - written),
            seconds=budget.share * _HOUR - seconds,
            cheap_only=cheap_only,
        )
