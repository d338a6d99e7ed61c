"""Reload one dataset: read its full load again, and move the differences to Current."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.engine.context import EngineContext
from polynya.engine.gather import Load, gather
from polynya.engine.steps import subject_of, tell_applied
from polynya.lake import reload as lake
from polynya.lake.dataset import DatasetTable
from polynya.lake.views import publish_views
from polynya.landing.batch import BatchLimits
from polynya.landing.discovery import discover
from polynya.landing.native import read_native
from polynya.model.errors import OperationError
from polynya.model.headers import Partition
from polynya.model.reload import ReloadMode
from polynya.model.task import ResolvedDataset, StorageTask


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
    accept_incomplete: bool = False,
) -> ReloadResult | None:
    """Reload a dataset; goes on where a killed one stood. None when it was told to stop.

    `files` is a glob below the landing path, by default the dataset's `initial_load`: all of them
    are read, also those that were read before.

    Raises OperationError, and leaves Current as it is: no file is there, a file changed while it
    was read, or the load is not whole and that is not accepted (see `lake.reload.finish`).
    """
    glob = files or dataset.initial_load
    if glob is None:
        raise _no_files(dataset, "no `initial_load`")
    started = context.clock.monotonic()
    target = DatasetTable.open(context.spark, dataset, context.owner)
    target.take_over()
    if target.state.copy.reloading is None:
        if not discover(context.landing, dataset.landing_path, glob, {}).files:
            raise _no_files(dataset, f"no file matches `{glob}`")
        if target.table.files(Partition.CHANGES, target.state.snapshot):
            context.applier.apply(
                target, target.shape(), reason="a reload begins", now=context.clock.now()
            )
    lake.begin(target, mode, now=context.clock.now())
    changed = gather(context, target, _native_load(context, task, target, glob))
    if changed is not None:
        raise _changed(target, changed.path)
    if context.stop.is_set():
        return None
    gathered = lake.under_way(target)
    applied = lake.finish(
        target,
        context.applier,
        now=context.clock.now(),
        incomplete="accept" if accept_incomplete else "refuse",
    )
    publish_views(target, target.shape())
    rows = applied.rows
    result = ReloadResult(
        gathered.rows,
        gathered.quarantined,
        rows["current"],
        rows["prior"],
        rows["removed"],
        round(context.clock.monotonic() - started, 3),
    )
    tell_applied(context, target, applied)
    return result


def _native_load(
    context: EngineContext, task: StorageTask, target: DatasetTable, glob: str
) -> Load:
    dataset, limits = target.dataset, BatchLimits(task.batch.max_rows, task.batch.max_bytes)
    return Load(
        find=lambda done: discover(
            context.landing, dataset.landing_path, glob, done, may_grow=False
        ),
        read=lambda files: read_native(
            context.landing, dataset, files, target.known_schema(), limits, load=True
        ),
    )


def _changed(target: DatasetTable, path: str) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-016",
        f"{path} changed while {subject_of(target)} was being reloaded from it",
        where=path,
        state="what was loaded is kept beside Current, which is as before",
        fix="`polynya reload --abandon` the load, then reload when the file is whole",
    )


def _no_files(dataset: ResolvedDataset, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-014",
        f"there is nothing to reload {dataset.schema}.{dataset.view} from: {why}",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix="land the new full load where `initial_load` says, or name its files with `--files`",
    )
