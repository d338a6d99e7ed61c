"""How far streams have landed, and which landed batches may be removed.

A batch is removed when it is older than `keep` and every table that reads the folder has copied it.
A batch that some table has not copied is removed once it is older than `keep_unread` too: a
suspended table cannot fill the landing zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Protocol, TypeAlias

from polynya.formats.landed import StreamFooter
from polynya.model.config.stream_landing import StreamingLanding
from polynya.model.headers import StreamSource
from polynya.model.positions import DirectPosition
from polynya.store.object_store import ObjectStore
from polynya.streams.files import position as files
from polynya.streams.kafka import position as kafka
from polynya.streams.kinesis import plan as kinesis
from polynya.streams.landing import LandedLog, landed_tables
from polynya.streams.rest import position as rest
from polynya.streams.source import BEHIND_UNITS, Position, PositionSummary

#: What a position says, by the kind of its source.
_DESCRIBED: Final[Mapping[StreamSource, Callable[[Position], PositionSummary]]] = {
    "files": files.described,
    "http": rest.described,
    "kafka": kafka.described,
    "kinesis": kinesis.described,
}


#: The rate of a stream is that of so many batches.
RATE_BATCHES: Final = 10


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """How far one landed table is, as of its newest batch.

    Attributes:
        task, table, source: of the landing.
        landed_at: when the newest batch was written.
        batches: the number of the newest batch.
        records, size_bytes: landed since the beginning.
        lost_records: that the source had no more, since the beginning, at most.
        lost: where, from, to and why, of the newest batch.
        behind_records, behind_shards, behind_files, behind_pages: what the source had beyond the
            newest batch when that was landed, at most: Kafka counts records, Kinesis shards that
            have more; of a read of an API that goes on at least a page is left. None where a source
            counts something else.
        behind_seconds: age of what was behind it: of Kafka's newest record that was landed, of what
            a shard was read to last, of the oldest file that is left, of the begin of the read of
            an API. 0 when nothing was behind it, None where nobody knows.
        records_per_second, bytes_per_second: over the newest `RATE_BATCHES` batches; of one that is
            direct over the newest batch.
        positions: next position to read, by partition or shard.
        direct: nothing landed; `landed_at` and all others are of what the table has read.
    """

    task: str
    table: str
    source: StreamSource
    landed_at: str
    batches: int
    records: int
    size_bytes: int
    lost_records: int
    lost: tuple[dict[str, str], ...] = ()
    behind_records: int | None = None
    behind_shards: int | None = None
    behind_files: int | None = None
    behind_pages: int | None = None
    behind_seconds: float | None = None
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    positions: Mapping[str, str] = field(default_factory=dict)
    direct: bool = False

    @property
    def name(self) -> str:
        """`task/table`."""
        return f"{self.task}/{self.table}"


def stream_statuses(
    store: ObjectStore, task: StreamingLanding, now: datetime
) -> Iterator[StreamStatus]:
    """The landed tables of a task in name order. Reads two footers of each.

    Raises OperationError when a newest batch cannot be read.
    """
    for table, number in sorted(landed_tables(store, task.place).items()):
        log = LandedLog(store, task.place, table)
        yield status_of(log.footer(number), _some_before(log, number), now)


def _some_before(log: LandedLog, number: int) -> StreamFooter | None:
    """The batch from which on the rate is taken; one nearer where retention has removed it."""
    wanted = {max(1, number - RATE_BATCHES): None, number - 1: None}
    found = (log.footer_if_there(before) for before in wanted if 0 < before < number)
    return next((footer for footer in found if footer is not None), None)


def status_of(newest: StreamFooter, before: StreamFooter | None, now: datetime) -> StreamStatus:
    """The status that the newest batch says; `before`: the batch from which on the rate counts."""
    said = described(newest.source, newest.end)
    before = newest if before is None else before
    seconds = (newest.written_at - before.written_at).total_seconds()
    return StreamStatus(
        task=newest.task,
        table=newest.table,
        source=newest.source,
        landed_at=newest.written_at.astimezone(UTC).isoformat(),
        batches=newest.number,
        records=newest.totals.records,
        size_bytes=newest.totals.bytes,
        lost_records=newest.totals.lost,
        lost=tuple(
            {"at": gap.at, "from": gap.begin, "to": gap.end, "why": gap.why} for gap in newest.lost
        ),
        behind_records=_behind(newest.source, said, "records"),
        behind_shards=_behind(newest.source, said, "shards"),
        behind_files=_behind(newest.source, said, "files"),
        behind_pages=_behind(newest.source, said, "pages"),
        behind_seconds=behind_seconds(said, now),
        records_per_second=_rate(newest.totals.records - before.totals.records, seconds),
        bytes_per_second=_rate(newest.totals.bytes - before.totals.bytes, seconds),
        positions=said.places,
    )


def status_of_direct(newest: DirectPosition, now: datetime) -> StreamStatus:
    """The status of a stream that a table reads itself."""
    said = described(newest.source, newest.end)
    read_at = datetime.fromisoformat(newest.read_at)
    before = None if newest.before is None else datetime.fromisoformat(newest.before)
    seconds = 0.0 if before is None else (read_at - before).total_seconds()
    return StreamStatus(
        task=newest.task,
        table=newest.table,
        source=newest.source,
        landed_at=newest.read_at,
        batches=newest.number,
        records=newest.totals["records"],
        size_bytes=newest.totals["bytes"],
        lost_records=newest.totals["lost"],
        lost=tuple(dict(gap) for gap in newest.lost),
        behind_records=_behind(newest.source, said, "records"),
        behind_shards=_behind(newest.source, said, "shards"),
        behind_files=_behind(newest.source, said, "files"),
        behind_pages=_behind(newest.source, said, "pages"),
        behind_seconds=behind_seconds(said, now),
        records_per_second=_rate(newest.records, seconds),
        bytes_per_second=_rate(newest.bytes, seconds),
        positions=said.places,
        direct=True,
    )


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 3) if seconds > 0 else None


def described(source: StreamSource, position: Position) -> PositionSummary:
    """What a position of a kind of source says of itself."""
    return _DESCRIBED[source](position)


def behind_seconds(said: PositionSummary, now: datetime) -> float | None:
    """Age of what is beyond a position, 0 when nothing is, None where nobody knows."""
    if said.behind == 0:
        return 0.0
    if said.behind is None or said.unread_since is None:
        return None
    return max(0.0, (now - said.unread_since).total_seconds())


def _behind(source: StreamSource, said: PositionSummary, unit: str) -> int | None:
    return said.behind if BEHIND_UNITS[source] == unit else None


#: Most batches that are removed at once, so that a unit does not stand still.
MAX_REMOVED_BATCHES: Final = 200
#: The number of the first batch that some table has not copied; None: all have copied all.
FirstUnread: TypeAlias = Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class ExpiredBatches:
    """What was removed: how many batches, and how many of them some table had not copied.

    `kept` is the number of the first batch that is older than `keep` and stays because it is
    unread, None when there is none.
    """

    batches: int = 0
    unread: int = 0
    kept: int | None = None


class Numbered(Protocol):
    """A batch that knows its number."""

    @property
    def number(self) -> int:
        """From 1."""
        ...


class Batches(Protocol):
    """Landed batches with numbers."""

    def newest(self) -> Numbered | None:
        """The one with the highest number; None: nothing was landed."""
        ...

    def numbers(self) -> list[int]:
        """The numbers that there are."""
        ...

    def written_at(self, number: int) -> datetime | None:
        """When a batch was written; None when it is not there."""
        ...

    def delete(self, number: int) -> None:
        """Remove one that is not the newest."""
        ...


class Expiry:
    """Removes the batches of one log from the oldest on. `oldest` is remembered."""

    def __init__(
        self,
        log: Batches,
        keep: timedelta,
        keep_unread: timedelta | Literal["keep"] = timedelta(),
    ) -> None:
        self._log, self._keep = log, keep
        self._keep_unread = keep_unread if keep_unread == "keep" else max(keep, keep_unread)
        self._oldest: int | None = None

    def expire(self, now: datetime, first_unread: FirstUnread = lambda: None) -> ExpiredBatches:
        """Remove what may go. `first_unread` is asked when something is old enough.

        Batches were written in the order of their numbers, so it ends at the first that stays.
        """
        newest = self._log.newest()
        if newest is None:
            return ExpiredBatches()
        if self._oldest is None:
            self._oldest = min(self._log.numbers(), default=newest.number)
        unread: int | None = None
        removed = removed_unread = 0
        while self._oldest < newest.number and removed < MAX_REMOVED_BATCHES:
            written = self._log.written_at(self._oldest)
            if written is not None:
                if written > now - self._keep:
                    break
                unread = first_unread() if not removed else unread
                is_unread = unread is not None and self._oldest >= unread
                if is_unread and self._stays(written, now):
                    return ExpiredBatches(removed, removed_unread, self._oldest)
                self._log.delete(self._oldest)
                removed += 1
                removed_unread += is_unread
            self._oldest += 1
        return ExpiredBatches(removed, removed_unread)

    def _stays(self, written: datetime, now: datetime) -> bool:
        """Whether a batch that some table has not copied is kept for it."""
        return self._keep_unread == "keep" or written > now - self._keep_unread
