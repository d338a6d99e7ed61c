"""Which offsets of Kafka are read next, and where limits cut what was read. Pure.

Offsets give a place and never a number of records: transactions and compaction leave gaps. So lag
and losses are counted in offsets, which is never too low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.landed import VALUE, Lost
from polynya.streams.kafka.position import KafkaPosition, TopicPosition

#: A partition of a topic.
Partition: TypeAlias = tuple[str, int]

#: Records that were deleted by the topic's retention before they were read.
RETENTION: Final = "retention"
#: The topic was deleted and made again.
RECREATED: Final = "recreated"
#: The partition ends before the position: its newest records were lost by the brokers.
TRUNCATED: Final = "truncated"

#: When the brokers took a record, and what it holds.
TIMESTAMP: Final = "hdr__kafka_timestamp"
_CONTENT: Final = ("hdr__kafka_key", "hdr__kafka_headers", VALUE)


@dataclass(frozen=True, slots=True)
class Extent:
    """What a partition holds: from the offset `begin` to before `end`."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that exists. `starts`: where to begin if it was never read; else at its begin."""

    id: str
    partitions: Mapping[int, Extent]
    starts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reads:
    """From which offset to before which one partitions are read."""

    ranges: Mapping[Partition, Extent]

    @property
    def offsets(self) -> int:
        """How many offsets that are."""
        return sum(offsets.end - offsets.begin for offsets in self.ranges.values())


@dataclass(frozen=True, slots=True)
class KafkaPlan:
    """What is read next.

    Attributes:
        reads: the ranges; none where nothing came.
        end: the position when they are read.
        moves: the position says something that the one before does not, even without a record.
        lost, lost_records: what is gone, and how many offsets that were surely records to read.
    """

    reads: Reads
    end: KafkaPosition
    moves: bool
    lost: tuple[Lost, ...] = ()
    lost_records: int = 0


def plan(
    before: KafkaPosition | None,
    topics: Mapping[str, Topic],
    max_offsets: int,
    *,
    until: Mapping[Partition, int] | None = None,
) -> KafkaPlan:
    """Decide what is read next.

    Args:
        before: the position of the landed table; None: nothing was ever landed.
        topics: those of the table that exist now.
        max_offsets: most offsets to read, shared fairly among partitions.
        until: read nothing from these offsets on, and no partition that is not among them.
    """
    begins: dict[Partition, int] = {}
    lost: list[Lost] = []
    gone = 0
    known = {} if before is None else before.topics
    for name, topic in sorted(topics.items()):
        at, losses, count = _begins(name, known.get(name), topic, is_first=before is None)
        begins |= {(name, number): offset for number, offset in at.items()}
        lost += losses
        gone += count
    ends = ends_of(topics)
    waiting = {place: ends[place] - begin for place, begin in begins.items()}
    wanted = {
        place: waiting[place] if until is None else min(end, until.get(place, 0)) - begins[place]
        for place, end in ends.items()
    }
    taken = shares(wanted, max_offsets)
    reads = {place: Extent(begins[place], begins[place] + count) for place, count in taken.items()}
    end = _position(known, topics, {**begins, **{p: one.end for p, one in reads.items()}})
    return KafkaPlan(
        reads=Reads(reads),
        end=end if before is None else replace(end, newest=before.newest),
        moves=bool(topics)
        and _without_ends(_position(known, topics, begins)) != _without_ends(before),
        lost=tuple(lost),
        lost_records=gone,
    )


def ends_of(topics: Mapping[str, Topic]) -> dict[Partition, int]:
    """Where all partitions of topics end now."""
    return {
        (name, number): extent.end
        for name, topic in topics.items()
        for number, extent in topic.partitions.items()
    }


def shares(waiting: Mapping[Partition, int], most: int) -> dict[Partition, int]:
    """Share `most` among those that wait for something, so that none waits for a larger one."""
    left = {place: count for place, count in waiting.items() if count > 0}
    given: dict[Partition, int] = {}
    # The smallest first: what it does not need is for the others.
    for index, (place, count) in enumerate(
        sorted(left.items(), key=lambda item: (item[1], item[0]))
    ):
        share = -(-most // (len(left) - index))
        given[place] = min(count, share)
        most -= given[place]
    return {place: count for place, count in sorted(given.items()) if count > 0}


def reached(planned: KafkaPosition, cut: Mapping[Partition, int]) -> KafkaPosition:
    """The position after a read that a limit ended before its end in some partitions.

    Args:
        planned: the position if all had been read.
        cut: the offset after the last record that was taken, by partition that was cut.
    """
    topics = {
        name: replace(
            topic,
            partitions={
                number: cut.get((name, number), offset)
                for number, offset in topic.partitions.items()
            },
        )
        for name, topic in planned.topics.items()
    }
    return replace(planned, topics=topics)


def _begins(
    name: str, before: TopicPosition | None, topic: Topic, *, is_first: bool
) -> tuple[dict[int, int], list[Lost], int]:
    """Where the partitions of a topic are read from, what is lost, and how many offsets of it."""
    if before is None:
        starts = topic.starts if is_first else {}
        return {at: starts.get(at, one.begin) for at, one in topic.partitions.items()}, [], 0
    if before.id != topic.id:
        # What the old one still held is gone with it: as much as was seen of it.
        made_again = Lost(name, before.id, topic.id, RECREATED)
        begins = {at: one.begin for at, one in topic.partitions.items()}
        return begins, [made_again], before.behind + sum(begins.values())
    begins, lost, gone = {}, [], 0
    for at, extent in sorted(topic.partitions.items()):
        # Records of a partition that was added are new from the first to the last.
        wanted = before.partitions.get(at, 0)
        begins[at] = min(max(wanted, extent.begin), extent.end)
        if wanted < extent.begin:
            lost.append(Lost(f"{name}/{at}", str(wanted), str(extent.begin), RETENTION))
            gone += extent.begin - wanted
        elif wanted > extent.end:
            lost.append(Lost(f"{name}/{at}", str(wanted), str(extent.end), TRUNCATED))
    return begins, lost, gone


def _position(
    known: Mapping[str, TopicPosition],
    topics: Mapping[str, Topic],
    offsets: Mapping[Partition, int],
) -> KafkaPosition:
    """A position with what is known of topics that are gone: they may come back."""
    now = {
        name: TopicPosition(
            topic.id,
            {at: offsets[name, at] for at in sorted(topic.partitions)},
            {at: extent.end for at, extent in sorted(topic.partitions.items())},
        )
        for name, topic in topics.items()
    }
    return KafkaPosition({**known, **now})


def _without_ends(position: KafkaPosition | None) -> dict[str, tuple[str, Mapping[int, int]]]:
    """What a position says of what was read. Before the first one nothing is said at all."""
    if position is None:
        return {"": ("", {})}
    return {name: (one.id, dict(one.partitions)) for name, one in position.topics.items()}


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """What was read of ranges.

    Attributes:
        rows: the records in the columns of a landed batch, each partition in order.
        cuts: the first offset that was not taken, of each partition that a limit ended.
    """

    rows: pa.Table
    cuts: Mapping[Partition, int]


def budgets(reads: Reads, max_bytes: int) -> dict[Partition, int]:
    """How many bytes each partition may have: in proportion to what it has to give."""
    all_of_them = max(1, reads.offsets)
    return {
        place: max(1, max_bytes * (one.end - one.begin) // all_of_them)
        for place, one in reads.ranges.items()
    }


def size_of(records: pa.Table) -> int:
    """Bytes of keys, headers and values, as they are landed."""
    lengths = [pc.sum(pc.binary_length(records[name])).as_py() for name in _CONTENT]
    return sum(length or 0 for length in lengths)
