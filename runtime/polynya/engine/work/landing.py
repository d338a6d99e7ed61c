"""The landing zone of one task: which files there are for its tables, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.loading import Loading
from polynya.engine.work.turns.pace import Pace
from polynya.engine.work.turns.unit import IDLE, TOO_LONG, Ended, Turn
from polynya.formats.base import ReadBatch, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.files.discovery import Discovery, before_file
from polynya.formats.registry import format_of, loads_of
from polynya.lake.table.copy_state import Reloading
from polynya.lake.table.guards import refuse_direct
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError
from polynya.observe import data as events
from polynya.observe.trace import span
from polynya.store.object_store import ObjectInfo


class TaskLanding:
    """The files of a task, read as its format says."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self.format = format_of(task)
        self._context = context
        self._path = task.landing.path
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._loading = Loading(loads_of(task), context.loads)
        self.pace = Pace(task.batch)

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
        """What of the landed files is to be read next, as far as the table is concerned."""
        return self.format.unread(landed, table.progress, table.table.dataset)

    def copy_next(
        self,
        table: WorkingDataset,
        turn: Turn,
        landed: Callable[[], Iterable[ObjectInfo]],
        live: Callable[[], Collection[str]],
    ) -> Ended:
        """Copy the next batch of a table that has files of its own, unless it is to wait for more.

        `landed` are files that may be the table's, `live` the paths of all files that exist.
        """
        refuse_direct(table.table)
        reloading = table.reloading
        files = landed()
        if reloading is not None:
            files = self._without_load(table, files, reloading)
        found = self.unread(table, files)
        table.found(found)
        if not found.files:
            return IDLE
        decision = self.pace.decide(found, turn, self._context.clock.monotonic())
        if not decision.copy:
            return Ended(look_again=decision.wait)
        if turn.must_wait_for(found.size_bytes):
            return TOO_LONG
        began = self._context.clock.monotonic()
        with table.copying(found):
            if not (found.load and self._load(table, found, live)):
                batch = self.read(table, found.files, load=found.load)

                def before(file: str) -> DatasetBatch | None:
                    parts = before_file(found.files, file)
                    return self.read(table, parts, load=found.load) if parts else None

                table.copy(batch, began=began, live_files=live(), before=before)
        self.pace.copied(found, table.progress, self._context.clock.monotonic())
        return turn.more

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
        self, table: WorkingDataset, found: Discovery, live: Callable[[], Collection[str]]
    ) -> bool:
        if any(self._context.begun.is_suspect(part.path) for part in found.files):
            # Read one by one, that tells which of them ends a process.
            return False
        request = self._request(table, found.files, load=True)
        return self._loading.copied(table, found, live, request)

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
        known = table.known
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
        known = {source: one.known for source, one in tables.items()}
        begun = self._context.begun
        store, files = begun.at(self._context.landing), begun.careful(files)
        request = ReadRequest(store, files, known, self._limits, only=only, without=without)
        with begun.batch(files):
            return self.format.read(request)
