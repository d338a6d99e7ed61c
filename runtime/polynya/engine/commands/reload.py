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
from polynya.engine.tasks.full_loads import (
    FullLoad,
    finish_reload,
    gather,
    landed_full_load,
    refuse_no_files,
)
from polynya.lake.copy import reload as lake
from polynya.lake.table.ownership import refuse_direct
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.dataset import KEEPING, Incomplete, ReloadMode, ResolvedDataset
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.lake import LOADED_FILE_CHANGED
from polynya.model.formats import rules_of
from polynya.model.headers import Partition
from polynya.streams.source import MessageSource


@dataclass(frozen=True, slots=True)
class ReloadRequest:
    """What to reload, and from where.

    Attributes:
        task: the task of the dataset.
        dataset: the dataset to reload.
        mode: what becomes of rows that the load does not contain.
        files: glob below the landing path; all matching files are read, also those that were read
            before. Default: the dataset's full load (`landed_full_load`).
        as_of: when the load began, for formats that order by time (`Format.place_of_load`); later
            changes win over it.
        accept_incomplete: accept a load with quarantined records (see `lake.reload.finish`).
        from_source: read a landed stream at its source, as far as it had landed. A stream that
            never landed is always read at its source.
        source: the source of that stream; default: as its settings say.
        capture: the capture that lands the task's files, if the project has it; its database is the
            load.
    """

    task: StorageTask
    dataset: ResolvedDataset
    mode: ReloadMode
    files: str | None = None
    as_of: datetime | None = None
    accept_incomplete: bool = False
    from_source: bool = False
    source: MessageSource | None = None
    capture: ConnectedCapture | None = None


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What a reload did: rows loaded and rejected, and rows that its apply wrote and removed."""

    loaded: int
    quarantined: int
    current: int
    prior: int
    removed: int
    seconds: float


def reload(context: EngineContext, request: ReloadRequest) -> ReloadResult | None:
    """Reload a dataset, or continue a reload that was killed. None when it was stopped.

    Raises OperationError, and leaves Current as it is: there are no files, a file changed while it
    was read, the source has deleted records that the table read, or the load is incomplete and that
    is not accepted.
    """
    started = context.clock.monotonic()
    working = WorkingDataset.open(context, request.dataset)
    table = working.table
    begun = table.state.copy.reloading
    # A reload continues with the files that it began with.
    files = request.files or (None if begun is None else begun.glob)
    with ExitStack() as opened:
        load = _load_of(context, working, request, files, opened)
        table.take_over()
        load.refuse(files)
        is_new = table.state.copy.reloading is None
        if is_new and table.table.files(Partition.CHANGES, table.state.snapshot):
            working.apply("a reload begins")
        lake.begin(
            table,
            request.mode,
            now=request.as_of or context.clock.now(),
            place=_position_of(load, request, context),
            glob=files,
            until=load.until if isinstance(load, LandedLoad) else None,
        )
        load.gather()
        if context.stop.is_set():
            return None
        gathered = lake.under_way(table)
        incomplete: Incomplete = "accept" if request.accept_incomplete else "refuse"
        applied = finish_reload(working, incomplete=incomplete)
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


def _load_of(
    context: EngineContext,
    working: WorkingDataset,
    request: ReloadRequest,
    files: str | None,
    opened: ExitStack,
) -> _FilesLoad | DirectLoad | LandedLoad | CapturedLoad:
    """Where the load comes from; `opened` closes what it opens."""
    task, mode = request.task, request.mode
    if isinstance(task, DirectTask):
        return DirectLoad(context, working, task, mode, request.source)
    if request.capture is not None:
        captured = CapturedLoad(context, working, task, request.capture, mode=mode)
        opened.callback(captured.close)
        return captured
    if request.from_source or _continues_at_source(working):
        return LandedLoad(context, working, task, mode, request.source)
    glob = files or _all_batches(request.dataset, mode)
    return _FilesLoad(working, landed_full_load(working, TaskLanding(context, task), glob))


def _position_of(
    load: _FilesLoad | DirectLoad | LandedLoad | CapturedLoad,
    request: ReloadRequest,
    context: EngineContext,
) -> str | None:
    """The position of the load in the order of events; None where the format defines it."""
    if isinstance(load, CapturedLoad):
        return load.place
    if request.as_of is None:
        return None
    landing = TaskLanding(context, request.task)
    return landing.format.place_of_load(request.as_of, request.dataset)


def _continues_at_source(working: WorkingDataset) -> bool:
    """Whether a reload that reads landed batches at their source is under way."""
    return working.reloading is not None and working.reloading.until is not None


def _all_batches(dataset: ResolvedDataset, mode: ReloadMode) -> str | None:
    """All batches of a stream, even if the first are gone, when a missing row deletes nothing."""
    keeps = mode == KEEPING and rules_of(dataset.landing.format).in_order
    return dataset.landing.glob if keeps else None


@dataclass(frozen=True, slots=True)
class _FilesLoad:
    """A load that is in files; see `DirectLoad`."""

    working: WorkingDataset
    load: FullLoad

    def refuse(self, files: str | None) -> None:
        """Raise OperationError when there is nothing to reload from."""
        refuse_direct(self.working.table)
        if self.working.reloading is None:
            refuse_no_files(self.load, self.working.table.dataset, files)

    def gather(self) -> None:
        """Gather the files until the run is stopped. Raises OperationError when one changed."""
        changed = gather(self.working, self.load)
        if changed is not None:
            raise LOADED_FILE_CHANGED(where=changed, path=changed, table=self.working.name)


def abandon_begun(context: EngineContext, datasets: Sequence[ResolvedDataset]) -> list[str]:
    """Give up the reloads that are under way; the names of their datasets.

    Raises OperationError when none of the datasets has one.
    """
    tables = [WorkingDataset.existing(context, dataset).table for dataset in datasets]
    begun = [table for table in tables if table.state.copy.reloading is not None]
    for table in begun or tables[:1]:
        lake.abandon(table)
    return [table.dataset.relations.current for table in begun]
