"""Reload one dataset: read its full load again, and move the differences to Current."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from polynya.engine.commands.reload_captured import CapturedLoad
from polynya.engine.commands.reload_sources import DirectLoad, LandedLoad
from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.landing import TaskLanding
from polynya.engine.tasks.loads import Load, gather, load_of, refuse_nothing, take_in
from polynya.lake.copy import reload as lake
from polynya.lake.table.ownership import refuse_direct
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.dataset import KEEPING, ReloadMode, ResolvedDataset
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError
from polynya.model.formats import rules_of
from polynya.model.headers import Partition
from polynya.streams.source import Source


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What a reload did: rows loaded and rejected, and rows that its apply wrote and removed."""

    loaded: int
    quarantined: int
    current: int
    prior: int
    removed: int
    seconds: float


def reload(
    context: EngineContext,
    task: StorageTask,
    dataset: ResolvedDataset,
    *,
    mode: ReloadMode,
    files: str | None = None,
    as_of: datetime | None = None,
    accept_incomplete: bool = False,
    from_source: bool = False,
    source: Source | None = None,
    capture: ConnectedCapture | None = None,
) -> ReloadResult | None:
    """Reload a dataset; continues where a killed reload stood. None when it was stopped.

    `files` is a glob below the landing path, by default the dataset's full load (`load_of`): all of
    them are read, also those that were read before. `as_of` is when the load began, for formats
    whose order shows the time (`Format.place_of_load`): later changes stay as they are.
    `from_source`: a stream that has landed is read at its source, as far as it had landed; those
    that never landed always are. `source` is that one, by default what their settings say.
    `capture` is what lands the task's files, if the project has it: its database is the load.

    Raises OperationError, and leaves Current as it is: no file is there, a file changed while it
    was read, the source has deleted records that the table read, or the load is not whole and that
    is not accepted (see `lake.reload.finish`).
    """
    with ExitStack() as opened:
        return _reloaded(
            context, task, dataset, mode=mode, files=files, as_of=as_of, source=source,
            from_source=from_source,
            accept_incomplete=accept_incomplete, capture=capture, opened=opened,
        )  # fmt: skip


def _reloaded(
    context: EngineContext,
    task: StorageTask,
    dataset: ResolvedDataset,
    *,
    mode: ReloadMode,
    files: str | None,
    as_of: datetime | None,
    accept_incomplete: bool,
    from_source: bool,
    source: Source | None,
    capture: ConnectedCapture | None,
    opened: ExitStack,
) -> ReloadResult | None:
    started = context.clock.monotonic()
    working = WorkingDataset.open(context, dataset)
    table = working.table
    landing = TaskLanding(context, task)
    if table.state.copy.reloading is not None:
        # A reload goes on with the files that it began with.
        files = files or table.state.copy.reloading.glob
    load: _FilesLoad | DirectLoad | LandedLoad | CapturedLoad
    if isinstance(task, DirectTask):
        load = DirectLoad(context, working, task, mode, source)
    elif capture is not None:
        load = CapturedLoad(context, working, task, capture, mode=mode)
        opened.callback(load.close)
    elif from_source or _is_of_source(working):
        load = LandedLoad(context, working, task, mode, source)
    else:
        load = _FilesLoad(working, load_of(working, landing, files or _of_all(dataset, mode)))
    table.take_over()
    load.refuse(files)
    is_new = table.state.copy.reloading is None
    if is_new and table.table.files(Partition.CHANGES, table.state.snapshot):
        working.apply("a reload begins")
    if isinstance(load, CapturedLoad):
        place = load.place
    else:
        place = None if as_of is None else landing.format.place_of_load(as_of, dataset)
    until = load.until if isinstance(load, LandedLoad) else None
    lake.begin(table, mode, now=as_of or context.clock.now(), place=place, glob=files, until=until)
    load.gather()
    if context.stop.is_set():
        return None
    gathered = lake.under_way(table)
    applied = take_in(working, incomplete="accept" if accept_incomplete else "refuse")
    seconds = round(context.clock.monotonic() - started, 3)
    working.tell_applied(applied)
    figures = applied.figures
    return ReloadResult(
        loaded=gathered.rows,
        quarantined=gathered.quarantined,
        current=figures.current,
        prior=figures.prior,
        removed=figures.removed,
        seconds=seconds,
    )


def _is_of_source(working: WorkingDataset) -> bool:
    """Whether a reload has begun that reads landed batches at their source: it goes on there."""
    return working.reloading is not None and working.reloading.until is not None


def _of_all(dataset: ResolvedDataset, mode: ReloadMode) -> str | None:
    """All batches of a stream, also where the first are gone: nothing is deleted for that then."""
    keeps = mode == KEEPING and rules_of(dataset.landing.format).in_order
    return dataset.landing.glob if keeps else None


@dataclass(frozen=True, slots=True)
class _FilesLoad:
    """A load that is in files; see `DirectLoad`."""

    working: WorkingDataset
    load: Load

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when there is nothing to reload from."""
        refuse_direct(self.working.table)
        if self.working.reloading is None:
            refuse_nothing(self.load, self.working.table.dataset, files)

    def gather(self) -> None:
        """Gather all of it, or until asked to stop. Raises OperationError when a file changed."""
        changed = gather(self.working, self.load)
        if changed is not None:
            raise _changed(self.working.name, changed)


def abandon_begun(context: EngineContext, datasets: Sequence[ResolvedDataset]) -> list[str]:
    """Give up the reloads that are under way; the names of their datasets.

    Raises OperationError when none of the datasets has one.
    """
    tables = [WorkingDataset.existing(context, one).table for one in datasets]
    begun = [table for table in tables if table.state.copy.reloading is not None]
    for table in begun or tables[:1]:
        lake.abandon(table)
    return [table.dataset.relations.current for table in begun]


def _changed(name: str, path: str) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-016",
        f"{path} changed or left while {name} was being reloaded from it",
        where=path,
        state="what was loaded is kept beside Current, which is as before",
        fix="`polynya reload --abandon` the load, then reload when the file is whole",
    )
