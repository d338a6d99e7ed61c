"""What has landed and is not copied yet, what streams have beyond it, and how long both will take.

Every look at the landing zone is reported here. What was unread at one look and no longer is at
the next was copied in between: that gives the speed. Of a stream each landed batch gives it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.formats.batch import FilePart

#: Speed of a dataset that was not measured yet, in bytes per second.
FIRST_GUESS: Final = 1_000_000.0
#: Size of a record of a stream of which none was landed yet, in bytes.
_FIRST_RECORD_BYTES: Final = 1000.0
#: Weight of what was measured before, each time something is added to it.
_FADING: Final = 0.8
#: What a node has to do in any case while a service works for it, in seconds. More than a group may
#: have when its last node is ended, less than for two nodes, and far from what adds one.
ELSEWHERE_SECONDS: Final = 90.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits. `seconds` is the work in it, `oldest_seconds` how long the oldest file waits.

    A file waits from the moment at which it was first seen. It counts whole until it is read whole.
    What a stream has beyond its landed batches counts as a file, which waits since the stream was
    landed to its end. `elsewhere`: a service does it, which more nodes make no faster; and while a
    run of that is under way, or wanted, it `keeps_node`.
    """

    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    oldest_seconds: float = 0.0
    elsewhere: bool = False
    keeps_node: bool = False

    @property
    def node_seconds(self) -> float:
        """What of the work is a node's: all of it, or to follow the service that does it."""
        if self.elsewhere:
            return ELSEWHERE_SECONDS if self.keeps_node else 0.0
        return self.seconds


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken of a stream since the job began: messages, and their bytes.

    `behind_seconds` is the age of what the source has beyond that, 0 when it has nothing.
    """

    records: int = 0
    size_bytes: int = 0
    behind_seconds: float = 0.0


@dataclass(slots=True)
class _Subject:
    """One dataset: its unread files with their size and since when, and what was measured."""

    files: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    looked_at: float = 0.0
    done_bytes: float = 0.0
    busy_seconds: float = 0.0

    def rate(self) -> float:
        if self.done_bytes <= 0 or self.busy_seconds <= 0:
            return FIRST_GUESS
        return self.done_bytes / self.busy_seconds


@dataclass(slots=True)
class _Stream:
    """One landed table: records beyond it and since when there are any, and what was measured.

    `unread_since` is when the oldest of these came, as far as the source tells.
    """

    records: int = 0
    since: float = 0.0
    unread_since: float | None = None
    done_records: float = 0.0
    done_bytes: float = 0.0
    busy_seconds: float = 0.0
    taken: Taken = field(default_factory=Taken)

    def behind_seconds(self, now: float) -> float:
        if not self.records:
            return 0.0
        told = self.since if self.unread_since is None else self.unread_since
        return max(now - told, 0.0)

    def waiting(self, now: float) -> Waiting:
        if not self.records:
            return Waiting()
        known = self.done_records > 0 and self.done_bytes > 0
        record = self.done_bytes / self.done_records if known else _FIRST_RECORD_BYTES
        measured = self.done_bytes > 0 and self.busy_seconds > 0
        rate = self.done_bytes / self.busy_seconds if measured else FIRST_GUESS
        size = self.records * record
        return Waiting(1, int(size), size / rate, max(now - self.since, 0.0))


class Backlog:
    """The backlog of one job. Told by the threads of the job, read by others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subjects: dict[str, _Subject] = {}
        self._streams: dict[str, _Stream] = {}
        self._away: bool | None = None

    def elsewhere(self, *, wanted: bool) -> None:
        """A service does the work of this job; whether a run is under way, or wanted."""
        self._away = wanted

    def found(self, subject: str, parts: Iterable[FilePart], now: float) -> None:
        """Take note of the unread files of a dataset; `now` in monotonic seconds."""
        with self._lock:
            before = self._subjects.setdefault(subject, _Subject())
            files = {
                part.path: (part.size, before.files.get(part.path, (0, now))[1]) for part in parts
            }
            if before.files:
                gone = sum(size for path, (size, _) in before.files.items() if path not in files)
                before.done_bytes = _FADING * before.done_bytes + gone
                before.busy_seconds = _FADING * before.busy_seconds + now - before.looked_at
            before.files, before.looked_at = files, now

    def beyond(
        self, subject: str, records: int, now: float, behind_seconds: float | None = None
    ) -> None:
        """Take note of the records that a stream has beyond a landed table.

        `behind_seconds` is their age, None where it was not asked for.
        """
        with self._lock:
            stream = self._streams.setdefault(subject, _Stream())
            if records and not stream.records:
                stream.since, stream.unread_since = now, None
            stream.records = records
            if behind_seconds is not None:
                stream.unread_since = now - behind_seconds

    def landed(self, subject: str, records: int, size_bytes: int, seconds: float) -> None:
        """Learn from a batch that was landed how large records are, and how fast it goes."""
        with self._lock:
            stream = self._streams.setdefault(subject, _Stream())
            stream.done_records = _FADING * stream.done_records + records
            stream.done_bytes = _FADING * stream.done_bytes + size_bytes
            stream.busy_seconds = _FADING * stream.busy_seconds + seconds
            taken = stream.taken
            stream.taken = Taken(taken.records + records, taken.size_bytes + size_bytes)

    def streams(self, now: float) -> dict[str, Taken]:
        """What was taken of each stream, and how old what is beyond it is by now."""
        with self._lock:
            return {
                name: replace(one.taken, behind_seconds=one.behind_seconds(now))
                for name, one in self._streams.items()
            }

    def resume(self, now: float) -> None:
        """The job goes on; the time since it last looked was not spent on its work."""
        with self._lock:
            for subject in self._subjects.values():
                subject.looked_at = now

    def seconds_left(self, subject: str) -> float | None:
        """Time that the rest of a dataset takes, None before its speed was measured."""
        with self._lock:
            one = self._subjects.get(subject)
            if one is None or one.done_bytes <= 0 or one.busy_seconds <= 0:
                return None
            return sum(size for size, _ in one.files.values()) / one.rate()

    def waiting(self, now: float) -> Waiting:
        """What waits in all datasets and streams together."""
        with self._lock:
            found = [(one.files.values(), one.rate()) for one in self._subjects.values()]
            streams = [one.waiting(now) for one in self._streams.values()]
        sizes = [sum(size for size, _ in files) for files, _ in found]
        since = [moment for files, _ in found for _, moment in files]
        ages = [max(now - min(since), 0.0)] if since else []
        return Waiting(
            files=len(since) + sum(one.files for one in streams),
            size_bytes=sum(sizes) + sum(one.size_bytes for one in streams),
            seconds=sum(size / rate for size, (_, rate) in zip(sizes, found, strict=True))
            + sum(one.seconds for one in streams),
            oldest_seconds=max([*ages, *(one.oldest_seconds for one in streams)], default=0.0),
            elsewhere=self._away is not None,
            keeps_node=self._away is True,
        )
