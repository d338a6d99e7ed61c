"""The landing zone of one task: the files of its tables, listed once and read.

`SharedListing` lists one folder for all datasets of a task. If 500 datasets each listed the whole
folder every two seconds, they would do nothing else. A folder that is never emptied also takes
longer to list each day: one request to S3 per thousand files, one system call per file. So where a
whole listing is slow, most listings cover only the end of each dataset's names.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.large_loads import LargeLoads
from polynya.engine.policy import CopyPace
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.formats.base import ReadBatch, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.files import Discovery, LandedFiles, before_file
from polynya.formats.registry import format_of, loads_of
from polynya.lake.table.ownership import refuse_direct
from polynya.lake.table.state import Reloading
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError
from polynya.observe import engine as events
from polynya.observe.trace import span
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo

#: A list that is younger, in seconds, is taken by the next dataset too...
_REUSED_SECONDS: Final = 1.0
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


class TaskLanding:
    """The files of a task, listed and read through its format."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self.format = format_of(task)
        self._context = context
        self._path = task.landing.path
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._loading = LargeLoads(loads_of(task), context.load_limits)
        self.pace = CopyPace(task.batch)

    @span("look")
    def files(self) -> list[ObjectInfo]:
        """All that has landed."""
        return list(self._context.landing.list(self._path))

    @span("look")
    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        """What has landed at paths that begin with `start` and come after another one."""
        return list(self._context.landing.beginning(start, after))

    def paths(self) -> set[str]:
        """Every file that exists; a position forgets files that left."""
        return {info.path for info in self.files()}

    def unread(self, table: WorkingDataset, landed: Iterable[ObjectInfo]) -> Discovery:
        """The landed files that this table has not read, in reading order."""
        return self.format.unread(landed, table.progress, table.table.dataset)

    def copy_next(
        self,
        table: WorkingDataset,
        time_slice: TimeSlice,
        landed: Callable[[], Iterable[ObjectInfo]],
        live: Callable[[], Collection[str]],
    ) -> StepResult:
        """Copy the next batch of a table that has files of its own, unless it should wait for more.

        `landed` are files that may be the table's, `live` the paths of all files that exist.
        """
        refuse_direct(table.table)
        reloading = table.reloading
        files = landed()
        if reloading is not None:
            files = self._without_load(table, files, reloading)
        discovery = self.unread(table, files)
        table.report_discovery(discovery)
        if not discovery.files:
            return IDLE
        decision = self.pace.decide(discovery, time_slice, self._context.clock.monotonic())
        if not decision.copy:
            return StepResult(wait_seconds=decision.wait)
        if time_slice.must_wait_for(discovery.size_bytes):
            return TOO_LONG
        began = self._context.clock.monotonic()
        with table.copying(discovery):
            if not (discovery.load and self._load(table, discovery, live)):
                batch = self.read(table, discovery.files, load=discovery.load)

                def before(file: str) -> DatasetBatch | None:
                    parts = before_file(discovery.files, file)
                    return self.read(table, parts, load=discovery.load) if parts else None

                table.copy(batch, began=began, live_files=live(), before=before)
        self.pace.copied(discovery, table.progress, self._context.clock.monotonic())
        return time_slice.more

    def _without_load(
        self, table: WorkingDataset, landed: Iterable[ObjectInfo], reloading: Reloading
    ) -> list[ObjectInfo]:
        """Files that are not those of a reload which is under way: only the reload reads them."""
        files = list(landed)
        if reloading.until is not None:
            # The reload takes the position with it: which batches are new is known then.
            if self._context.is_news(f"{table.name} leaves a load", "source"):
                table.tell(events.ReloadWaiting(subject=table.name, files=0))
            return []
        try:
            load = self.format.full_load(files, table.table.dataset, reloading.glob)
        except OperationError:
            # Begun by an older version, which did not write down what it reads.
            return files
        if load and self._context.is_news(f"{table.name} leaves a load", str(len(load))):
            table.tell(events.ReloadWaiting(subject=table.name, files=len(load)))
        theirs = {info.path for info in load}
        return [info for info in files if info.path not in theirs]

    @span("load")
    def _load(
        self, table: WorkingDataset, discovery: Discovery, live: Callable[[], Collection[str]]
    ) -> bool:
        if any(self._context.begun.is_suspect(part.path) for part in discovery.files):
            # Reading one by one shows which of them ends a process.
            return False
        request = self._request(table, discovery.files, load=True)
        return self._loading.copy_next(table, discovery, live, request)

    @span("read")
    def read(
        self, table: WorkingDataset, files: Sequence[FilePart], *, load: bool = False
    ) -> DatasetBatch:
        """Read the next batch of a table that has files of its own."""
        begun = self._context.begun
        request = self._request(table, begun.careful(files), load=load)
        with begun.batch(request.files):
            return self.format.read(replace(request, store=begun.at(request.store))).one

    def _request(
        self, table: WorkingDataset, files: Sequence[FilePart], *, load: bool
    ) -> ReadRequest:
        known = table.known_table
        tables, store = {known.source: known}, self._context.landing
        return ReadRequest(store, files, tables, self._limits, load=load)

    @span("read")
    def read_shared(
        self,
        tables: Mapping[str, WorkingDataset],
        files: Sequence[FilePart],
        *,
        only: str | None = None,
        without: frozenset[str] = frozenset(),
    ) -> ReadBatch:
        """Read the next batch of all tables of a task whose files are shared."""
        known_tables = {source: table.known_table for source, table in tables.items()}
        begun = self._context.begun
        store, files = begun.at(self._context.landing), begun.careful(files)
        request = ReadRequest(store, files, known_tables, self._limits, only=only, without=without)
        with begun.batch(files):
            return self.format.read(request)


class SharedListing:
    """The newest list of files.

    It only ever gets newer: a position that forgot a file because it left never sees it again.
    `starts` are how the paths of each dataset begin. A dataset is read in name order, so that most
    of what lands is at its end.
    """

    def __init__(self, zone: LandingZone, clock: Clock, starts: Collection[str]) -> None:
        self._zone = zone
        self._clock = clock
        self._starts = outermost(starts)
        self._lock = threading.Lock()
        self._known = _ListingState()
        self._at: float | None = None

    def files(self, time_slice: TimeSlice) -> LandedFiles:
        """All landed files; a list of a moment ago unless everything is copied at once."""
        with self._lock:
            now = self._clock.monotonic()
            fresh = _REUSED_SECONDS_AFTER_LANDING if time_slice.news else _REUSED_SECONDS
            if time_slice.at_once or self._at is None or now - self._at >= fresh:
                if time_slice.at_once or self._is_whole_due(now):
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
        listing = self._known
        if listing.whole_at is None or now - listing.whole_at >= WHOLE_LISTING_SECONDS:
            return True
        if listing.doubted_at is not None and now - listing.doubted_at < _DOUBT_SECONDS:
            return True
        if listing.whole_seconds < _CHEAP_LISTING_SECONDS:
            return True
        slow = listing.whole_seconds * _WORTHWHILE_SHARE
        return len(listing.ends_seconds) >= _END_LISTING_TRIES and min(listing.ends_seconds) > slow

    def _list_whole(self, now: float) -> None:
        listing, landed = self._known, LandedFiles(self._zone.files())
        listing.whole_seconds = self._clock.monotonic() - now
        ends = {start: _path(listing.files.below(start), 1) for start in self._starts}
        if listing.whole_at is not None and comes_between(landed, listing.files.paths, ends):
            listing.doubted_at = now
        listing.files, listing.whole_at = landed, now
        if listing.judged_at is None or now - listing.judged_at >= WHOLE_LISTING_SECONDS:
            listing.judged_at = now
            listing.ends_seconds.clear()

    def _list_ends(self, now: float) -> None:
        files = self._known.files
        ends = {start: _path(files.below(start), _RELISTED_FILES) for start in self._starts}
        self._known.files = files.with_ends(
            (start, end, self._zone.beginning(start, end)) for start, end in ends.items()
        )
        self._known.ends_seconds.append(self._clock.monotonic() - now)


class LandingZone(Protocol):
    """Where files land."""

    def files(self) -> list[ObjectInfo]:
        """All of them."""
        ...

    def beginning(self, start: str, after: str) -> list[ObjectInfo]:
        """Those whose path begins with `start` and comes after another one."""
        ...


@dataclass(slots=True)
class _ListingState:
    """The newest list, when all was listed last, and what that showed of the names.

    `judged_at` is when the time of the ends was forgotten, so that they get another chance;
    `whole_seconds` is what the last whole list took, `ends_seconds` what those of ends took since.
    """

    files: LandedFiles = field(default_factory=LandedFiles)
    whole_at: float | None = None
    doubted_at: float | None = None
    judged_at: float | None = None
    whole_seconds: float = 0.0
    ends_seconds: list[float] = field(default_factory=list)


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


def _path(files: Sequence[ObjectInfo], number: int) -> str:
    """The path of the file at this number from the end, "" where there are fewer."""
    return files[-number].path if len(files) >= number else ""
