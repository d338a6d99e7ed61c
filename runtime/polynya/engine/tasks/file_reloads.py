"""Reloads of a dataset from landed files on a schedule: the run does what `polynya reload` does.

The state of the table says which moments of the schedule are done, in the same commit as the
differences. So each due moment is done once, also when a node is killed or another one takes over.
A reload that was killed continues; one whose files change meanwhile is discarded and begins again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.due import due_of_dataset
from polynya.engine.landing import TaskLanding
from polynya.engine.scheduler import longer_pause
from polynya.engine.tasks.full_loads import FullLoad, finish_reload, gather, refuse_no_files
from polynya.engine.unit import TimeSlice
from polynya.formats.files import relative_to, unread
from polynya.lake.copy import reload as lake
from polynya.lake.table.ownership import refuse_direct
from polynya.lake.table.state import Reloading
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import FileReload
from polynya.model.errors import OperationError
from polynya.observe.engine import LoadCompared, LoadDiscarded
from polynya.store.object_store import ObjectInfo


@dataclass(slots=True)
class FileReloads:
    """The scheduled reloads of one dataset."""

    context: EngineContext
    dataset: ResolvedDataset
    settings: FileReload
    landing: TaskLanding
    _error: OperationError | None = field(default=None)
    _again: float = field(default=0.0)
    _pause: float = field(default=0.0)

    def is_due(self, table: WorkingDataset) -> bool:
        """Whether a reload has to begin, or one of these has begun and not ended."""
        begun = table.reloading
        if begun is not None:
            return begun.due is not None
        due = due_of_dataset(self.dataset, table.table.state.copy)
        return due is not None and due <= self.context.clock.now()

    def step(self, table: WorkingDataset, time_slice: TimeSlice) -> OperationError | None:
        """Reload if that is due. Returns why it is due and cannot be done; changes are copied on.

        Raises what a copy raises.
        """
        if not time_slice.long or not self.is_due(table):
            return self._error
        now = self.context.clock.monotonic()
        if self._error is not None and now < self._again:
            return self._error
        try:
            self._reload(table)
        except OperationError as error:
            self._error, self._pause = error, longer_pause(self._pause)
            self._again = now + self._pause
            return error
        self._error, self._pause = None, 0.0
        return None

    def _reload(self, table: WorkingDataset) -> None:
        refuse_direct(table.table)
        begun = table.reloading
        if begun is None:
            begun = self._begin(table)
        else:
            table.table.take_over()
        changed = gather(table, self._load(begun.glob))
        if changed is not None:
            # Whoever writes it may not be done: the next attempt begins with it again.
            lake.abandon(table.table)
            reason = f"{changed} changed or left while it was read"
            table.tell(LoadDiscarded(subject=table.name, rows=begun.rows, reason=reason))
            return
        if self.context.stop.is_set():
            return
        gathered = lake.under_way(table.table)
        # Rows that could not be read delete nothing, as in an extract.
        applied = finish_reload(table, incomplete="keep", live_files=self.landing.paths())
        table.tell(
            LoadCompared(
                subject=table.name,
                time=gathered.started,
                rows_loaded=gathered.rows,
                rows_quarantined=gathered.quarantined,
            )
        )
        table.tell_applied(applied)

    def _begin(self, table: WorkingDataset) -> Reloading:
        landed = self.landing.format.full_load(
            self.landing.files(), self.dataset, self.settings.files
        )
        glob = load_glob(landed, self.dataset, self.settings)
        refuse_no_files(self._load(glob), self.dataset, self.settings.files)
        table.table.take_over()
        if table.table.has_pending:
            table.apply("a reload begins")
        now = self.context.clock.now()
        return lake.begin(table.table, self.settings.mode, now=now, glob=glob, due=now)

    def _load(self, glob: str | None) -> FullLoad:
        def files() -> list[ObjectInfo]:
            named, landed = self.landing.format.full_load, self.landing.files()
            chosen = {info.path for info in named(landed, self.dataset, glob)}
            every = named(landed, self.dataset, self.settings.files)
            return [info for info in every if info.path in chosen]

        return FullLoad(
            find=lambda done: unread(files(), done, may_grow=False),
            landing=self.landing,
        )


def load_glob(
    landed: Sequence[ObjectInfo], dataset: ResolvedDataset, settings: FileReload
) -> str | None:
    """The glob of the files that are the load, of all that could be: the state remembers it.

    None: those of `initial_load`.
    """
    if settings.newest is None or not landed:
        return settings.files
    last = max(relative_to(dataset.landing.folder, info.path) for info in landed)
    folder = last.rpartition("/")[0]
    if settings.newest == "file":
        return last
    return f"{folder}/*" if folder else "*"
