"""Port for streams in shards, as Kinesis has them, to read every record."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from polynya.model.error_catalogue.stream_sources import SHARD_ITERATOR_EXPIRED, SHARD_THROTTLED
from polynya.model.errors import DependencyError


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a stream.

    Attributes:
        id: its name.
        parents: the shards that were split or merged into it, if they are still known.
        closed: it takes no more records.
        hashes: the lowest and the highest hash of its keys, None where nobody says.
    """

    id: str
    parents: tuple[str, ...] = ()
    closed: bool = False
    hashes: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ShardedStream:
    """A stream: when it was made, how long it keeps records, and its shards, also closed ones."""

    created: datetime
    keeps: timedelta
    shards: tuple[Shard, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """A record. `number` is its place in the shard: a text that only the stream understands."""

    number: str
    key: str
    data: bytes
    arrived: datetime


@dataclass(frozen=True, slots=True)
class ShardPage:
    """Some records of a shard.

    Attributes:
        records: in their order. There may be none although more follow.
        following: iterator for what comes after them; None: the shard is closed and read to its
            end.
        behind: how much older than the newest record of the shard the end of this page is.
    """

    records: tuple[ShardRecord, ...] = ()
    following: str | None = None
    behind: timedelta = field(default_factory=timedelta)


class ExpiredError(DependencyError):
    """Raised when the iterator of a shard is too old: ask for another one at the same position."""


class BusyError(DependencyError):
    """Raised when a shard was read more often than it allows: retry later."""


ITERATOR_EXPIRED: Final = SHARD_ITERATOR_EXPIRED.raising(ExpiredError)
SHARD_BUSY: Final = SHARD_THROTTLED.raising(BusyError)


class Shards(Protocol):
    """Streams by name. Usable from many threads. All methods may raise DependencyError."""

    def streams(self) -> tuple[str, ...]:
        """The names of all streams."""
        ...

    def stream(self, name: str) -> ShardedStream | None:
        """A stream as it is now, None when there is none of this name."""
        ...

    def after(self, stream: str, shard: str, number: str) -> str:
        """An iterator for what comes after a record."""
        ...

    def since(self, stream: str, shard: str, moment: datetime | None) -> str:
        """An iterator for what arrived from a moment on; None: for all that is there."""
        ...

    def read(self, stream: str, iterator: str) -> ShardPage:
        """What follows an iterator.

        Raises:
            ExpiredError: the iterator is of no use any more.
            BusyError: asked too often; nothing was skipped.
        """
        ...
