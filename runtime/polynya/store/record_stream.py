"""The stream by which nodes tell their state. Advisory: what is lost in it changes nothing.

Who reads it works with iterators, as Kinesis does: texts that only the stream understands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from polynya.model.errors import DependencyError


@dataclass(frozen=True, slots=True)
class Record:
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

    records: tuple[Record, ...]
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


def iterator_lost(where: str, why: str) -> IteratorLostError:
    """The error of an iterator that is of no use any more."""
    return IteratorLostError(
        "POLYNYA-AGT-040",
        "the place in the workload stream was lost",
        where=where,
        why=why,
        state="some heartbeats of other nodes were not read; no data and no ownership depends on"
        " them",
        fix="nothing: the node goes on with the newest records",
    )


def throttled(where: str, why: str) -> ThrottledError:
    """The error of a stream that is asked too often."""
    return ThrottledError(
        "POLYNYA-AGT-041",
        "the workload stream is asked more often than it answers",
        where=where,
        why=why,
        state="records wait in the stream; no data and no ownership depends on them",
        fix="nothing: the node asks less often; when it lasts, see who else reads this stream",
    )
