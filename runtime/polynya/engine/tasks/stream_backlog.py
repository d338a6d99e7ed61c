"""What one stream still has, for the backlog of its job: whether it is landed or read directly."""

from __future__ import annotations

from polynya.engine.work.context import EngineContext
from polynya.model.config.streaming.landing import StreamingLanding


class StreamBacklog:
    """Told at each step of a landed table, or of a table that reads its stream itself.

    Kafka counts its records. Other sources tell only that there is more: that is a batch at least.
    """

    def __init__(self, context: EngineContext, landing: StreamingLanding, name: str) -> None:
        self._backlog, self._name = context.backlog, name
        self._counts = landing.source.kafka is not None
        self._batch_records = 0

    def decided(self, records: int, behind: int, now: float) -> None:
        """So many records are read next, and `behind` are after them; `now` in seconds."""
        more = behind if self._counts else (behind > 0) * self._batch_records
        self._backlog.beyond(self._name, records + more, now)

    def done(self, records: int, size_bytes: int, behind: int, began: float, now: float) -> None:
        """They were read, in the time from `began` to `now`."""
        self._batch_records = records
        self._backlog.landed(self._name, records, size_bytes, now - began)
        self.decided(0, behind, now)
