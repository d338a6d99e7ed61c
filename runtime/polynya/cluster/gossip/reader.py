"""Reads all shards of a stream from now on, each at its pace.

The stream is advisory and the store has the truth. So whatever goes wrong with an iterator, reading
goes on with the newest records, and whoever wants to know is told that there was a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from polynya.cluster.gossip.pace import read_wait
from polynya.model.errors import PolynyaError
from polynya.store.clock import Clock
from polynya.store.record_stream import IteratorLostError, Record, RecordStream, ThrottledError

#: After so many failures in a row a shard is begun again.
_PATIENCE: Final = 3
#: Records that are older than this are passed over, in seconds.
_OLD_SECONDS: Final = 120.0
#: Shards are listed again after so many seconds, although no known one has ended.
_LIST_SECONDS: Final = 300.0
#: What stands for the list of shards where failures are counted by shard.
_LIST: Final = ""


@dataclass(frozen=True, slots=True)
class News:
    """Records of one read, and the earliest moment at which they were put, in monotonic seconds.

    `gap`: there may have been others before them that were not read.
    """

    records: tuple[Record, ...] = ()
    at: float = 0.0
    gap: bool = False


@dataclass(slots=True)
class _Place:
    """Where a shard is read next, and when, in monotonic seconds."""

    iterator: str
    due: float


@dataclass(frozen=True, slots=True)
class _Failed:
    """How often in a row something failed; `trouble` when somebody should know why."""

    times: int
    trouble: str | None


class StreamReader:
    """Reads the shards of a stream; lives in one thread.

    `draw` gives numbers in [0, 1) that spread what nodes ask.
    """

    def __init__(self, stream: RecordStream, clock: Clock, draw: Callable[[], float]) -> None:
        self._stream, self._clock, self._draw = stream, clock, draw
        self._places: dict[str, _Place] = {}
        self._list_at = clock.monotonic()
        self._failed: dict[str, _Failed] = {}

    @property
    def trouble(self) -> str | None:
        """Why something is not heard at present, None when all is well."""
        said = (one.trouble for one in list(self._failed.values()))
        return next((trouble for trouble in said if trouble is not None), None)

    @property
    def shards(self) -> int:
        """How many shards are read."""
        return len(self._places)

    @property
    def due(self) -> float:
        """When the next turn is, in monotonic seconds."""
        return min([self._list_at, *(place.due for place in self._places.values())])

    def turn(self, nodes: int) -> list[News]:
        """Read what is due; `nodes` share the stream, this one included."""
        now = self._clock.monotonic()
        found = []
        if now >= self._list_at:
            found.append(News(gap=self._list(now, nodes)))
        for shard, place in list(self._places.items()):
            if now >= place.due:
                found.append(self._read(shard, place, nodes))
        return found

    def _list(self, now: float, nodes: int) -> bool:
        """Begin with shards that are new; returns whether there were any."""
        begun = False
        try:
            shards = self._stream.shards()
            for shard in shards:
                if shard not in self._places:
                    # Spread over the time between two reads, as the nodes are too.
                    due = now + read_wait(nodes, 0, 0.0).seconds * self._draw()
                    self._places[shard] = _Place(self._stream.newest(shard), due)
                    begun = True
        except PolynyaError as error:
            self._list_at = now + self._pause(_LIST, error, nodes)
            return begun
        # A shard that failed is well when it was read, or is there no longer.
        self._failed = {one: why for one, why in self._failed.items() if one in self._places}
        self._list_at = now + (_LIST_SECONDS if shards else read_wait(nodes, 1, 0.0).seconds)
        return begun

    def _read(self, shard: str, place: _Place, nodes: int) -> News:
        now = self._clock.monotonic()
        try:
            page = self._stream.read(place.iterator)
        except PolynyaError as error:
            pause = self._pause(shard, error, nodes)
            place.due = now + pause
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
            place.iterator = page.following
            place.due = now + read_wait(nodes, 0, self._draw()).seconds
        return News(page.records, now - behind)

    def _begin_again(self, shard: str, at: float) -> None:
        """Its place is of no use any more: look soon which shards there are."""
        del self._places[shard]
        self._list_at = min(self._list_at, at)

    def _pause(self, what: str, error: PolynyaError, nodes: int) -> float:
        """Take note of a failure; returns the pause that follows it."""
        before = self._failed.get(what)
        times = before.times + 1 if before is not None else 1
        # One refusal among many readers is no trouble, nor is a place that has grown old.
        passing = isinstance(error, IteratorLostError | ThrottledError) and times < _PATIENCE
        trouble = None if passing else f"{error.code}: {error.message}"
        self._failed[what] = _Failed(times, trouble)
        return read_wait(nodes, times, self._draw()).seconds
