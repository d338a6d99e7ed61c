"""Landed batches that are older than a task keeps them. The newest stays: it holds the position."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

#: Most batches that are removed at once, so that a unit does not stand still.
MOST: Final = 200


class Numbered(Protocol):
    """A batch that knows its number."""

    @property
    def number(self) -> int:
        """From 1."""
        ...


class Batches(Protocol):
    """Landed batches with numbers."""

    def newest(self) -> Numbered | None:
        """The one with the highest number; None: nothing was landed."""
        ...

    def numbers(self) -> list[int]:
        """The numbers that there are."""
        ...

    def written_at(self, number: int) -> datetime | None:
        """When a batch was written; None when it is not there."""
        ...

    def delete(self, number: int) -> None:
        """Remove one that is not the newest."""
        ...


class Expiry:
    """Removes the batches of one log from the oldest on. `oldest` is remembered."""

    def __init__(self, log: Batches, keep: timedelta) -> None:
        self._log, self._keep = log, keep
        self._oldest: int | None = None

    def expire(self, now: datetime) -> int:
        """Remove what is too old; how many batches that were.

        Batches were written in the order of their numbers, so it ends at the first that stays.
        """
        newest = self._log.newest()
        if newest is None:
            return 0
        if self._oldest is None:
            self._oldest = min(self._log.numbers(), default=newest.number)
        removed = 0
        while self._oldest < newest.number and removed < MOST:
            written = self._log.written_at(self._oldest)
            if written is not None:
                if written > now - self._keep:
                    break
                self._log.delete(self._oldest)
                removed += 1
            self._oldest += 1
        return removed
