"""A record stream in memory, with the faults of a real one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from zlib import crc32

from polynya.model.errors import DependencyError, PolynyaError
from polynya.store.record_stream import Page, Record, iterator_lost, throttled


@dataclass(slots=True)
class _Shard:
    records: list[Record] = field(default_factory=list)
    open: bool = True


class MemoryRecordStream:
    """A record stream in lists.

    `failure` is raised by everything while it is set, `throttled_reads` so many reads are refused,
    `page_records` is the most that a read gives.
    """

    def __init__(self, shards: int = 1, *, page_records: int = 1000) -> None:
        self.failure: PolynyaError | None = None
        self.throttled_reads = 0
        self.page_records = page_records
        self.reads: list[str] = []
        self._shards: dict[str, _Shard] = {}
        self._names = itertools.count()
        self._epoch = 0
        self.reshard(shards)

    @property
    def records(self) -> list[tuple[str, bytes]]:
        """All that was put, by shard."""
        return [(one.key, one.data) for shard in self._shards.values() for one in shard.records]

    def put(self, key: str, data: bytes) -> None:
        """Add a record."""
        self._fail()
        names = self.shards()
        shard = self._shards[names[crc32(key.encode("utf-8", "replace")) % len(names)]]
        shard.records.append(Record(key, bytes(data)))

    def shards(self) -> tuple[str, ...]:
        """Names of the open shards."""
        self._fail()
        return tuple(name for name, shard in self._shards.items() if shard.open)

    def newest(self, shard: str) -> str:
        """An iterator at the end of a shard."""
        self._fail()
        return self._iterator(shard, len(self._shards[shard].records))

    def read(self, iterator: str) -> Page:
        """What follows an iterator."""
        self._fail()
        epoch, name, position = iterator.split(":")
        self.reads.append(name)
        if self.throttled_reads > 0:
            self.throttled_reads -= 1
            raise throttled("a stream in memory", "told to")
        shard = self._shards.get(name)
        if shard is None or int(epoch) != self._epoch:
            raise iterator_lost("a stream in memory", "it expired")
        end = int(position) + self.page_records
        records = tuple(shard.records[int(position) : end])
        over = not shard.open and end >= len(shard.records)
        following = None if over else self._iterator(name, int(position) + len(records))
        return Page(records, following, 0.0)

    def reshard(self, shards: int) -> None:
        """Close all shards and open so many others."""
        for shard in self._shards.values():
            shard.open = False
        # A name is never used again.
        self._shards.update((f"shard-{next(self._names)}", _Shard()) for _ in range(shards))

    def expire(self) -> None:
        """Make all iterators useless; closed shards are gone."""
        self._epoch += 1
        self._shards = {name: shard for name, shard in self._shards.items() if shard.open}

    def _iterator(self, shard: str, position: int) -> str:
        return f"{self._epoch}:{shard}:{position}"

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def no_stream() -> DependencyError:
    """The error of a stream that was deleted or never there."""
    return DependencyError(
        "POLYNYA-AGT-042", "there is no such workload stream in this region", where="a test"
    )
