"""How far topics were read, as landed batches write it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from polynya.streams.source import Described, Position


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """How far a topic was read.

    Attributes:
        id: of the topic: one that was deleted and made again has another.
        partitions: next offset to read, by partition.
        ends: where the partitions ended when this was written.
    """

    id: str
    partitions: Mapping[int, int]
    ends: Mapping[int, int] = field(default_factory=dict)

    @property
    def behind(self) -> int:
        """Records that were there and not read, at most: not every offset is a record."""
        return sum(max(0, end - self.partitions.get(at, end)) for at, end in self.ends.items())


@dataclass(frozen=True, slots=True)
class KafkaPosition:
    """How far the topics of a landed table were read; `newest` is the time of the newest record."""

    topics: Mapping[str, TopicPosition]
    newest: datetime | None = None

    @property
    def behind(self) -> int:
        """Records that were there and not read, at most."""
        return sum(topic.behind for topic in self.topics.values())

    def at(self, newest: datetime) -> KafkaPosition:
        """The same with the time of the newest record."""
        return replace(self, newest=newest)

    def to_json(self) -> dict[str, Any]:
        """The object in the footer of a landed batch."""
        topics = {
            name: {
                "id": topic.id,
                "partitions": _written(topic.partitions),
                "ends": _written(topic.ends),
            }
            for name, topic in sorted(self.topics.items())
        }
        newest = {} if self.newest is None else {"newest": self.newest.isoformat()}
        return {"topics": topics, **newest}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> KafkaPosition:
        """Read it. Raises ValueError, KeyError or TypeError for what is none."""
        newest = value.get("newest")
        return cls(
            {
                name: TopicPosition(
                    str(topic["id"]), _read(topic["partitions"]), _read(topic.get("ends", {}))
                )
                for name, topic in value["topics"].items()
            },
            None if newest is None else datetime.fromisoformat(newest),
        )


def described(position: Position) -> Described:
    """What a position of Kafka says of itself."""
    found = KafkaPosition.from_json(position)
    places = {
        f"{name}/{at}": str(offset)
        for name, topic in sorted(found.topics.items())
        for at, offset in sorted(topic.partitions.items())
    }
    return Described(places, found.behind, found.newest)


def _written(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(at): offset for at, offset in sorted(offsets.items())}


def _read(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(at): int(offset) for at, offset in offsets.items()}
