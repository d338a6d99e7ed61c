"""Whether a landed table has room: landing waits while too much of it was not copied.

A run that ends lands what the source had when it began, whatever waits: that has an end by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from polynya.engine.tasks.landed_expiry import Readers
from polynya.engine.work.context import EngineContext
from polynya.engine.work.landed_readers import Reader, first_unread_of, late_of
from polynya.formats.landed.batch import batch_number
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.observe.streams import StreamWaiting
from polynya.store.object_store import ObjectInfo
from polynya.streaming.landing.log import LandedLog

#: Seconds between two looks at what was copied while landing waits.
LOOK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Uncopied:
    """Bytes of landed batches that some table has not copied, and the tables that lack the first.

    Where nobody knows which tables there are, or none reads the stream, nothing is uncopied: then
    there is nothing to wait for.
    """

    size_bytes: int = 0
    tables: tuple[str, ...] = ()


def uncopied(readers: tuple[Reader, ...] | None, batches: Iterable[ObjectInfo]) -> Uncopied:
    """What tables have not copied of the batches of a folder."""
    first = None if readers is None else first_unread_of(readers)
    if first is None:
        return Uncopied()
    size = sum(one.size for one in batches if (batch_number(one.path) or 0) >= first)
    return Uncopied(size, late_of(readers, first))


def wait_for_copies(found: Uncopied, most: int) -> str | None:
    """Why landing waits, None when it goes on; sizes in bytes."""
    if found.size_bytes < most:
        return None
    return f"{found.size_bytes:,} landed bytes that they lack reached {most:,}"


class LandedRoom:
    """Asks the tables only when what was landed since then may have filled the room."""

    def __init__(
        self,
        context: EngineContext,
        task: StreamingLanding,
        name: str,
        log: LandedLog,
        readers: Readers,
    ) -> None:
        self._context, self._task, self._name = context, task, name
        self._log, self._readers = log, readers
        #: At most so many bytes are not copied. What landed before this process nobody has counted.
        self._at_most = math.inf
        self._full = False
        self._looked_at: float | None = None

    def landed(self, size_bytes: int) -> None:
        """A batch was put."""
        self._at_most += size_bytes

    def is_full(self, now: float) -> bool:
        """Whether landing waits; `now` in monotonic seconds. Why it does is said once."""
        most, last = self._task.max_uncopied, self._looked_at
        if most == "any" or self._at_most < most:
            return False
        if self._full and last is not None and now < last + LOOK_SECONDS:
            return True
        self._looked_at = now
        batches = list(self._log.batches())
        self._at_most = sum(one.size for one in batches)
        found = Uncopied()
        if self._at_most >= most:
            # Otherwise no table can lack so much, and none need be asked.
            found = uncopied(self._readers(), batches)
            self._at_most = found.size_bytes
        why = wait_for_copies(found, most)
        self._full = why is not None
        if self._context.is_news(f"{self._name} has room", "no" if why else "yes") and why:
            self._context.sink(
                StreamWaiting(
                    subject=self._name,
                    task=self._task.name,
                    uncopied_bytes=found.size_bytes,
                    reason=why,
                    tables=found.tables,
                )
            )
        return self._full
