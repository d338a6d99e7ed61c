"""The listing of a landing folder, which all datasets of a task share.

If 500 datasets each listed the whole folder every two seconds, they would do nothing else. A folder
that is never emptied also takes longer to list each day: one request to S3 per thousand files, one
system call per file. So where a whole listing is slow, most listings cover only the end of each
dataset's names.

S3 charges for each list request. So while nothing lands there, looks become rarer (`idle_wait`),
and all landing folders of a process together stay below one request a second (`idle_pace`). A list
that is older because of that only says that nothing is new: before a unit copies anything, the
folder is listed again (`ListingReader.refreshed`), so that each copy sees what it would have seen
without the pause. A hint that something landed ends the pause (`TaskListings.hint`); a hint that is
lost or wrong costs time or a request, and changes no result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias
from weakref import WeakValueDictionary

from polynya.engine.unit import TimeSlice
from polynya.formats.files import LandedFiles
from polynya.observe.trace import span
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo, ObjectStore

#: A list that is younger, in seconds, is taken by the next dataset too...
REUSED_SECONDS: Final = 1.0
#: ...and on this machine one that is younger than this many times what a look takes, so that looks
#: at a large folder leave four fifths of the time to copies...
_TIMES_A_LOOK: Final = 5.0
#: ...or this young, by one for which something has landed.
_REUSED_SECONDS_AFTER_LANDING: Final = 0.1
#: Longest time between two whole listings, in seconds. They find a file whose name is not at the
#: end, and one that changed long after it was read.
WHOLE_LISTING_SECONDS: Final = 60.0
#: A whole listing that takes less time, in seconds, is made each time...
_CHEAP_LISTING_SECONDS: Final = 0.02
#: ...and so is one when listing the ends takes more than this part of its time. A single slow one
#: may have waited for something else, so the fastest of `_END_LISTING_TRIES` counts.
_WORTHWHILE_SHARE: Final = 0.5
_END_LISTING_TRIES: Final = 3
#: Files at the end that are listed again, because they may still grow.
_RELISTED_FILES: Final = 20
#: After a new file was found before the end, everything is listed each time, for these seconds.
_DOUBT_SECONDS: Final = 3600.0

#: Wait after the first look at S3 that found nothing, in seconds; it doubles with each further one.
_FIRST_IDLE_SECONDS: Final = 2.0
#: Longest wait between two looks at an idle landing zone on S3, in seconds: two requests a minute
#: for each task, $0.44 a month at $0.005 for a thousand.
IDLE_SECONDS: Final = 30.0
#: Looks at idle folders take half a request a second together, and so do their whole listings.
_SECONDS_PER_REQUEST: Final = 2.0
#: Objects that one list request returns at most (Amazon S3 API Reference, ListObjectsV2).
PAGE_OBJECTS: Final = 1000


@dataclass(frozen=True, slots=True)
class ListRequests:
    """List requests of one look, and of the whole listing now and then; 0: each look is one."""

    look: int
    whole: int


@dataclass(frozen=True, slots=True)
class IdlePace:
    """Longest wait between two looks at an idle folder, and between two whole listings of it.

    Both in seconds.
    """

    look: float
    whole: float


def idle_pace(requests: Iterable[ListRequests], asked_seconds: float | None = None) -> IdlePace:
    """How rarely a process lists its idle folders.

    Args:
        requests: what each of its folders takes.
        asked_seconds: longest wait between two looks as a user set it; None: the usual one, or
            longer where looks at all folders would take more than half a request a second.
    """
    counts = list(requests)
    look = max(IDLE_SECONDS, _SECONDS_PER_REQUEST * sum(each.look for each in counts))
    whole = _SECONDS_PER_REQUEST * sum(each.whole for each in counts)
    asked = look if asked_seconds is None else asked_seconds
    return IdlePace(asked, max(WHOLE_LISTING_SECONDS, whole))


def idle_wait(looks: int, longest_seconds: float) -> float:
    """Seconds between two looks after so many in a row found nothing; 0 after one that did."""
    if not looks:
        return 0.0
    return min(longest_seconds, _FIRST_IDLE_SECONDS * 2.0 ** min(looks - 1, 32))


class LandingZone(Protocol):
    """Where files land."""

    def files(self) -> list[ObjectInfo]:
        """All of them."""
        ...

    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        """Those whose path begins with `start` and comes after another one."""
        ...


@dataclass(frozen=True, slots=True)
class LandingFolder(LandingZone):
    """A folder of the landing zone."""

    store: ObjectStore
    path: str

    @span("look")
    def files(self) -> list[ObjectInfo]:
        """All that has landed."""
        return list(self.store.list(self.path))

    @span("look")
    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        """What has landed at paths that begin with `start` and come after another one."""
        return list(self.store.beginning(start, after))


@dataclass(slots=True)
class _ListingState:
    """The newest list, when all was listed last, and what that showed of the names.

    `judged_at` is when the time of the ends was forgotten, so that they get another chance;
    `whole_seconds` is what the last whole list took, `ends_seconds` what those of ends took since.
    `idle_looks` counts the looks in a row that found nothing.
    """

    files: LandedFiles = field(default_factory=LandedFiles)
    at: float | None = None
    whole_at: float | None = None
    doubted_at: float | None = None
    judged_at: float | None = None
    whole_seconds: float = 0.0
    ends_seconds: list[float] = field(default_factory=list)
    idle_looks: int = 0


class SharedListing:
    """The newest list of files. It only ever gets newer.

    A position that forgot a file because it left never sees it again.

    Args:
        zone: the folder.
        clock: of this process.
        starts: how the paths of each dataset begin. A dataset is read in name order, so that most
            of what lands is at its end. Without any, all files are listed each time.
        reused_seconds: how long a list is good for all units while files land.
        idle: how rarely an idle folder is listed; None where a listing costs nothing.
    """

    def __init__(
        self,
        zone: LandingZone,
        clock: Clock,
        starts: Collection[str],
        *,
        reused_seconds: float = REUSED_SECONDS,
        idle: Callable[[], IdlePace] | None = None,
    ) -> None:
        self._zone = zone
        self._clock = clock
        self._starts = outermost(starts)
        self._reused = reused_seconds
        self._idle = idle
        self._lock = threading.Lock()
        self._known = _ListingState()
        self._hinted = False

    def files(self, time_slice: TimeSlice, *, whole_since: float = float("-inf")) -> LandedFiles:
        """All landed files, as they were listed last unless it is time for another look.

        `time_slice.at_once` asks for a whole listing now. `whole_since`, in monotonic seconds, is
        the earliest beginning of the last whole one.
        """
        with self._lock:
            known, now = self._known, self._clock.monotonic()
            too_old = known.whole_at is None or known.whole_at < whole_since
            if time_slice.at_once or too_old:
                self._list(now, whole=True)
            elif self._is_look_due(now, news=time_slice.news):
                self._list(now, whole=self._is_whole_due(now))
            return known.files

    def expect_more(self) -> None:
        """Look as often as while files land."""
        with self._lock:
            self._known.idle_looks = 0

    def hint(self) -> None:
        """Something landed: the next look is due. Waits for nothing, not even for a listing."""
        self._hinted = True

    def refreshed(self, time_slice: TimeSlice, older_than: float) -> LandedFiles | None:
        """A newer list for a unit that found something, None if the last one is young enough.

        From now on looks are as frequent as while files land.
        """
        if self._idle is None or time_slice.at_once:
            return None
        with self._lock:
            known, now = self._known, self._clock.monotonic()
            known.idle_looks = 0
            if known.at is not None and now - known.at < older_than:
                return None
            self._list(now, whole=self._is_whole_due(now))
            known.idle_looks = 0
            return known.files

    def paths(self) -> frozenset[str]:
        """Every file of the newest list."""
        with self._lock:
            return self._known.files.paths

    @property
    def requests(self) -> ListRequests:
        """What looks at this folder take on S3."""
        pages = self._pages
        if self._is_listed_whole(self._clock.monotonic()):
            return ListRequests(pages, 0)
        return ListRequests(len(self._starts), pages)

    @property
    def _pages(self) -> int:
        return max(1, -(-len(self._known.files) // PAGE_OBJECTS))

    def _is_look_due(self, now: float, *, news: bool) -> bool:
        known = self._known
        age = now - known.at if known.at is not None else float("inf")
        if news:
            return age >= min(self._reused, _REUSED_SECONDS_AFTER_LANDING)
        wait = 0.0
        if self._idle is None:
            wait = _TIMES_A_LOOK * self._look_seconds(now)
        elif not self._hinted:
            wait = idle_wait(known.idle_looks, self._idle().look)
        return age >= max(self._reused, wait)

    def _look_seconds(self, now: float) -> float:
        """What most looks take; 0 where none has listed the ends yet."""
        known = self._known
        if self._is_listed_whole(now):
            return known.whole_seconds
        return known.ends_seconds[-1] if known.ends_seconds else 0.0

    def _is_whole_due(self, now: float) -> bool:
        known, every = self._known, WHOLE_LISTING_SECONDS
        if self._idle is None:
            every = max(every, _TIMES_A_LOOK * known.whole_seconds)
        elif known.idle_looks:
            every = self._idle().whole
        if known.whole_at is None or now - known.whole_at >= every:
            return True
        return self._is_listed_whole(now)

    def _is_listed_whole(self, now: float) -> bool:
        """Whether each look lists everything."""
        known = self._known
        if not self._starts:
            return True
        if known.doubted_at is not None and now - known.doubted_at < _DOUBT_SECONDS:
            return True
        if self._idle is not None:
            # Requests are what costs.
            return self._pages <= len(self._starts)
        if known.whole_seconds < _CHEAP_LISTING_SECONDS:
            return True
        slow = known.whole_seconds * _WORTHWHILE_SHARE
        return len(known.ends_seconds) >= _END_LISTING_TRIES and min(known.ends_seconds) > slow

    def _list(self, now: float, *, whole: bool) -> None:
        known, before = self._known, self._known.files
        # Before the request: what lands while S3 answers may be missing in the list.
        self._hinted = False
        if whole:
            self._list_whole(now)
        else:
            self._list_ends(now)
        known.at = now
        if self._idle is not None:
            known.idle_looks = 0 if _has_news(before, known.files) else known.idle_looks + 1

    def _list_whole(self, now: float) -> None:
        known, landed = self._known, LandedFiles(self._zone.files())
        known.whole_seconds = self._clock.monotonic() - now
        ends = {start: _path(known.files.below(start), 1) for start in self._starts}
        if known.whole_at is not None and comes_between(landed, known.files.paths, ends):
            known.doubted_at = now
        known.files, known.whole_at = landed, now
        if known.judged_at is None or now - known.judged_at >= WHOLE_LISTING_SECONDS:
            known.judged_at = now
            known.ends_seconds.clear()

    def _list_ends(self, now: float) -> None:
        files = self._known.files
        ends = {start: _path(files.below(start), _RELISTED_FILES) for start in self._starts}
        self._known.files = files.with_ends(
            (start, end, self._zone.beginning(start, end)) for start, end in ends.items()
        )
        self._known.ends_seconds.append(self._clock.monotonic() - now)


class ListingReader:
    """A shared listing, as one unit reads it.

    The first list that a unit gets is at most `grace_seconds` older than its first step, for which
    it has opened its table. An older list may lack files that another process has read since: the
    position would forget them, and they would be read twice.
    """

    def __init__(self, listing: SharedListing, clock: Clock, grace_seconds: float) -> None:
        self._listing, self._clock, self._grace = listing, clock, grace_seconds
        self._since: float | None = None

    def files(self, time_slice: TimeSlice) -> LandedFiles:
        """All landed files; on S3 the list may be old while nothing lands."""
        if self._since is None:
            self._since = self._clock.monotonic() - self._grace
        return self._listing.files(time_slice, whole_since=self._since)

    def expect_more(self) -> None:
        """Look as often as while files land."""
        self._listing.expect_more()

    def refreshed(
        self, time_slice: TimeSlice, older_than: float = REUSED_SECONDS
    ) -> LandedFiles | None:
        """A list to copy from, when the last one is older than these seconds; else None."""
        return self._listing.refreshed(time_slice, older_than)

    def paths(self) -> frozenset[str]:
        """Every file of the newest list."""
        return self._listing.paths()


#: The folder, how the paths begin, and how long a list is good for all.
_ListingKey: TypeAlias = tuple[str, tuple[str, ...], float]


class TaskListings:
    """The listings of a process: one for the units that list the same folder in the same way.

    A listing exists as long as a unit reads it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakValueDictionary[_ListingKey, SharedListing] = WeakValueDictionary()

    def of(
        self,
        folder: LandingFolder,
        starts: Collection[str],
        clock: Clock,
        *,
        reused_seconds: float,
        on_s3: bool,
        asked_seconds: float | None,
    ) -> SharedListing:
        """The listing of a folder, see `SharedListing`; `asked_seconds` as `idle_pace` has it."""
        key = (folder.path, outermost(starts), reused_seconds)
        idle = (lambda: self._pace(asked_seconds)) if on_s3 else None
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = SharedListing(
                    folder, clock, starts, reused_seconds=reused_seconds, idle=idle
                )
                self._known[key] = found
            return found

    def hint(self, starts: Iterable[str]) -> None:
        """Something landed: look soon at each folder that may have it.

        `starts` are how the paths begin, in the landing zone; an empty one: anywhere.
        """
        with self._lock:
            listings = dict(self._known)
        for start in starts:
            for (path, _, _), listing in listings.items():
                folder = f"{path.rstrip('/')}/" if path else ""
                if start.startswith(folder) or folder.startswith(start):
                    listing.hint()

    def _pace(self, asked_seconds: float | None) -> IdlePace:
        with self._lock:
            listings = list(self._known.values())
        return idle_pace((listing.requests for listing in listings), asked_seconds)


def outermost(starts: Iterable[str]) -> tuple[str, ...]:
    """The beginnings without those that another one covers."""
    outer: list[str] = []
    for start in sorted(set(starts)):
        if not outer or not start.startswith(outer[-1]):
            outer.append(start)
    return tuple(outer)


def comes_between(
    landed: LandedFiles, known_paths: Collection[str], ends: Mapping[str, str]
) -> bool:
    """Whether an unknown file comes before the former end of its dataset.

    `ends` has the last path of each beginning, "" where there was none.
    """
    return any(
        file.path < end and file.path not in known_paths
        for start, end in ends.items()
        for file in landed.below(start)
    )


def _has_news(before: LandedFiles, now: LandedFiles) -> bool:
    """Whether a file is new or has changed; files that left do not count."""
    if now is before:
        return False
    known = {(file.path, file.size, file.version) for file in before}
    return any((file.path, file.size, file.version) not in known for file in now)


def _path(files: Sequence[ObjectInfo], number: int) -> str:
    """The path of the file at this number from the end, "" where there are fewer."""
    return files[-number].path if len(files) >= number else ""
