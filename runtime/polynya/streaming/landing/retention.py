"""Landed batches that are older than a task keeps them. The newest stays: it holds the position."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from polynya.streaming.landing.log import LandedLog

#: Most batches that are removed at once, so that a unit does not stand still.
MOST: Final = 200


class Expiry:
    """Removes the batches of one table from the oldest on. `oldest` is remembered."""

    def __init__(self, log: LandedLog, keep: timedelta) -> None:
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
