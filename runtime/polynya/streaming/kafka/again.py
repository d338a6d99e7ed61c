"""What of topics is read once more, for a reload of a landed table: pure.

The newest landed batch says where that ends, for each partition. What is not there any more is told
as lost; what came later is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from polynya.formats.landed.batch import Lost
from polynya.streaming.kafka.plan import RECREATED, TRUNCATED, Partition, Topic
from polynya.streaming.kafka.position import KafkaPosition, TopicPosition

#: The topic was deleted.
DELETED: Final = "deleted"


def begin_of(began: KafkaPosition, until: KafkaPosition) -> KafkaPosition:
    """Where reading once more begins: as it began, and topics that came later at their begin."""
    return KafkaPosition(
        {
            name: began.topics.get(name) or TopicPosition(one.id, dict.fromkeys(one.partitions, 0))
            for name, one in until.topics.items()
        }
    )


def ends_until(until: KafkaPosition, topics: Mapping[str, Topic]) -> dict[Partition, int]:
    """Before which offsets partitions are read; of a topic that was made again none are."""
    return {
        (name, at): offset
        for name, one in until.topics.items()
        if name in topics and topics[name].id == one.id
        for at, offset in one.partitions.items()
    }


def gone(until: KafkaPosition, topics: Mapping[str, Topic]) -> Iterator[Lost]:
    """What is not there up to the end; what is gone of the begin `plan` tells."""
    for name, one in sorted(until.topics.items()):
        topic = topics.get(name)
        if topic is None:
            yield Lost(name, one.id, "", DELETED)
            continue
        if topic.id != one.id:
            yield Lost(name, one.id, topic.id, RECREATED)
            continue
        for at, offset in sorted(one.partitions.items()):
            extent = topic.partitions.get(at)
            if extent is not None and extent.end < offset:
                yield Lost(f"{name}/{at}", str(extent.end), str(offset), TRUNCATED)
