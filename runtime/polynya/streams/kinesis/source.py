"""Kinesis as a source of streams: lists the shards, decides, reads them in threads.

A reload reads the shards again as they were when a landed batch ended (`ShardsUntil`). Newer
records are hidden, so that every shard seems to end where that batch ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Final

from typing_extensions import override

from polynya.formats.landed import SCHEMAS
from polynya.model.config.stream_landing import KinesisSource, StreamingLanding
from polynya.model.error_catalogue.stream_sources import (
    KINESIS_POSITION_INVALID,
    KINESIS_STREAM_MISSING,
)
from polynya.model.errors import ConfigErrors
from polynya.model.headers import StreamSource
from polynya.model.names import shown
from polynya.store.clock import Clock
from polynya.store.shards import Shard, ShardedStream, ShardPage, Shards
from polynya.streams.kinesis.plan import (
    KinesisPosition,
    KinesisStreamPosition,
    ShardPosition,
    StreamPlan,
    plan,
)
from polynya.streams.kinesis.reading import (
    DEFAULT_READERS,
    ReadShard,
    ShardsReader,
    WantedShard,
    rows_of,
)
from polynya.streams.source import (
    Again,
    AvailableStreams,
    InOrder,
    LandingLimits,
    MessageSource,
    Next,
    Position,
    ReadMessages,
    Ready,
    Stream,
    by_table,
    named,
    taken,
)


class ShardsUntil(Shards):
    """See `Shards`. `until` is the position after the last record that is shown."""

    def __init__(self, shards: Shards, until: KinesisPosition) -> None:
        self._shards, self._until = shards, until
        self._lock = Lock()
        #: Where the shard ends that an iterator reads.
        self._read: dict[tuple[str, str], ShardPosition] = {}

    @override
    def streams(self) -> tuple[str, ...]:
        return tuple(stream for stream in self._shards.streams() if stream in self._until.streams)

    @override
    def stream(self, name: str) -> ShardedStream | None:
        """A stream that was made again shows no shard: no record of it had landed."""
        found, until = self._shards.stream(name), self._until.streams.get(name)
        if found is None or until is None:
            return None
        known = until.shards if until.created == found.created else {}
        return replace(found, shards=tuple(shard for shard in found.shards if shard.id in known))

    @override
    def after(self, stream: str, shard: str, number: str) -> str:
        return self._noted(stream, shard, self._shards.after(stream, shard, number))

    @override
    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        return self._noted(stream, shard, self._shards.since(stream, shard, moment))

    @override
    def read(self, stream: str, iterator: str) -> ShardPage:
        """At the end of what is shown a shard is as if it were closed."""
        with self._lock:
            end = self._read[stream, iterator]
        page = self._shards.read(stream, iterator)
        if not end.ended:
            last = -1 if end.after is None else int(end.after)
            shown = tuple(record for record in page.records if int(record.number) <= last)
            reached = any(int(record.number) == last for record in shown)
            if reached or len(shown) < len(page.records) or not page.behind or last < 0:
                return ShardPage(shown)
        if page.following is not None:
            with self._lock:
                self._read[stream, page.following] = end
        return page

    def _noted(self, stream: str, shard: str, iterator: str) -> str:
        with self._lock:
            self._read[stream, iterator] = self._until.streams[stream].shards[shard]
        return iterator


def is_before(one: str, other: str, shards: Mapping[str, Shard]) -> bool:
    """Whether a shard was split or merged, over however many steps, into the other."""
    return one in _ancestors(other, shards)


def _ancestors(shard: str, shards: Mapping[str, Shard]) -> Iterator[str]:
    """The shards that one came of; a merge may name one twice."""
    left = list(shards[shard].parents) if shard in shards else []
    while left:
        parent = left.pop()
        yield parent
        left += shards[parent].parents if parent in shards else ()


#: How often in its retention the position of an idle stream is written down: what is deleted
#: meanwhile is then known to have been read.
_POSITIONS_PER_RETENTION: Final = 4


class Kinesis(MessageSource):
    """See `MessageSource`."""

    kind: StreamSource = "kinesis"

    def __init__(
        self, shards: Shards, clock: Clock, task: StreamingLanding, source: KinesisSource
    ) -> None:
        self.shards, self.clock, self.task = shards, clock, task
        self.where = f"task {task.name}, Kinesis"
        self._source = source

    @override
    def find(self) -> AvailableStreams:
        there = self.shards.streams()
        patterns = self._source.streams
        tables, errors = by_table(self.task.into, taken(patterns, there), self.where)
        errors += [
            KINESIS_STREAM_MISSING(where=self.where, stream=shown(stream))
            for stream in named(patterns)
            if stream not in there
        ]
        return AvailableStreams(tables, ConfigErrors(errors) if errors else None)

    @override
    def is_asked_for(self, stream: str) -> bool:
        return stream in self._source.streams

    @override
    def known(self, position: Position) -> frozenset[str]:
        return frozenset(position_of(position, self.where).streams)

    @override
    def reread_from(self, began: Position) -> Position:
        """Of shards that were read from their first record on, all may be gone."""
        return position_of(began, self.where).as_read().to_json()

    @override
    def again(self, table: str, began: Position, until: Position) -> Again:
        last = position_of(until, self.where)
        shown = Kinesis(ShardsUntil(self.shards, last), self.clock, self.task, self._source)
        streams = tuple(sorted(last.streams))
        return Again(shown.stream(table), streams, self.reread_from(began))

    @override
    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """A shard comes after those that it was split or merged from."""
        found = {name: self.shards.stream(name) for name in streams}
        shards = {
            f"{name}/{one.id}": replace(one, parents=tuple(f"{name}/{at}" for at in one.parents))
            for name, stream in found.items()
            for one in (stream.shards if stream is not None else ())
        }
        return lambda one, other: is_before(one, other, shards) or is_before(other, one, shards)

    @override
    def stream(self, table: str) -> KinesisStreams:
        del table
        return KinesisStreams(self)


class KinesisStreams(Stream):
    """See `Stream`: the streams of one landed table.

    Only reading tells whether there is something, so `next` reads, and keeps it for `read`.
    """

    def __init__(self, source: Kinesis) -> None:
        self._source = source
        asked = source.task.readers
        readers = DEFAULT_READERS if asked == "auto" else asked
        self._reader = ShardsReader(source.shards, source.clock, readers=readers)
        self._ready: Ready | None = None
        self._done: set[tuple[str, str]] = set()
        self._reached: tuple[Position, set[tuple[str, str]]] | None = None

    @override
    def next(
        self,
        streams: tuple[str, ...],
        position: Position | None,
        limits: LandingLimits,
        *,
        once: bool,
    ) -> Next:
        if self._ready is not None and self._ready.position == position:
            return self._ready.next
        if self._reached is not None and self._reached[0] == position:
            self._done |= self._reached[1]
        plans = self._plans(streams, position)
        found = [] if not limits.max_records else self._read(plans, limits, once=once)
        done = {(read.stream, read.shard) for read in found if once and not read.behind}
        behind = sum(read.behind for read in found)
        behind += sum(len(planned.plan.readable) + planned.plan.waiting for planned in plans) - len(
            found
        )
        end = _after(plans, found, position, self._source.where)
        end = replace(end, behind=behind)
        lost = [gap for planned in plans for gap in planned.plan.lost]
        records = sum(len(read.records) for read in found)
        moves = any(planned.moves(found, self._source.clock) for planned in plans)
        if limits.max_records and not behind and _was_behind(position, self._source.where):
            # Otherwise the newest batch goes on saying that something waits.
            moves = True
        taken = ReadMessages(
            rows_of(found) if found else SCHEMAS["kinesis"].empty_table(),
            end.to_json(),
            sum(read.bytes for read in found),
            0 if once else behind,
        )
        following = Next(
            end=taken.end,
            records=records,
            moves=moves,
            behind=taken.behind,
            lost=tuple(lost),
            # How many they were nobody can say: at least one.
            lost_records=len(lost),
            reads=taken,
        )
        if following.is_nothing:
            self._done |= done
        # Whoever does not come back with that position has to read them again.
        self._reached = (taken.end, done)
        self._ready = None if following.is_nothing else Ready(position, following)
        return following

    @override
    def read(self, wanted: Next, limits: LandingLimits) -> ReadMessages:
        """What was read already."""
        del limits
        self._ready = None
        found: ReadMessages = wanted.reads
        return found

    def _plans(self, streams: tuple[str, ...], position: Position | None) -> list[_Planned]:
        source = self._source
        before = None if position is None else position_of(position, source.where)
        now = source.clock.now()
        found = []
        for name in streams:
            stream = source.shards.stream(name)
            if stream is None:
                continue
            known = None if before is None else before.streams.get(name)
            # A stream that appears later is new from its first record on.
            start = source.task.start_from if before is None else "earliest"
            found.append(_Planned(name, stream, plan(name, known, stream, start, now)))
        return found

    def _read(
        self, plans: Sequence[_Planned], limits: LandingLimits, *, once: bool
    ) -> list[ReadShard]:
        wanted = [
            WantedShard(
                planned.name, shard, planned.plan.position.shards[shard], planned.hashes.get(shard)
            )
            for planned in plans
            for shard in planned.plan.readable
            if not (once and (planned.name, shard) in self._done)
        ]
        return self._reader.read(wanted, max_records=limits.max_records, max_bytes=limits.max_bytes)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A stream, and what is read of it."""

    name: str
    stream: ShardedStream
    plan: StreamPlan

    @property
    def hashes(self) -> Mapping[str, tuple[int, int] | None]:
        """The range of each shard's keys."""
        return {shard.id: shard.hashes for shard in self.stream.shards}

    def moves(self, found: Sequence[ReadShard], clock: Clock) -> bool:
        """Whether the position says something that has to be written down without a record."""
        mine = [read for read in found if read.stream == self.name]
        # Its children are read after it, and they are not to be forgotten.
        if self.plan.moves or any(read.position.ended for read in mine):
            return True
        oldest = clock.now() - self.stream.keeps / _POSITIONS_PER_RETENTION
        known = self.plan.position.shards
        return any(
            (before := known[one.shard].seen) is not None and before < oldest for one in mine
        )


def position_of(values: Position, where: str) -> KinesisPosition:
    """The position that a footer holds. Raises OperationError POLYNYA-STR-048."""
    try:
        return KinesisPosition.from_json(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KINESIS_POSITION_INVALID(where=where, error=error) from error


def _was_behind(position: Position | None, where: str) -> bool:
    return position is not None and bool(position_of(position, where).behind)


def _after(
    plans: Sequence[_Planned], found: Sequence[ReadShard], before: Position | None, where: str
) -> KinesisPosition:
    """The position after what was read. What is known of streams that are gone stays."""
    known = {} if before is None else dict(position_of(before, where).streams)
    for planned in plans:
        shards: Mapping[str, ShardPosition] = {
            **planned.plan.position.shards,
            **{read.shard: read.position for read in found if read.stream == planned.name},
        }
        known[planned.name] = KinesisStreamPosition(planned.plan.position.created, shards)
    return KinesisPosition(known)
