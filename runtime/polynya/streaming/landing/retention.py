"""Which landed batches may go. The newest stays: it holds the position.

A batch goes when it is older than `keep` and every table that reads the folder has copied it. One
that a table has not copied goes when it is older than `keep_unread`, too, so that a table that
nobody resumes does not fill the landing zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, TypeAlias

#: Most batches that are removed at once, so that a unit does not stand still.
MOST: Final = 200
#: The number of the first batch that some table has not copied; None: all have copied all.
FirstUnread: TypeAlias = Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class Expired:
    """What was removed: how many batches, and how many of them some table had not copied.

    `kept` is the number of the first batch that is older than `keep` and stays because it is
    unread, None when there is none.
    """

    batches: int = 0
    unread: int = 0
    kept: int | None = None


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

    def __init__(
        self,
        log: Batches,
        keep: timedelta,
        keep_unread: timedelta | Literal["keep"] = timedelta(),
    ) -> None:
        self._log, self._keep = log, keep
        self._keep_unread = keep_unread if keep_unread == "keep" else max(keep, keep_unread)
        self._oldest: int | None = None

    def expire(self, now: datetime, first_unread: FirstUnread = lambda: None) -> Expired:
        """Remove what may go. `first_unread` is asked when something is old enough.

        Batches were written in the order of their numbers, so it ends at the first that stays.
        """
        newest = self._log.newest()
        if newest is None:
            return Expired()
        if self._oldest is None:
            self._oldest = min(self._log.numbers(), default=newest.number)
        unread: int | None = None
        removed = removed_unread = 0
        while self._oldest < newest.number and removed < MOST:
            written = self._log.written_at(self._oldest)
            if written is not None:
                if written > now - self._keep:
                    break
                unread = first_unread() if not removed else unread
                is_unread = unread is not None and self._oldest >= unread
                if is_unread and self._stays(written, now):
                    return Expired(removed, removed_unread, self._oldest)
                self._log.delete(self._oldest)
                removed += 1
                removed_unread += is_unread
            self._oldest += 1
        return Expired(removed, removed_unread)

    def _stays(self, written: datetime, now: datetime) -> bool:
        """Whether a batch that some table has not copied is kept for it."""
        return self._keep_unread == "keep" or written > now - self._keep_unread
