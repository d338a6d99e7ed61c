"""Which offsets of Kafka are read next, and where limits cut what was read. Pure.

Offsets give a place and never a number of records: transactions and compaction leave gaps. So lag
and losses are counted in offsets, which is never too low.

The records of a read have the columns of a landed batch and perhaps the column `cut`. A reader may
leave out the content of a large record and give its size in bytes there. That record is not taken,
nor is anything after it in its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.landed import SCHEMAS, VALUE, Lost
from polynya.streams.kafka.position import KafkaPosition, TopicPosition

#: A partition of a topic.
Partition: TypeAlias = tuple[str, int]

#: Records that were deleted by the topic's retention before they were read.
RETENTION: Final = "retention"
#: The topic was deleted and made again.
RECREATED: Final = "recreated"
#: The partition ends before the position: its newest records were lost by the brokers.
TRUNCATED: Final = "truncated"


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


TOPIC, PARTITION, OFFSET = "hdr__kafka_topic", "hdr__kafka_partition", "hdr__kafka_offset"
KEY, HEADERS, TIMESTAMP = "hdr__kafka_key", "hdr__kafka_headers", "hdr__kafka_timestamp"
#: Bytes of the first record of a partition that was not taken, whose row has no content. NULL for a
#: record.
CUT: Final = "cut"
#: What a record holds, and what may be large of it.
CONTENT: Final = (KEY, HEADERS, VALUE)
#: The columns of what was taken.
MARKED: Final = SCHEMAS["kafka"].append(pa.field(CUT, pa.int64()))


def budgets(reads: Reads, max_bytes: int) -> dict[Partition, int]:
    """How many bytes each partition may have: in proportion to what it has to give."""
    all_of_them = max(1, reads.offsets)
    return {
        place: max(1, max_bytes * (one.end - one.begin) // all_of_them)
        for place, one in reads.ranges.items()
    }


def sizes(rows: pa.Table | pa.RecordBatch) -> Any:
    """Bytes of key, headers and value of each record, as they are landed."""
    parts = [pc.binary_length(rows.column(name)) for name in CONTENT]
    filled = [pc.fill_null(part, 0).cast(pa.int64()) for part in parts]
    return pc.add(pc.add(filled[0], filled[1]), filled[2])


def bounded(
    pieces: Iterable[pa.RecordBatch], most: Mapping[Partition, int]
) -> Iterator[pa.RecordBatch]:
    """The records of one partition until their bytes reach its limit, at least one.

    A row without content follows when it was cut: the first that was not taken, with its bytes in
    the column `cut`.
    """
    used = 0
    for piece in pieces:
        if not piece.num_rows:
            continue
        limit = most[_partition_of(piece)]
        size = sizes(piece)
        after = pc.add(pc.cumulative_sum(size), used)
        before = pc.subtract(after, size)
        count = int(pc.sum(pc.less(before, max(1, limit))).as_py())
        count = min(count, _with_content(piece))
        if count:
            yield _taken(piece.slice(0, count))
            used = int(after[count - 1].as_py())
        if count < piece.num_rows:
            yield _left(piece.slice(count, 1), size[count])
            return


def all_bounded(rows: pa.Table, most: Mapping[Partition, int]) -> pa.Table:
    """The same for several partitions, one after the other in a table."""
    pieces = (piece for batch in rows.to_batches() if batch.num_rows for piece in _parts(batch))
    found = [piece for _, own in groupby(pieces, key=_partition_of) for piece in bounded(own, most)]
    return pa.Table.from_batches(found, MARKED)


def cuts(rows: pa.Table) -> dict[Partition, int]:
    """The first offset that was not taken, of each partition that was not read to its end."""
    left = rows.filter(pc.is_valid(rows[CUT]))
    places = zip(left[TOPIC].to_pylist(), left[PARTITION].to_pylist(), strict=True)
    return dict(zip(places, left[OFFSET].to_pylist(), strict=True))


def records(rows: pa.Table) -> pa.Table:
    """The records that were taken, in the columns of a landed batch."""
    if rows[CUT].null_count < rows.num_rows:
        rows = rows.filter(pc.is_null(rows[CUT]))
    return rows.drop_columns([CUT]).cast(SCHEMAS["kafka"])


def largest(rows: pa.Table) -> int:
    """Bytes of the largest record, be it one that was not taken; 0 of none."""
    return max(pc.max(sizes(rows)).as_py() or 0, pc.max(rows[CUT]).as_py() or 0)


def _partition_of(piece: pa.RecordBatch) -> Partition:
    return piece.column(TOPIC)[0].as_py(), piece.column(PARTITION)[0].as_py()


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The records of each partition: a task that reads several may have put some together."""
    begin = 0
    while begin < rows.num_rows:
        rest = rows.slice(begin)
        topic, number = _partition_of(rest)
        own = pc.and_(pc.equal(rest.column(TOPIC), topic), pc.equal(rest.column(PARTITION), number))
        other = pc.index(own, value=False).as_py()
        count = rest.num_rows if other < 0 else other
        yield rest.slice(0, count)
        begin += count


def _with_content(piece: pa.RecordBatch) -> int:
    """How many records come before the first whose content was left out."""
    if CUT not in piece.schema.names:
        return int(piece.num_rows)
    first = pc.index(pc.is_valid(piece.column(CUT)), value=True).as_py()
    return int(piece.num_rows) if first < 0 else int(first)


def _taken(piece: pa.RecordBatch) -> pa.RecordBatch:
    columns = [piece.column(field.name).cast(field.type) for field in SCHEMAS["kafka"]]
    unmarked = pa.nulls(piece.num_rows, pa.int64())
    return pa.RecordBatch.from_arrays([*columns, unmarked], schema=MARKED)


def _left(piece: pa.RecordBatch, size: pa.Scalar) -> pa.RecordBatch:
    """One row without key, headers and value, which may be large."""
    told = piece.column(CUT)[0] if CUT in piece.schema.names else None
    row = {name: piece.column(name)[0].as_py() for name in (TOPIC, PARTITION, OFFSET)}
    row[CUT] = size.as_py() if told is None or not told.is_valid else told.as_py()
    return pa.RecordBatch.from_pylist([row], MARKED)
