"""What has landed for a task whose datasets share one folder, listed once for all of them.

Five hundred datasets that each list the whole folder every two seconds would do nothing else, and a
folder that nobody empties takes longer to list each day: a request to S3 for each thousand files, a
question to the system for each. So where that takes time, mostly the ends are listed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from polynya.engine.work.turns.unit import Turn
from polynya.formats.files.discovery import Landed
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo

#: A list that is younger, in seconds, is taken by the next dataset too...
_FRESH_SECONDS: Final = 1.0
#: ...or this young, by one for which something has landed.
_NEWS_SECONDS: Final = 0.1
#: All is listed at least so often, in seconds: then a file is seen whose name is not at the end,
#: and one that changed long after it was read.
WHOLE_SECONDS: Final = 60.0
#: A whole list that takes less, in seconds, is made each time...
_CHEAP_SECONDS: Final = 0.02
#: ...and so is one when the ends take more than this part of its time. A single list of them that
#: had to wait for something else says nothing: of so many the fastest counts.
_WORTH: Final = 0.5
_TRIES: Final = 3
#: So many files at the end are looked at again: they may still grow.
_END: Final = 20
#: After a new file was met before the end, all is listed each time for so many seconds.
_DOUBT_SECONDS: Final = 3600.0


class Zone(Protocol):
    """Where files land."""

    def files(self) -> list[ObjectInfo]:
        """All of them."""
        ...

    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        """Those whose path begins with `start` and comes after another one."""
        ...


@dataclass(slots=True)
class _Known:
    """The newest list, when all was listed last, and what that showed of the names.

    `judged_at` is when the time of the ends was forgotten, so that they get another chance;
    `whole_seconds` is what the last whole list took, `ends_seconds` what those of ends took since.
    """

    files: Landed = field(default_factory=Landed)
    whole_at: float | None = None
    doubted_at: float | None = None
    judged_at: float | None = None
    whole_seconds: float = 0.0
    ends_seconds: list[float] = field(default_factory=list)


class SharedLook:
    """The newest list of files.

    It only ever gets newer: a position that forgot a file because it left never sees it again.
    `starts` are how the paths of each dataset begin. A dataset is read in name order, so that most
    of what lands is at its end.
    """

    def __init__(self, zone: Zone, clock: Clock, starts: Collection[str]) -> None:
        self._zone = zone
        self._clock = clock
        self._starts = outermost(starts)
        self._lock = threading.Lock()
        self._known = _Known()
        self._at: float | None = None

    def files(self, turn: Turn) -> Landed:
        """All that has landed; a moment ago unless the turn is to copy all at once."""
        with self._lock:
            now = self._clock.monotonic()
            fresh = _NEWS_SECONDS if turn.news else _FRESH_SECONDS
            if turn.at_once or self._at is None or now - self._at >= fresh:
                if turn.at_once or self._is_whole_due(now):
                    self._list_whole(now)
                else:
                    self._list_ends(now)
                self._at = now
            return self._known.files

    def paths(self) -> frozenset[str]:
        """Every file of the newest list."""
        with self._lock:
            return self._known.files.paths

    def _is_whole_due(self, now: float) -> bool:
        known = self._known
        if known.whole_at is None or now - known.whole_at >= WHOLE_SECONDS:
            return True
        if known.doubted_at is not None and now - known.doubted_at < _DOUBT_SECONDS:
            return True
        if known.whole_seconds < _CHEAP_SECONDS:
            return True
        slow = known.whole_seconds * _WORTH
        return len(known.ends_seconds) >= _TRIES and min(known.ends_seconds) > slow

    def _list_whole(self, now: float) -> None:
        known, found = self._known, Landed(self._zone.files())
        known.whole_seconds = self._clock.monotonic() - now
        ends = {start: _path(known.files.below(start), 1) for start in self._starts}
        if known.whole_at is not None and comes_between(found, known.files.paths, ends):
            known.doubted_at = now
        known.files, known.whole_at = found, now
        if known.judged_at is None or now - known.judged_at >= WHOLE_SECONDS:
            known.judged_at = now
            known.ends_seconds.clear()

    def _list_ends(self, now: float) -> None:
        files = self._known.files
        ends = {start: _path(files.below(start), _END) for start in self._starts}
        self._known.files = files.with_ends(
            (start, end, self._zone.beginning(start, end)) for start, end in ends.items()
        )
        self._known.ends_seconds.append(self._clock.monotonic() - now)


def outermost(starts: Iterable[str]) -> tuple[str, ...]:
    """The beginnings without those that another one covers."""
    found: list[str] = []
    for start in sorted(set(starts)):
        if not found or not start.startswith(found[-1]):
            found.append(start)
    return tuple(found)


def comes_between(found: Landed, known: Collection[str], ends: Mapping[str, str]) -> bool:
    """Whether a file that nobody knew stands before what was the end of its dataset.

    `ends` has the last path of each beginning, "" where there was none.
    """
    return any(
        one.path < end and one.path not in known
        for start, end in ends.items()
        for one in found.below(start)
    )


def _path(files: Sequence[ObjectInfo], number: int) -> str:
    """The path of the file that is so many files from the end, "" where there are fewer."""
    return files[-number].path if len(files) >= number else ""
