"""A sample of the messages of a topic: the oldest and the newest of each partition.

Nothing is committed and no group is joined: partitions are read from offsets that are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from polynya.formats.landed import SCHEMAS
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.error_catalogue.stream_sources import TOPIC_MISSING
from polynya.model.names import shown
from polynya.streams.kafka.plan import Extent, Partition, Reads
from polynya.streams.kafka.source import Kafka


@dataclass(frozen=True, slots=True)
class TopicSample:
    """Messages of a topic.

    Attributes:
        rows: in the columns of a landed batch, each partition in order.
        partitions: of the topic.
        offsets: that the topic has; transactions and compaction leave gaps.
        is_whole: the sample has all that the topic has.
    """

    rows: pa.Table
    partitions: int
    offsets: int
    is_whole: bool


def topic_sample(
    spark: SparkSession, task: StreamingLanding, topic: str, *, most: int, most_bytes: int
) -> TopicSample:
    """Read about `most` messages, and of them no more than `most_bytes`, but one of a partition.

    Raises:
        ConfigError: POLYNYA-STR-006, there is no such topic.
        DependencyError: the brokers did not give them.
    """
    assert task.source.kafka is not None, "the caller has a landing of Kafka"
    source = Kafka(spark, task, task.source.kafka)
    found = source.facts((topic,), is_first=False).get(topic)
    if found is None:
        raise TOPIC_MISSING(where=source.where, topic=shown(topic))
    extents = {(topic, at): extent for at, extent in found.partitions.items()}
    chosen = ranges_of(extents, most)
    each = most_bytes // max(1, len(chosen))
    pieces = [source.records(Reads(ranges), each).rows for ranges in chosen]
    rows = pa.concat_tables([SCHEMAS["kafka"].empty_table(), *pieces])
    offsets = sum(extent.end - extent.begin for extent in extents.values())
    read = sum(extent.end - extent.begin for ranges in chosen for extent in ranges.values())
    size = sum(piece.nbytes for piece in pieces)
    return TopicSample(rows, len(extents), offsets, is_whole=read == offsets and size < most_bytes)


def ranges_of(extents: Mapping[Partition, Extent], most: int) -> list[Mapping[Partition, Extent]]:
    """Ranges to read: all of small partitions, the begin and the end of others. One read for each.

    >>> ranges_of({("t", 0): Extent(0, 9), ("t", 1): Extent(5, 5)}, 4)
    [{('t', 0): Extent(begin=0, end=1)}, {('t', 0): Extent(begin=8, end=9)}]
    """
    filled = {place: one for place, one in extents.items() if one.end > one.begin}
    each = max(2, most // max(1, len(extents)))
    first: dict[Partition, Extent] = {}
    last: dict[Partition, Extent] = {}
    for place, one in filled.items():
        if one.end - one.begin <= each:
            first[place] = one
        else:
            first[place] = Extent(one.begin, one.begin + each // 2)
            last[place] = Extent(one.end - (each - each // 2), one.end)
    return [ranges for ranges in (first, last) if ranges]
