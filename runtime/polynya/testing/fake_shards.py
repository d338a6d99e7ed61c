"""Streams in shards in memory: they split, merge, forget, refuse and let places expire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from polynya.store.clock import Clock
from polynya.store.shards import (
    BusyError,
    ExpiredError,
    Shard,
    ShardedStream,
    ShardPage,
    ShardRecord,
)


@dataclass
class _Stream:
    created: datetime
    keeps: timedelta
    shards: dict[str, Shard] = field(default_factory=dict)
    records: dict[str, list[ShardRecord]] = field(default_factory=dict)


class MemoryShards:
    """See `Shards`. A page holds `page` records; the next reads raise what is in `failures`."""

    def __init__(self, clock: Clock, page: int = 3) -> None:
        self._clock, self._page = clock, page
        self._streams: dict[str, _Stream] = {}
        self._numbers = 0
        self.failures: list[Exception] = []
        self.reads = 0

    def make(self, stream: str, shards: int = 1, keeps: timedelta = timedelta(days=1)) -> None:
        """A new stream."""
        self._streams[stream] = _Stream(self._clock.now(), keeps)
        for number in range(shards):
            self._add(stream, Shard(f"s{number}"))

    def drop(self, stream: str) -> None:
        """Delete a stream."""
        del self._streams[stream]

    def put(self, stream: str, shard: str, *values: str | bytes) -> None:
        """Add records to an open shard."""
        found = self._streams[stream]
        assert not found.shards[shard].closed, "a closed shard takes no records"
        for value in values:
            self._numbers += 1
            data = value.encode() if isinstance(value, str) else value
            record = ShardRecord(f"{self._numbers:020}", shard, data, self._clock.now())
            found.records[shard].append(record)

    def replace(self, stream: str, old: Iterable[str], new: Iterable[str]) -> None:
        """Split or merge shards into others."""
        parents = tuple(old)
        found = self._streams[stream]
        for shard in parents:
            found.shards[shard] = replace(found.shards[shard], closed=True)
        for shard in new:
            self._add(stream, Shard(shard, parents))

    def trim(self, stream: str) -> None:
        """Delete what is older than the stream keeps, with closed shards that are empty then."""
        found = self._streams[stream]
        horizon = self._clock.now() - found.keeps
        for shard, records in found.records.items():
            found.records[shard] = [one for one in records if one.arrived >= horizon]
        for shard, records in list(found.records.items()):
            if found.shards[shard].closed and not records:
                del found.records[shard], found.shards[shard]

    def streams(self) -> tuple[str, ...]:
        """The names of all streams."""
        return tuple(self._streams)

    def stream(self, name: str) -> ShardedStream | None:
        """A stream as it is now."""
        found = self._streams.get(name)
        if found is None:
            return None
        return ShardedStream(found.created, found.keeps, tuple(found.shards.values()))

    def after(self, stream: str, shard: str, number: str) -> str:
        """An iterator for what comes after a record."""
        del stream
        return f"{shard} after {number}"

    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        """An iterator for what arrived from a moment on."""
        records = self._streams[stream].records[shard]
        before = [one.number for one in records if moment is not None and one.arrived < moment]
        return f"{shard} after {max(before, default='')}"

    def read(self, stream: str, iterator: str) -> ShardPage:
        """What follows an iterator."""
        self.reads += 1
        if self.failures:
            raise self.failures.pop(0)
        shard, _, number = iterator.split(" ")
        found = self._streams[stream]
        left = [one for one in found.records[shard] if one.number > number]
        page = tuple(left[: self._page])
        if found.shards[shard].closed and len(left) <= self._page:
            return ShardPage(page)
        last = page[-1].number if page else number
        behind = timedelta(seconds=1 if len(left) > len(page) else 0)
        return ShardPage(page, f"{shard} after {last}", behind)

    def _add(self, stream: str, shard: Shard) -> None:
        self._streams[stream].shards[shard.id] = shard
        self._streams[stream].records[shard.id] = []


def expired() -> ExpiredError:
    """What a read of an old place raises."""
    return ExpiredError("POLYNYA-STR-046", "expired", fix="ask for another one")


def busy() -> BusyError:
    """What a read of a shard raises that is read too often."""
    return BusyError("POLYNYA-STR-047", "busy", fix="wait")
