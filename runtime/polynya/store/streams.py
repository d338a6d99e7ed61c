"""The stream by which nodes publish their state: its port, and its form in an object store.

The stream is advisory: losing a record changes nothing. Readers work with iterators, as in Kinesis:
texts that only the stream understands.

In an object store each writer has a ring of `SLOTS` objects and overwrites them in turn, so that
the store never fills up; a reader that looks too seldom misses overwritten records. A reader lists
the objects and reads those whose version changed since its last look. It removes objects that
nobody has written to for an hour.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import quote, unquote
from uuid import uuid4

from polynya.model.error_catalogue.cluster import (
    WORKLOAD_FOLDER_UNUSABLE,
    WORKLOAD_POSITION_LOST,
    WORKLOAD_STREAM_THROTTLED,
)
from polynya.model.errors import DependencyError, OperationError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo, ObjectStore


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A record as it was put: nobody has checked what is in it."""

    key: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Some records of a shard.

    Attributes:
        records: in the order in which the stream took them.
        following: iterator for what comes after them, None when the shard is closed and was read to
            its end.
        behind_seconds: how old these records are at most, None when the stream does not know.
    """

    records: tuple[StreamRecord, ...]
    following: str | None
    behind_seconds: float | None = None


class IteratorLostError(DependencyError):
    """Raised when an iterator is too old, or what it points at is gone: begin with the newest."""


class ThrottledError(DependencyError):
    """Raised when a stream was asked more often than it answers; the records are still there."""


class RecordStream(Protocol):
    """Records under keys, in shards."""

    def put(self, key: str, data: bytes) -> None:
        """Add a record; records of one key keep their order.

        Raises:
            PolynyaError: it was not added, as far as is known.
        """
        ...

    def shards(self) -> tuple[str, ...]:
        """Names of the shards that take records now.

        Raises:
            DependencyError: the stream does not answer, or there is none.
        """
        ...

    def newest(self, shard: str) -> str:
        """An iterator for what is put into a shard from now on.

        Raises:
            DependencyError: the stream does not answer, or the shard is gone.
        """
        ...

    def read(self, iterator: str) -> Page:
        """What follows an iterator, as much as the stream gives at once.

        Raises:
            IteratorLostError: the iterator is of no use any more (POLYNYA-AGT-040).
            ThrottledError: asked too often (POLYNYA-AGT-041).
            DependencyError: the stream does not answer.
        """
        ...


ITERATOR_LOST: Final = WORKLOAD_POSITION_LOST.raising(IteratorLostError)
THROTTLED: Final = WORKLOAD_STREAM_THROTTLED.raising(ThrottledError)

#: Objects of each writer: more than it puts between two looks of a reader.
SLOTS: Final = 16
#: An object is removed when it has not changed for this number of seconds.
STALE_SECONDS: Final = 3600.0
#: So much of an object is read.
MAX_RECORD_BYTES: Final = 64 * 1024

_FOLDER: Final = "records"
_SHARD: Final = "all"
#: So many readers of one process are remembered.
_MAX_READERS: Final = 8


@dataclass(frozen=True, slots=True)
class _Seen:
    """Version of an object at the last look, and since when, in monotonic seconds."""

    version: str
    since: float


class ObjectStream:
    """Records as objects below `records/`. Usable from many threads; an iterator from one."""

    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        # A process that restarts must not overwrite what the one before has just published.
        self._writer = uuid4().hex[:12]
        self._written = itertools.count(1)
        self._numbers = itertools.count(1)
        self._readers: dict[str, dict[str, _Seen]] = {}
        self._lock = threading.Lock()

    def put(self, key: str, data: bytes) -> None:
        """Write over the oldest record of this writer."""
        number = next(self._written)
        path = f"{_FOLDER}/{self._writer}/{number % SLOTS:02}"
        with _failures("write a record"):
            self._store.put(path, b"%d %s\n%s" % (number, quote(key, safe="").encode(), data))

    def shards(self) -> tuple[str, ...]:
        """The only one."""
        return (_SHARD,)

    def newest(self, shard: str) -> str:
        """Take note of all that is there."""
        now = self._clock.monotonic()
        seen = {info.path: _Seen(info.version, now) for info in self._listed()}
        with self._lock:
            iterator = f"{shard}-{next(self._numbers)}"
            self._readers[iterator] = seen
            while len(self._readers) > _MAX_READERS:
                del self._readers[next(iter(self._readers))]
        return iterator

    def read(self, iterator: str) -> Page:
        """What was written since the last look."""
        with self._lock:
            before = self._readers.get(iterator)
        if before is None:
            raise ITERATOR_LOST(where="the workload stream", why="this reader was forgotten")
        now = self._clock.monotonic()
        listed = self._listed()
        changed = [info for info in listed if _version(before, info) != info.version]
        found = sorted(record for info in changed for record in self._record(info))
        seen = {info.path: before.get(info.path, _Seen("", now)) for info in listed}
        seen.update((info.path, _Seen(info.version, now)) for info in changed)
        self._remove_stale(seen, now)
        with self._lock:
            self._readers[iterator] = seen
        return Page(tuple(StreamRecord(key, data) for _, _, key, data in found), iterator, 0.0)

    def _record(self, one: ObjectInfo) -> Iterator[tuple[str, int, str, bytes]]:
        """Its writer, number, key and data; nothing when it went away or is not ours to read."""
        try:
            with _failures("read a record"):
                data = self._store.read(one.path, MAX_RECORD_BYTES).data
        except (FileNotFoundError, OperationError):
            return
        head, _, rest = data.partition(b"\n")
        number, _, key = head.partition(b" ")
        if not (number.isdigit() and len(number) < 20):
            # It is handed on as it is: the reader counts invalid records.
            number, key, rest = b"0", b"", data
        writer = one.path.rpartition("/")[0]
        yield writer, int(number), unquote(key.decode("ascii", "replace")), rest

    def _listed(self) -> list[ObjectInfo]:
        with _failures("list the records"):
            return list(self._store.list(_FOLDER))

    def _remove_stale(self, seen: dict[str, _Seen], now: float) -> None:
        stale = [path for path, one in seen.items() if now - one.since > STALE_SECONDS]
        for path in stale:
            with _failures("remove an old record"):
                self._store.delete_if_unchanged(path, seen.pop(path).version)


def _version(seen: dict[str, _Seen], one: ObjectInfo) -> str | None:
    return seen[one.path].version if one.path in seen else None


@contextmanager
def _failures(action: str) -> Iterator[None]:
    """Errors of the file system as those of a stream; what is only missing stays what it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        where = str(error.filename or "")
        raise WORKLOAD_FOLDER_UNUSABLE(where=where, why=error.strerror, action=action) from error
