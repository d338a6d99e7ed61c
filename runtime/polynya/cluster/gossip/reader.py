"""Reading the workload stream at a limited rate.

All nodes of all clusters of a stage read all shards, and a shard of Kinesis answers five reads a
second with 2 MB a second, for all readers together (AWS, "Quotas and limits" of Kinesis Data
Streams). So the nodes share that rate: `read_wait` and `beat_wait` decide how often a node reads
and sends.

The stream is advisory, and the store has the truth. So `StreamReader` reads only new records, and
after any trouble with an iterator it continues with the newest ones and reports the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.streams import IteratorLostError, RecordStream, StreamRecord, ThrottledError

#: Half of what a shard answers: the other half is for other readers and for restarts.
READS_PER_SECOND: Final = 2.5
BYTES_PER_SECOND: Final = 1_000_000.0
#: Least time between two reads of a shard.
READ_SECONDS: Final = 2.0
#: Longest, before it is spread: an iterator of Kinesis is good for five minutes.
LONGEST_READ_SECONDS: Final = 220.0
#: Least and longest time between two heartbeats.
BEAT_SECONDS: Final = 10.0
LONGEST_BEAT_SECONDS: Final = 300.0
#: Longest pause after failures.
LONGEST_PAUSE_SECONDS: Final = 60.0
#: A pause is spread by so much of itself, so that nodes do not ask in step.
_SPREAD: Final = 0.25


@dataclass(frozen=True, slots=True)
class WaitTime:
    """How many seconds to wait, and why."""

    seconds: float
    reason: str


def read_wait(nodes: int, refusals: int, draw: float) -> WaitTime:
    """Time between two reads of one shard.

    Args:
        nodes: those that read the shard, this one included.
        refusals: how often in a row the stream refused or failed.
        draw: in [0, 1), spreads the pause.
    """
    share = max(nodes, 1) / READS_PER_SECOND
    usual = min(max(share, READ_SECONDS), LONGEST_READ_SECONDS)
    # What is drawn only lengthens the wait: all nodes together stay below their share.
    spread = 1 + _SPREAD * draw
    if refusals:
        longest = max(usual, LONGEST_PAUSE_SECONDS)
        pause = min(usual * 2 ** min(refusals, 16), longest)
        return WaitTime(pause * spread, f"refused {refusals} times")
    return WaitTime(usual * spread, f"{nodes} nodes share {READS_PER_SECOND:g} reads a second")


def beat_wait(nodes: int, shards: int, size_bytes: int, refusals: int, draw: float) -> WaitTime:
    """Time between two heartbeats.

    Args:
        nodes: those that send and read, this one included.
        shards: those of the stream.
        size_bytes: of the last heartbeat.
        refusals: how often in a row the stream refused or failed.
        draw: in [0, 1), spreads the pause.
    """
    spread = 1 + _SPREAD * draw
    # Each heartbeat is read by each node.
    share = max(nodes, 1) ** 2 * size_bytes / (BYTES_PER_SECOND * max(shards, 1))
    usual = min(max(share, BEAT_SECONDS), LONGEST_BEAT_SECONDS)
    if refusals:
        longest = max(usual, LONGEST_PAUSE_SECONDS)
        pause = min(usual * 2 ** min(refusals, 16), longest)
        return WaitTime(pause * spread, f"refused {refusals} times")
    return WaitTime(usual * spread, f"{nodes} nodes read {size_bytes} bytes of each")


#: Failures in a row after which a shard is read from its newest record again.
_PATIENCE: Final = 3
#: Records that are older than this are passed over, in seconds.
_OLD_SECONDS: Final = 120.0
#: Seconds after which shards are listed again although no known one has ended.
_LIST_SECONDS: Final = 300.0
#: What stands for the list of shards where failures are counted by shard.
_LIST: Final = ""


@dataclass(frozen=True, slots=True)
class News:
    """Records of one read, and the earliest moment at which they were put, in monotonic seconds.

    `gap`: there may have been others before them that were not read.
    """

    records: tuple[StreamRecord, ...] = ()
    at: float = 0.0
    gap: bool = False


@dataclass(slots=True)
class _ShardPosition:
    """Where a shard is read next, and when, in monotonic seconds."""

    iterator: str
    due: float


@dataclass(frozen=True, slots=True)
class _Failed:
    """How often in a row something failed; `trouble` when it is worth a report."""

    times: int
    trouble: str | None


class StreamReader:
    """Reads the shards of a stream; lives in one thread.

    `draw` gives numbers in [0, 1) that spread what nodes ask.
    """

    def __init__(self, stream: RecordStream, clock: Clock, draw: Callable[[], float]) -> None:
        self._stream, self._clock, self._draw = stream, clock, draw
        self._positions: dict[str, _ShardPosition] = {}
        self._list_at = clock.monotonic()
        self._failed: dict[str, _Failed] = {}

    @property
    def trouble(self) -> str | None:
        """Why something is not received at present, None when all is well."""
        failures = list(self._failed.values())
        return next((failure.trouble for failure in failures if failure.trouble is not None), None)

    @property
    def shards(self) -> int:
        """How many shards are read."""
        return len(self._positions)

    @property
    def due(self) -> float:
        """When the next turn is, in monotonic seconds."""
        return min([self._list_at, *(position.due for position in self._positions.values())])

    def turn(self, nodes: int) -> list[News]:
        """Read what is due; `nodes` share the stream, this one included."""
        now = self._clock.monotonic()
        found = []
        if now >= self._list_at:
            found.append(News(gap=self._list(now, nodes)))
        for shard, position in list(self._positions.items()):
            if now >= position.due:
                found.append(self._read(shard, position, nodes))
        return found

    def _list(self, now: float, nodes: int) -> bool:
        """Begin with shards that are new; returns whether there were any."""
        begun = False
        try:
            shards = self._stream.shards()
            for shard in shards:
                if shard not in self._positions:
                    # Spread over the time between two reads, as the nodes are too.
                    due = now + read_wait(nodes, 0, 0.0).seconds * self._draw()
                    self._positions[shard] = _ShardPosition(self._stream.newest(shard), due)
                    begun = True
        except PolynyaError as error:
            self._list_at = now + self._pause(_LIST, error, nodes)
            return begun
        # A shard that failed is well when it was read, or is there no longer.
        self._failed = {
            shard: why for shard, why in self._failed.items() if shard in self._positions
        }
        self._list_at = now + (_LIST_SECONDS if shards else read_wait(nodes, 1, 0.0).seconds)
        return begun

    def _read(self, shard: str, position: _ShardPosition, nodes: int) -> News:
        now = self._clock.monotonic()
        try:
            page = self._stream.read(position.iterator)
        except PolynyaError as error:
            pause = self._pause(shard, error, nodes)
            position.due = now + pause
            known_to_be_there = isinstance(error, ThrottledError)
            tired = self._failed[shard].times % _PATIENCE == 0
            if isinstance(error, IteratorLostError) or (tired and not known_to_be_there):
                self._begin_again(shard, now + pause)
            return News()
        self._failed.pop(shard, None)
        behind = page.behind_seconds or 0.0
        if page.following is None or behind > _OLD_SECONDS:
            self._begin_again(shard, now)
        else:
            position.iterator = page.following
            position.due = now + read_wait(nodes, 0, self._draw()).seconds
        return News(page.records, now - behind)

    def _begin_again(self, shard: str, at: float) -> None:
        """Drop the iterator of a shard, and list the shards soon."""
        del self._positions[shard]
        self._list_at = min(self._list_at, at)

    def _pause(self, what: str, error: PolynyaError, nodes: int) -> float:
        """Take note of a failure; returns the pause that follows it."""
        before = self._failed.get(what)
        times = before.times + 1 if before is not None else 1
        # One refusal among many readers is not trouble, nor is an expired iterator.
        passing = isinstance(error, IteratorLostError | ThrottledError) and times < _PATIENCE
        trouble = None if passing else f"{error.code}: {error.message}"
        self._failed[what] = _Failed(times, trouble)
        return read_wait(nodes, times, self._draw()).seconds
