"""Removing the landed batches of one table that are too old, and saying which stay all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from polynya.engine.work.context import EngineContext
from polynya.engine.work.landed_readers import Reader, first_unread_of, late_of
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.observe.streams import StreamExpired, StreamKept
from polynya.streaming.landing.log import LandedLog
from polynya.streaming.landing.retention import Expiry

#: Seconds between two looks which landed batches are too old.
EXPIRY_SECONDS: Final = 300.0
#: The tables that read a folder of landed batches; None where that cannot be told.
Readers: TypeAlias = Callable[[], tuple[Reader, ...] | None]


class LandedExpiry:
    """Removes them now and then, as `folder_retention` of the task says."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        log: LandedLog,
        readers: Readers,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._readers = readers
        keep, unread = task.folder_retention.keep, task.folder_retention.keep_unread
        self._expiry = None if keep == "keep" else Expiry(log, keep, unread)
        self._looked_at: float | None = None

    def look(self, began: float) -> None:
        """Remove what may go, if it is time; `began` in monotonic seconds."""
        last = self._looked_at
        if self._expiry is None or (last is not None and began < last + EXPIRY_SECONDS):
            return
        self._looked_at = began
        found: list[tuple[Reader, ...] | None] = []

        def first_unread() -> int | None:
            found.append(self._readers())
            return first_unread_of(found[0])

        expired = self._expiry.expire(self._context.clock.now(), first_unread)
        if expired.batches:
            self._context.sink(
                StreamExpired(
                    subject=self._name,
                    task=self._task.name,
                    files=expired.batches,
                    unread_files=expired.unread,
                )
            )
        self._tell_kept(expired.kept, found[0] if found else ())

    def _tell_kept(self, number: int | None, readers: tuple[Reader, ...] | None) -> None:
        """Say once that batches stay because somebody has not copied them."""
        late = () if number is None else late_of(readers, number)
        said = "nothing" if number is None else f"kept {' '.join(late)}"
        if self._context.is_news(f"{self._name} keeps", said) and number is not None:
            event = StreamKept(subject=self._name, task=self._task.name, number=number, tables=late)
            self._context.sink(event)
