"""Shards as they were when a landed batch ended: for a reload, which reads them once more.

What came later is hidden, so that whoever reads them comes to their ends where that batch does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from threading import Lock

from polynya.store.shards import Shard, ShardedStream, ShardPage, Shards
from polynya.streaming.kinesis.position import KinesisPosition, ShardPosition


class ShardsUntil:
    """See `Shards`. `until` is the position after the last record that is shown."""

    def __init__(self, shards: Shards, until: KinesisPosition) -> None:
        self._shards, self._until = shards, until
        self._lock = Lock()
        #: Where the shard ends that an iterator reads.
        self._read: dict[tuple[str, str], ShardPosition] = {}

    def streams(self) -> tuple[str, ...]:
        """See `Shards`."""
        return tuple(one for one in self._shards.streams() if one in self._until.streams)

    def stream(self, name: str) -> ShardedStream | None:
        """See `Shards`. A stream that was made again shows no shard: no record of it had landed."""
        found, until = self._shards.stream(name), self._until.streams.get(name)
        if found is None or until is None:
            return None
        known = until.shards if until.created == found.created else {}
        return replace(found, shards=tuple(one for one in found.shards if one.id in known))

    def after(self, stream: str, shard: str, number: str) -> str:
        """See `Shards`."""
        return self._noted(stream, shard, self._shards.after(stream, shard, number))

    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        """See `Shards`."""
        return self._noted(stream, shard, self._shards.since(stream, shard, moment))

    def read(self, stream: str, iterator: str) -> ShardPage:
        """See `Shards`. At the end of what is shown a shard is as if it were closed."""
        with self._lock:
            end = self._read[stream, iterator]
        page = self._shards.read(stream, iterator)
        if not end.ended:
            last = -1 if end.after is None else int(end.after)
            shown = tuple(one for one in page.records if int(one.number) <= last)
            reached = any(int(one.number) == last for one in shown)
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
