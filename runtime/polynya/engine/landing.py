"""The landing zone of one task: the files of its tables, read through the format of the task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.large_loads import LargeLoads
from polynya.engine.listing import REUSED_SECONDS, LandingFolder, ListingReader, SharedListing
from polynya.engine.policy import CopyPace, read_whole
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice
from polynya.formats.base import ReadBatch, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.files import Discovery, before_file
from polynya.formats.registry import format_of, loads_of
from polynya.lake.copy.copy import CopyResult
from polynya.lake.table.ownership import refuse_direct
from polynya.lake.table.state import Reloading
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError
from polynya.model.names import S3Location
from polynya.observe import engine as events
from polynya.observe.trace import span
from polynya.store.object_store import ObjectInfo


class Listed(Protocol):
    """The listed files of one table, or of all tables that share their files."""

    def files(self, time_slice: TimeSlice, /) -> Iterable[ObjectInfo]:
        """The files that may be the table's; an old list only says that nothing is new."""
        ...

    def refreshed(self, time_slice: TimeSlice, /) -> Iterable[ObjectInfo] | None:
        """The files to copy from, None: those that `files` returned are new enough."""
        ...

    def paths(self) -> Collection[str]:
        """The paths of all files that exist."""
        ...


def listing_of(
    context: EngineContext,
    task: StorageTask,
    starts: Collection[str] = (),
    *,
    reused_seconds: float = REUSED_SECONDS,
) -> SharedListing:
    """The listing of a task's folder, which all units of this process share; see there."""
    target = context.target
    return context.memory.listings.of(
        LandingFolder(context.landing, task.landing.path),
        starts,
        context.clock,
        reused_seconds=reused_seconds,
        on_s3=target is not None and isinstance(target.landing, S3Location),
        asked_seconds=target.idle_poll_seconds if target is not None else None,
    )


def reader_of(context: EngineContext, listing: SharedListing) -> ListingReader:
    """A listing for one unit. Where nodes share work another one had the table until just now."""
    shares_work = context.epoch is not None
    return ListingReader(listing, context.clock, 0.0 if shares_work else REUSED_SECONDS)


class TaskLanding:
    """The files of a task, listed and read through its format."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self.format = format_of(task)
        self._context = context
        self._folder = LandingFolder(context.landing, task.landing.path)
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._loading = LargeLoads(loads_of(task), context.load_limits)
        self._policy = task.apply
        self.pace = CopyPace(task.batch)

    def files(self) -> list[ObjectInfo]:
        """All that has landed, listed now."""
        return self._folder.files()

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
        listed: Listed,
    ) -> StepResult:
        """Copy the next batch of a table that has files of its own, unless it should wait for more.

        `listed` has the files that may be the table's.
        """
        refuse_direct(table.table)
        reloading = table.reloading

        def unread(files: Iterable[ObjectInfo]) -> Discovery:
            if reloading is not None:
                files = self._without_load(table, files, reloading)
            return self.unread(table, files)

        discovery = discovered(listed, time_slice, unread)
        table.report_discovery(discovery)
        if not discovery.files:
            return IDLE
        began = self._context.clock.monotonic()
        decision = self.pace.decide(discovery, time_slice, began)
        if not decision.copy:
            return StepResult(wait_seconds=decision.wait)
        if time_slice.must_wait_for(discovery.size_bytes):
            return TOO_LONG
        with table.copying(discovery):
            if not (self._may_be_large(discovery) and self._by_tasks(table, discovery, listed)):
                batch = self.read(table, discovery.files, load=discovery.load)

                def before(file: str) -> DatasetBatch | None:
                    parts = before_file(discovery.files, file)
                    return self.read(table, parts, load=discovery.load) if parts else None

                whole = read_whole(discovery, batch.files)
                policy = self._policy if whole and not time_slice.more_comes else None
                table.copy(
                    batch, began=began, live_files=listed.paths(), before=before, policy=policy
                )
        self.pace.copied(discovery, table.progress, began)
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

    def _may_be_large(self, discovery: Discovery) -> bool:
        least = self._context.load_limits.least_change_bytes
        return discovery.load or (least is not None and discovery.size_bytes >= least)

    @span("load")
    def _by_tasks(self, table: WorkingDataset, discovery: Discovery, listed: Listed) -> bool:
        if self._is_suspect(discovery):
            return False
        request = self._request(table, discovery.files, load=discovery.load)
        return self._loading.copy_next(table, discovery, listed.paths, request)

    def _is_suspect(self, discovery: Discovery) -> bool:
        """Whether reading files one by one has to show which of them ends a process."""
        return any(self._context.begun.is_suspect(part.path) for part in discovery.files)

    @span("gather")
    def gather_by_tasks(self, table: WorkingDataset, discovery: Discovery) -> CopyResult | None:
        """Gather a part of a reload by tasks; None when `read` has to read its next batch."""
        if self._is_suspect(discovery):
            return None
        request = self._request(table, discovery.files, load=True)
        return self._loading.gather_next(table, discovery, request)

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


def discovered(
    listed: Listed, time_slice: TimeSlice, unread: Callable[[Iterable[ObjectInfo]], Discovery]
) -> Discovery:
    """Find the files to read in the newest list.

    An old list may name files that left, so the folder is listed again before anything is copied.
    """
    discovery = unread(listed.files(time_slice))
    if discovery.files and (newer := listed.refreshed(time_slice)) is not None:
        discovery = unread(newer)
    return discovery
