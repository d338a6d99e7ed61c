"""Fakes that behave like the real ports and hold everything in memory."""

from __future__ import annotations

import io
import itertools
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import BinaryIO
from zlib import crc32

from polynya.model.error_catalogue.cluster import WORKLOAD_STREAM_MISSING
from polynya.model.errors import DependencyError, PolynyaError
from polynya.store.clock import Clock
from polynya.store.object_store import Content, ObjectInfo, checked_path
from polynya.store.shards import (
    ITERATOR_EXPIRED,
    SHARD_BUSY,
    BusyError,
    ExpiredError,
    Shard,
    ShardedStream,
    ShardPage,
    ShardRecord,
)
from polynya.store.streams import ITERATOR_LOST, THROTTLED, Page, StreamRecord


@dataclass(slots=True)
class _Shard:
    records: list[StreamRecord] = field(default_factory=list)
    open: bool = True


class MemoryRecordStream:
    """A record stream in lists.

    All methods raise `failure` while it is set, the next `throttled_reads` reads are refused, and
    a read returns at most `page_records`.
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
        return [
            (record.key, record.data) for shard in self._shards.values() for record in shard.records
        ]

    def put(self, key: str, data: bytes) -> None:
        """Add a record."""
        self._fail()
        names = self.shards()
        shard = self._shards[names[crc32(key.encode("utf-8", "replace")) % len(names)]]
        shard.records.append(StreamRecord(key, bytes(data)))

    def shards(self) -> tuple[str, ...]:
        """Names of the open shards."""
        self._fail()
        return tuple(name for name, shard in self._shards.items() if shard.open)

    def newest(self, shard: str) -> str:
        """An iterator at the end of a shard."""
        self._fail()
        return self._iterator(shard, len(self._shards[shard].records))

    def read(self, iterator: str) -> Page:
        """The records after an iterator."""
        self._fail()
        epoch, name, position = iterator.split(":")
        self.reads.append(name)
        if self.throttled_reads > 0:
            self.throttled_reads -= 1
            raise THROTTLED(where="a stream in memory", why="told to")
        shard = self._shards.get(name)
        if shard is None or int(epoch) != self._epoch:
            raise ITERATOR_LOST(where="a stream in memory", why="it expired")
        end = int(position) + self.page_records
        records = tuple(shard.records[int(position) : end])
        over = not shard.open and end >= len(shard.records)
        following = None if over else self._iterator(name, int(position) + len(records))
        return Page(records, following, 0.0)

    def reshard(self, shards: int) -> None:
        """Close all shards and open this number of others."""
        for shard in self._shards.values():
            shard.open = False
        # A name is never used again.
        self._shards.update((f"shard-{next(self._names)}", _Shard()) for _ in range(shards))

    def expire(self) -> None:
        """Invalidate all iterators and remove closed shards."""
        self._epoch += 1
        self._shards = {name: shard for name, shard in self._shards.items() if shard.open}

    def _iterator(self, shard: str, position: int) -> str:
        return f"{self._epoch}:{shard}:{position}"

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def no_stream() -> DependencyError:
    """The error of a stream that was deleted or never there."""
    return WORKLOAD_STREAM_MISSING(where="a test")


class MemoryObjectStore:
    """An object store in a dictionary."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self._writes: dict[str, int] = {}
        #: When objects were written, in seconds since 1970, where a test sets it.
        self.written: dict[str, float] = {}
        for path, data in (objects or {}).items():
            self.put(path, data)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below the folder `prefix`, in the order of their paths."""
        folder = f"{checked_path(prefix)}/" if prefix else ""
        for path in sorted(self.objects):
            if path.startswith(folder):
                yield self._info(path)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, after another one."""
        # Sorting what is sorted but for its end takes little time.
        paths = sorted(self.objects)
        number = max(bisect_left(paths, start), bisect_right(paths, after))
        for path in takewhile(lambda path: path.startswith(start), paths[number:]):
            yield self._info(path)

    def size(self, path: str) -> int:
        """Size in bytes."""
        return len(self.get(path))

    def open(self, path: str) -> BinaryIO:
        """A seekable reader."""
        return io.BytesIO(self.get(path))

    def get(self, path: str) -> bytes:
        """The whole object."""
        checked_path(path)
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def read(self, path: str, limit: int) -> Content:
        """The first `limit` bytes of the object."""
        return Content(self.get(path)[:limit], self._version(path))

    def put(self, path: str, data: bytes) -> None:
        """Write the object; replaces."""
        checked_path(path)
        self.objects[path] = bytes(data)
        self._writes[path] = self._writes.get(path, 0) + 1

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write the object unless it exists. True when this call created it."""
        if path in self.objects:
            return False
        self.put(path, data)
        return True

    def put_file_if_absent(self, path: str, file: BinaryIO) -> bool:
        """Write the contents of a file unless the object exists."""
        file.seek(0)
        return self.put_if_absent(path, file.read())

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        """Write the object if it has this version."""
        if path not in self.objects or self._version(path) != version:
            return False
        self.put(path, data)
        return True

    def delete(self, path: str) -> None:
        """Remove the object; a missing object is ignored."""
        checked_path(path)
        self.objects.pop(path, None)

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        """Remove the object if it has this version."""
        if path in self.objects and self._version(path) != version:
            return False
        self.delete(path)
        return True

    def _info(self, path: str) -> ObjectInfo:
        size, written = len(self.objects[path]), self.written.get(path)
        stamp = zlib.crc32(self.objects[path]) & 0xFFFFFF or 1
        return ObjectInfo(path, size, self._version(path), written, stamp)

    def _version(self, path: str) -> str:
        return str(self._writes.get(path, 0))


class MemorySourceStore(MemoryObjectStore):
    """A source store in memory, which counts the requests that S3 would need to list it."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.requests = 0
        super().__init__(objects)

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose paths begin with `start`, in pages of a thousand."""
        self.requests += 1
        for count, info in enumerate(super().beginning(start, after)):
            self.requests += 1 if count and count % 1000 == 0 else 0
            yield info

    def folders(self, start: str) -> Iterator[str]:
        """The folders that begin with `start`, in pages of a thousand."""
        folders = {
            path[: path.index("/", len(start)) + 1]
            for path in self.objects
            if path.startswith(start) and "/" in path[len(start) :]
        }
        self.requests += 1 + max(0, len(folders) - 1) // 1000
        return iter(sorted(folders))


class FakeClock:
    """A clock that moves only by `advance` and `sleep`."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """The time that was set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Move time forward without waiting."""
        self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Move time forward."""
        self._now += by
        self._elapsed += by.total_seconds()


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
        known_stream = self._streams[stream]
        assert not known_stream.shards[shard].closed, "a closed shard takes no records"
        for value in values:
            self._numbers += 1
            data = value.encode() if isinstance(value, str) else value
            record = ShardRecord(f"{self._numbers:020}", shard, data, self._clock.now())
            known_stream.records[shard].append(record)

    def replace(self, stream: str, old: Iterable[str], new: Iterable[str]) -> None:
        """Split or merge shards into others."""
        parents = tuple(old)
        known_stream = self._streams[stream]
        for shard in parents:
            known_stream.shards[shard] = replace(known_stream.shards[shard], closed=True)
        for shard in new:
            self._add(stream, Shard(shard, parents))

    def trim(self, stream: str) -> None:
        """Delete records older than the retention, and closed shards that are then empty."""
        known_stream = self._streams[stream]
        horizon = self._clock.now() - known_stream.keeps
        for shard, records in known_stream.records.items():
            known_stream.records[shard] = [
                record for record in records if record.arrived >= horizon
            ]
        for shard, records in list(known_stream.records.items()):
            if known_stream.shards[shard].closed and not records:
                del known_stream.records[shard], known_stream.shards[shard]

    def streams(self) -> tuple[str, ...]:
        """The names of all streams."""
        return tuple(self._streams)

    def stream(self, name: str) -> ShardedStream | None:
        """A stream as it is now."""
        known_stream = self._streams.get(name)
        if known_stream is None:
            return None
        return ShardedStream(
            known_stream.created, known_stream.keeps, tuple(known_stream.shards.values())
        )

    def after(self, stream: str, shard: str, number: str) -> str:
        """An iterator for what comes after a record."""
        del stream
        return f"{shard} after {number}"

    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        """An iterator for what arrived from a moment on."""
        records = self._streams[stream].records[shard]
        before = [
            record.number for record in records if moment is not None and record.arrived < moment
        ]
        return f"{shard} after {max(before, default='')}"

    def read(self, stream: str, iterator: str) -> ShardPage:
        """The records after an iterator."""
        self.reads += 1
        if self.failures:
            raise self.failures.pop(0)
        shard, _, number = iterator.split(" ")
        known_stream = self._streams[stream]
        left = [record for record in known_stream.records[shard] if record.number > number]
        page = tuple(left[: self._page])
        if known_stream.shards[shard].closed and len(left) <= self._page:
            return ShardPage(page)
        last = page[-1].number if page else number
        behind = timedelta(seconds=1 if len(left) > len(page) else 0)
        return ShardPage(page, f"{shard} after {last}", behind)

    def _add(self, stream: str, shard: Shard) -> None:
        self._streams[stream].shards[shard.id] = shard
        self._streams[stream].records[shard.id] = []


def expired() -> ExpiredError:
    """The error of a read at an old position."""
    return ITERATOR_EXPIRED()


def busy() -> BusyError:
    """The error of a read of a shard that is read too often."""
    return SHARD_BUSY()
