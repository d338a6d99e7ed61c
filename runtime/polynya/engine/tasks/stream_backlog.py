"""What one stream still has, for the backlog of its job: whether it is landed or read directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from polynya.engine.work.context import EngineContext
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.contract.stream_headers import StreamSource
from polynya.streaming.landing.status import behind_seconds, described
from polynya.streaming.source import Position


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch that was read: its records and bytes, the position after it, and what is beyond."""

    records: int
    size_bytes: int
    end: Position
    behind: int


class StreamBacklog:
    """Told at each step of a landed table, or of a table that reads its stream itself.

    Kafka counts its records. Other sources tell only that there is more: that is a batch at least.
    """

    def __init__(self, context: EngineContext, landing: StreamingLanding, name: str) -> None:
        self._backlog, self._name, self._clock = context.backlog, name, context.clock
        self._kind: StreamSource = cast("StreamSource", landing.source.chosen[0])
        self._counts = landing.source.kafka is not None
        self._batch_records = 0

    def decided(self, records: int, behind: int, now: float) -> None:
        """So many records are read next, and `behind` are after them; `now` in seconds."""
        self._beyond(records, behind, now, None)

    def done(self, read: ReadBatch, began: float, now: float) -> None:
        """A batch was read, in the time from `began` to `now`, both monotonic."""
        self._batch_records = read.records
        self._backlog.landed(self._name, read.records, read.size_bytes, now - began)
        said = described(self._kind, read.end)
        self._beyond(0, read.behind, now, behind_seconds(said, self._clock.now()))

    def _beyond(self, records: int, behind: int, now: float, seconds: float | None) -> None:
        more = behind if self._counts else (behind > 0) * self._batch_records
        self._backlog.beyond(self._name, records + more, now, seconds)
