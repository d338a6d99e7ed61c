"""A cluster of Kafka in memory: what it has, and what it gives; everything decided for real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from polynya.formats.landed import SCHEMAS
from polynya.model.config.stream_landing import Into, KafkaSource, is_named
from polynya.model.headers import StreamSource
from polynya.streams.kafka import plan
from polynya.streams.kafka.plan import Extent, ReadRecords, Reads, Topic
from polynya.streams.kafka.position import KafkaPosition
from polynya.streams.kafka.source import KafkaStream, read_again
from polynya.streams.source import (
    Again,
    AvailableStreams,
    InOrder,
    Position,
    by_table,
    taken,
)


@dataclass
class FakePartition:
    """Records by offset. An offset without one is a marker, or was compacted."""

    records: dict[int, bytes] = field(default_factory=dict)
    begin: int = 0
    end: int = 0

    def add(self, *values: bytes | None) -> None:
        """Append; None takes an offset that is no record."""
        for value in values:
            if value is not None:
                self.records[self.end] = value
            self.end += 1

    def expire(self, before: int) -> None:
        self.begin = before
        self.records = {at: value for at, value in self.records.items() if at >= before}


@dataclass
class FakeTopic:
    id: str
    partitions: list[FakePartition]


class FakeKafka:
    """See `Source`; what `Kafka` asks the brokers for comes from memory."""

    kind: StreamSource = "kafka"
    where = "task in, memory"

    def __init__(
        self, *topics: str, into: Mapping[str, str] | None = None, start: str = "earliest"
    ) -> None:
        self.wanted = topics or ("%",)
        self.into = Into(**(into or {"each": "topic"}))
        self.start = start
        self.topics: dict[str, FakeTopic] = {}

    @property
    def each(self) -> bool:
        return self.into.table is None

    def topic(self, name: str, partitions: int = 1, id: str = "id-1") -> FakeTopic:
        self.topics[name] = FakeTopic(id, [FakePartition() for _ in range(partitions)])
        return self.topics[name]

    def find(self) -> AvailableStreams:
        return AvailableStreams(by_table(self.into, taken(self.wanted, self.topics), self.where)[0])

    def is_asked_for(self, stream: str) -> bool:
        return is_named(self.wanted, stream)

    def known(self, position: Position) -> frozenset[str]:
        return frozenset(KafkaPosition.from_json(position).topics)

    def reread_from(self, began: Position) -> Position:
        return began

    def again(self, table: str, began: Position, until: Position) -> Again:
        return read_again(self, table, began, until)  # type: ignore[arg-type]

    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        del streams
        return lambda *_: False

    def stream(self, table: str) -> KafkaStream:
        return KafkaStream(self, table)  # type: ignore[arg-type]

    def facts(self, topics: tuple[str, ...], *, is_first: bool) -> dict[str, Topic]:
        return {
            name: Topic(
                topic.id,
                {at: Extent(one.begin, one.end) for at, one in enumerate(topic.partitions)},
                {at: one.end for at, one in enumerate(topic.partitions)}
                if is_first and self.start == "now"
                else {},
            )
            for name in topics
            if (topic := self.topics.get(name)) is not None
        }

    def records(self, reads: Reads, max_bytes: int) -> ReadRecords:
        rows, cuts = [], {}
        budgets = plan.budgets(reads, max_bytes)
        for (name, at), one in sorted(reads.ranges.items()):
            records = self.topics[name].partitions[at].records
            used = 0
            for offset in range(one.begin, one.end):
                if offset in records and used >= budgets[name, at]:
                    cuts[name, at] = offset
                    break
                if offset in records:
                    used += len(records[offset])
                    row = {"hdr__kafka_topic": name, "hdr__kafka_partition": at}
                    rows.append({**row, "hdr__kafka_offset": offset, "value": records[offset]})
        return ReadRecords(pa.Table.from_pylist(rows, SCHEMAS["kafka"]), cuts)


def kafka_source(**settings: object) -> KafkaSource:
    return KafkaSource.model_validate(
        {"bootstrap_servers": "b:9092", "topics": ["clicks"], **settings}
    )
