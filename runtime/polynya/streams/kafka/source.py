"""Kafka as a source of streams: asks the brokers, decides, and reads ranges of offsets.

Nobody knows the size of a record before it is read. So the next read is planned from the sizes of
earlier records, and ends where a partition has used up its bytes.

A reload of a landed table reads its topics again up to the newest landed batch, partition by
partition. Records that the topics no longer have are reported as lost; newer ones are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import pyarrow.compute as pc
from typing_extensions import override

from polynya.formats.landed import Lost
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import KafkaSource, StreamingLanding, is_named
from polynya.model.error_catalogue.stream_sources import TOPIC_MISSING
from polynya.model.error_catalogue.streams import LANDED_TABLE_TAKEN
from polynya.model.errors import ConfigErrors
from polynya.model.headers import StreamSource
from polynya.model.names import shown
from polynya.streams.kafka import plan as bounds
from polynya.streams.kafka.cluster import KafkaCluster
from polynya.streams.kafka.plan import (
    RECREATED,
    TRUNCATED,
    Extent,
    Partition,
    ReadRecords,
    Reads,
    Topic,
    ends_of,
    plan,
    reached,
)
from polynya.streams.kafka.position import KafkaPosition, TopicPosition
from polynya.streams.kafka.reading import read_ranges
from polynya.streams.source import (
    Again,
    AvailableStreams,
    InOrder,
    LandingLimits,
    MessageSource,
    Next,
    Position,
    ReadMessages,
    Stream,
    by_table,
    named,
    taken,
)

#: What an offset is taken to have before any was read, in bytes.
FIRST_GUESS_BYTES: Final = 1024
#: Fewer offsets are planned than the bytes seem to allow, so that few reads are cut.
_FILL_FACTOR: Final = 0.8


def offsets_of(limits: LandingLimits, offset_bytes: float) -> int:
    """How many offsets a read may have where one had so many bytes: about as many as fit."""
    fit = _FILL_FACTOR * limits.max_bytes / max(1.0, offset_bytes)
    return min(limits.max_records, max(1, int(fit)))


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


def topics_gone(until: KafkaPosition, topics: Mapping[str, Topic]) -> Iterator[Lost]:
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


class Kafka(MessageSource):
    """See `MessageSource`."""

    kind: StreamSource = "kafka"

    def __init__(self, spark: SparkSession, task: StreamingLanding, source: KafkaSource) -> None:
        self._spark, self._task, self._source = spark, task, source
        self.where = f"task {task.name}, {source.bootstrap_servers}"
        self._cluster = KafkaCluster(spark, source, self.where)

    @property
    def each(self) -> bool:
        """Whether each topic has a landed table of its own."""
        return self._task.into.table is None

    @override
    def find(self) -> AvailableStreams:
        there = self._cluster.topics()
        topics = taken(self._source.topics, there)
        tables, errors = by_table(self._task.into, topics, self.where)
        missing = [topic for topic in named(self._source.topics) if topic not in there]
        errors += [TOPIC_MISSING(where=self.where, topic=shown(topic)) for topic in missing]
        return AvailableStreams(tables, ConfigErrors(errors) if errors else None)

    @override
    def is_asked_for(self, stream: str) -> bool:
        return is_named(self._source.topics, stream)

    @override
    def known(self, position: Position) -> frozenset[str]:
        return frozenset(KafkaPosition.from_json(position).topics)

    @override
    def reread_from(self, began: Position) -> Position:
        return began

    @override
    def again(self, table: str, began: Position, until: Position) -> Again:
        return read_again(self, table, began, until)

    @override
    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """Nobody can tell of two partitions what came first."""
        del streams
        return lambda *_: False

    @override
    def stream(self, table: str) -> KafkaStream:
        return KafkaStream(self, table)

    def facts(self, topics: tuple[str, ...], *, is_first: bool) -> dict[str, Topic]:
        """What the brokers have of topics; those that are gone are left out."""
        shapes = self._cluster.shapes(topics)
        places = [(name, at) for name, shape in shapes.items() for at in range(shape.partitions)]
        begins = self._cluster.offsets(places, "earliest")
        ends = self._cluster.offsets(places, "latest")
        start = self._task.start_from
        if not is_first or start == "earliest":
            starts = {}
        elif isinstance(start, datetime):
            starts = self._cluster.offsets(places, start)
        else:
            starts = ends
        gone = {name for name, at in places if (name, at) not in begins or (name, at) not in ends}
        return {
            name: Topic(
                shape.id,
                {at: Extent(begins[name, at], ends[name, at]) for at in range(shape.partitions)},
                {at: starts[name, at] for at in range(shape.partitions) if (name, at) in starts},
            )
            for name, shape in shapes.items()
            if name not in gone
        }

    def records(self, reads: Reads, max_bytes: int) -> ReadRecords:
        """The records of ranges of offsets, see `read_ranges`."""
        return read_ranges(
            self._spark._jvm,
            self._source,
            reads,
            max_bytes=max_bytes,
            readers=self._task.readers,
            where=self.where,
        )


class KafkaStream(Stream):
    """See `Stream`: the topics of one landed table. `last` is where they end, if that is known."""

    def __init__(self, source: Kafka, table: str, last: KafkaPosition | None = None) -> None:
        self._source, self._table, self._last = source, table, last
        self._offset_bytes: float = FIRST_GUESS_BYTES
        self._until: dict[Partition, int] | None = None

    def next(
        self,
        streams: tuple[str, ...],
        position: Position | None,
        limits: LandingLimits,
        *,
        once: bool,
    ) -> Next:
        """See `Stream`.

        Raises OperationError when the landed table holds another topic than the one it is for.
        """
        before = None if position is None else KafkaPosition.from_json(position)
        if before is not None and self._source.each and before.topics:
            self._refuse_other(streams, before)
        topics = self._source.facts(streams, is_first=before is None)
        gone: tuple[Lost, ...] = ()
        if self._last is not None:
            self._until = ends_until(self._last, topics)
            gone = tuple(topics_gone(self._last, topics))
        elif once and self._until is None:
            self._until = ends_of(topics)
        planned = plan(
            before,
            topics,
            offsets_of(limits, self._offset_bytes),
            until=self._until if once else None,
        )
        return Next(
            end=planned.end.to_json(),
            records=planned.reads.offsets,
            moves=planned.moves,
            behind=planned.end.behind,
            lost=planned.lost + gone,
            lost_records=planned.lost_records,
            reads=(planned.reads, planned.end),
        )

    @override
    def read(self, wanted: Next, limits: LandingLimits) -> ReadMessages:
        reads, end = wanted.reads
        found = self._source.records(reads, limits.max_bytes)
        records, position = found.rows, reached(end, found.cuts)
        if records.num_rows:
            newest = pc.max(records[bounds.TIMESTAMP]).as_py()
            before = position.newest
            position = position.at(newest if before is None else max(newest, before))
        size = bounds.size_of(records)
        offsets = wanted.records - (position.behind - wanted.behind)
        if offsets > 0:
            self._offset_bytes = size / offsets
        return ReadMessages(records, position.to_json(), size, position.behind)

    def _refuse_other(self, streams: tuple[str, ...], before: KafkaPosition) -> None:
        other = [stream for stream in streams if stream not in before.topics]
        if other:
            raise LANDED_TABLE_TAKEN(
                where=self._source.where,
                table=shown(self._table),
                owner=f"the topic {shown(min(before.topics))}, not {shown(other[0])}",
            )


def read_again(source: Kafka, table: str, began: Position, until: Position) -> Again:
    """See `MessageSource.again`."""
    last = KafkaPosition.from_json(until)
    begin = begin_of(KafkaPosition.from_json(began), last)
    stream = KafkaStream(source, table, last)
    return Again(stream, tuple(sorted(last.topics)), begin.to_json())
