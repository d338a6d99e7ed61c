"""How far topics were read, as landed batches write it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter

from polynya.model.documents.stored import Entries, Moment, from_stored
from polynya.streams.source import Position, PositionSummary


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """How far a topic was read.

    Attributes:
        id: of the topic: one that was deleted and made again has another.
        partitions: next offset to read, by partition.
        ends: where the partitions ended when this was written.
    """

    id: str
    partitions: Entries[int, int]
    ends: Entries[int, int] = field(default_factory=dict)

    @property
    def behind(self) -> int:
        """Records that were there and not read, at most: not every offset is a record."""
        return sum(max(0, end - self.partitions.get(at, end)) for at, end in self.ends.items())


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """How far the topics of a landed table were read; `newest` is the time of the newest record."""

    topics: Entries[str, TopicPosition]
    newest: Moment | None = None

    @property
    def behind(self) -> int:
        """Records that were there and not read, at most."""
        return sum(topic.behind for topic in self.topics.values())

    def at(self, newest: datetime) -> KafkaPosition:
        """The same with the time of the newest record."""
        return replace(self, newest=newest)

    def to_json(self) -> dict[str, Any]:
        """The object in the footer of a landed batch."""
        values: dict[str, Any] = _STORED.dump_python(self, mode="json", exclude_none=True)
        return values

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> KafkaPosition:
        """Read what `to_json` wrote. Raises ValueError for anything else."""
        return from_stored(_STORED, value)


_STORED: Final = TypeAdapter(KafkaPosition)


def described(position: Position) -> PositionSummary:
    """What a position of Kafka says of itself."""
    found = KafkaPosition.from_json(position)
    places = {
        f"{name}/{at}": str(offset)
        for name, topic in sorted(found.topics.items())
        for at, offset in sorted(topic.partitions.items())
    }
    return PositionSummary(places, found.behind, found.newest)
