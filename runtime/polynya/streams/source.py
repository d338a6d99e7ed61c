"""The protocol of a source of streams, and the landed table of each stream.

A position is a JSON object that only its source understands. It stands in the landed batch next to
the records before it, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from polynya.formats.landed import Lost
from polynya.model.config.stream_landing import WILDCARD, Into, landed_table, matches
from polynya.model.error_catalogue.streams import TOPICS_SHARE_TABLE
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.headers import StreamSource
from polynya.model.names import shown


def taken(patterns: Iterable[str], streams: Iterable[str]) -> tuple[str, ...]:
    """The streams that any of the patterns takes, in name order."""
    wanted = tuple(patterns)
    return tuple(
        sorted(
            stream for stream in set(streams) if any(matches(pattern, stream) for pattern in wanted)
        )
    )


def named(patterns: Iterable[str]) -> tuple[str, ...]:
    """The streams that are named, not only met by a wildcard."""
    return tuple(pattern for pattern in patterns if WILDCARD not in pattern)


def by_table(
    into: Into, streams: Iterable[str], where: str
) -> tuple[dict[str, tuple[str, ...]], list[ConfigError]]:
    """The streams of each landed table, and an error for each stream that has none.

    When two of them want one table, the first in name order keeps it.
    """
    if into.table is not None:
        taken_by_it = tuple(sorted(streams))
        return ({into.table: taken_by_it} if taken_by_it else {}), []
    tables: dict[str, tuple[str, ...]] = {}
    errors = []
    for stream in sorted(streams):
        table = landed_table(stream)
        owner = tables.setdefault(table, (stream,))[0]
        if owner != stream:
            errors.append(
                TOPICS_SHARE_TABLE(
                    where=where, landed=shown(owner), refused=shown(stream), table=table
                )
            )
    return tables, errors


Position: TypeAlias = Mapping[str, Any]
#: Whether all records of one of two places (partitions, shards) came before those of the other, so
#: that they are always read in that order.
InOrder: TypeAlias = Callable[[str, str], bool]

#: What each kind of source counts of what it has beyond a position.
BEHIND_UNITS: Final[Mapping[StreamSource, str]] = {
    "files": "files",
    "http": "pages",
    "kafka": "records",
    "kinesis": "shards",
}


@dataclass(frozen=True, slots=True)
class PositionSummary:
    """What a position says of itself, as far as its source knows.

    Attributes:
        places: next position to read, by partition or shard.
        behind: what the source had beyond it when it was written, at most, in `BEHIND_UNITS`; None
            where it did not tell.
        unread_since: all that came before this moment was read, or nearly: what is beyond it is
            about as old.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    behind: int | None = None
    unread_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LandingLimits:
    """How much one landed batch holds at most; one record is always taken."""

    max_records: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Next:
    """What is to be read next, decided from what the source said it has.

    Attributes:
        end: position when all of it is read.
        records: at most so many are read; 0: there is nothing to read.
        moves: the position has to be written down even if no record is read.
        behind: what the source has after `end`, at most, in `BEHIND_UNITS`.
        lost: what the source has no more although it was not read.
        lost_records: how many records that were, as far as the source tells.
        reads: what the source itself needs to read it.
    """

    end: Position
    records: int
    moves: bool
    behind: int
    lost: tuple[Lost, ...] = ()
    lost_records: int = 0
    reads: Any = None

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to land."""
        return not self.records and not self.moves


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """What was read: the columns of a landed batch, the position after them, and their bytes.

    `behind` is what the source has after them, at most, in `BEHIND_UNITS`.
    """

    rows: pa.Table
    end: Position
    size_bytes: int
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Ready:
    """What was read after a position, until somebody takes it.

    For sources of which only reading tells what there is: `Stream.next` reads, and keeps it.
    """

    position: Position | None
    next: Next


class Stream(Protocol):
    """What one landed table is read from. One thread at a time uses it."""

    def next(
        self,
        streams: tuple[str, ...],
        position: Position | None,
        limits: LandingLimits,
        *,
        once: bool,
    ) -> Next:
        """What is to be read after a position.

        Args:
            streams: what there is now for the table, as `MessageSource.tables` says.
            position: None: nothing was ever landed.
            limits: of a landed batch.
            once: read nothing that came after the first call.
        """
        ...

    def read(self, wanted: Next, limits: LandingLimits) -> ReadMessages:
        """Read it, or less when a limit is reached."""
        ...


@dataclass(frozen=True, slots=True)
class Again:
    """A landed table's source, read once more up to where a landed batch ends.

    Attributes:
        stream: what it is read from, `once`. It tells what the source has no more.
        streams: all that there were.
        begin: position from which on it is read.
    """

    stream: Stream
    streams: tuple[str, ...]
    begin: Position


@dataclass(frozen=True, slots=True)
class AvailableStreams:
    """The streams that there are now by the landed table that takes them; why some are refused."""

    tables: Mapping[str, tuple[str, ...]]
    refused: PolynyaError | None = None


class MessageSource(Protocol):
    """A kind of source, as one task reads it."""

    @property
    def kind(self) -> StreamSource:
        """What landed batches call it."""
        ...

    def find(self) -> AvailableStreams:
        """The streams that there are now."""
        ...

    def is_asked_for(self, stream: str) -> bool:
        """Whether the task names a stream, not only a wildcard that meets it."""
        ...

    def known(self, position: Position) -> frozenset[str]:
        """The streams that a position knows."""
        ...

    def reread_from(self, began: Position) -> Position:
        """The position from which all is read again that was read since it began.

        `Stream.next` tells of it what the source has no more.
        """
        ...

    def again(self, table: str, began: Position, until: Position) -> Again:
        """What a landed table was read from, from where that began until a position.

        Raises OperationError POLYNYA-STR-071 where the source cannot give the same again.
        """
        ...

    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """How records in different places of streams are ordered."""
        ...

    def stream(self, table: str) -> Stream:
        """What a landed table is read from."""
        ...
