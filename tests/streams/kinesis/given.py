"""A landing of Kinesis streams in memory, whose landed batches are kept in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from polynya.model.config.stream_landing import KinesisSource, StreamingLanding
from polynya.store.shards import Shards
from polynya.streams.kinesis.source import Kinesis
from polynya.streams.source import LandingLimits
from polynya.testing.fakes import FakeClock, MemoryShards

NOW = datetime(2026, 11, 23, 15, 30, tzinfo=UTC)


@dataclass
class Landing:
    """Lands all streams of `shards` in one table; `again` is a new process."""

    start_from: Any = "earliest"
    streams: Sequence[str] = ("clicks",)
    clock: Any = field(default_factory=lambda: FakeClock(NOW))
    shards: Shards | None = None
    position: dict[str, Any] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    batches: int = 0
    readers: int | str = "auto"

    def __post_init__(self) -> None:
        self.memory = MemoryShards(self.clock)
        self.memory.make("clicks")
        self.again()

    def again(self) -> None:
        """What is in memory is gone; the batches that were put are still there."""
        source = KinesisSource(streams=tuple(self.streams))
        task = StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "events",
                "source": {"kinesis": source},
                "start_from": self.start_from,
                "into": {"table": "events"},
                "readers": self.readers,
            }
        )
        self.source = Kinesis(self.shards or self.memory, self.clock, task, source)
        self.stream = self.source.stream("events")

    def step(
        self, records: int = 1000, size: int = 10**7, *, put: bool = True, once: bool = False
    ) -> bool:
        """Make the next batch; whether there was one. Without `put` it is lost before that."""
        streams = self.source.find().tables.get("events", ())
        limits = LandingLimits(records, size)
        wanted = self.stream.next(streams, self.position, limits, once=once)
        if wanted.is_nothing:
            return False
        taken = self.stream.read(wanted, limits)
        if not put:
            return False
        self.position = dict(taken.end)
        self.batches += 1
        self.lost += [(one.at, one.why) for one in wanted.lost]
        self.rows += taken.rows.to_pylist()
        return True

    def land(self, **limits: Any) -> list[str]:
        """Land all there is; the messages that came, in their order."""
        known = len(self.rows)
        while self.step(**limits):
            pass
        return [row["value"].decode() for row in self.rows[known:]]
