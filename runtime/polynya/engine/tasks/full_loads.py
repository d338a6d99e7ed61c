"""The full load of a dataset: where it is, and gathering it batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from polynya.engine.dataset import WorkingDataset
from polynya.engine.landing import TaskLanding
from polynya.formats.batch import DatasetBatch, FileProgress
from polynya.formats.files import Discovery, nothing_to_reload, unread
from polynya.lake.apply.apply import ApplyResult
from polynya.lake.copy import reload as lake
from polynya.lake.copy.copy import CopyResult
from polynya.lake.copy.reload import at_places
from polynya.lake.table.suspension import refuse_suspended
from polynya.model.config.dataset import Incomplete, ResolvedDataset
from polynya.model.formats import rules_of
from polynya.model.headers import StreamSource
from polynya.observe.engine import ReloadLoaded
from polynya.streams.direct import DirectReader, NextRead

#: Finds unread files, given what was read so far by path.
FindFiles: TypeAlias = Callable[[Mapping[str, FileProgress]], Discovery]


@dataclass(frozen=True, slots=True)
class FullLoad:
    """The files of a load, and the landing zone that they are read from."""

    find: FindFiles
    landing: TaskLanding


def gather(dataset: WorkingDataset, load: FullLoad) -> str | None:
    """Gather rows until nothing is left, or until the run is stopped.

    Returns the path of a file that changed, or left, after a part of it was read: what was gathered
    is of two extracts then, or not all of one.

    Raises SuspendedError or TaskStoppedError when a policy says that a batch may not be taken.
    """
    refuse_suspended(dataset.table)
    while not dataset.context.stop.is_set():
        done = lake.under_way(dataset.table).files
        discovery = load.find(done)
        if discovery.changed:
            return discovery.changed[0].path
        if not discovery.files:
            return next((path for path, progress in done.items() if not progress.complete), None)
        with dataset.views_following():
            result = load.landing.gather_by_tasks(dataset, discovery)
        if result is None:
            result = _added(dataset, load.landing.read(dataset, discovery.files, load=True))
        read = lake.under_way(dataset.table).files
        left = sum(
            part.path not in read or not read[part.path].complete for part in discovery.files
        )
        _tell(dataset, result, files_left=left)
    return None


def gather_from_stream(
    dataset: WorkingDataset,
    reader: DirectReader,
    wanted: Callable[[], NextRead],
    source: StreamSource,
) -> None:
    """Gather records of a stream until none is left, or until the run is stopped.

    Raises as `gather`, and what `wanted` raises.
    """
    context = dataset.context
    refuse_suspended(dataset.table)
    while not context.stop.is_set():
        records = wanted()
        if records.next.is_nothing:
            return
        read = reader.read(records, dataset.known_table, context.clock.now(), load=True)
        _tell(dataset, _added(dataset, at_places(read.batch, source)), files_left=0)


def _added(dataset: WorkingDataset, batch: DatasetBatch) -> CopyResult:
    """Add a batch to the gathered rows."""
    mapped = dataset.apply_schema_changes(dataset.map_columns(batch))
    with dataset.views_following():
        return lake.load(dataset.table, mapped, now=dataset.context.clock.now())


def _tell(dataset: WorkingDataset, result: CopyResult, *, files_left: int) -> None:
    """Report what was gathered."""
    dataset.tell(
        ReloadLoaded(
            subject=dataset.name,
            rows_in=result.rows_in,
            rows_loaded=result.rows_out,
            rows_quarantined=result.rows_quarantined,
            files_left=files_left,
        )
    )


def finish_reload(
    dataset: WorkingDataset,
    *,
    incomplete: Incomplete,
    live_files: Iterable[str] | None = None,
) -> ApplyResult:
    """Move the differences and end the reload; see `lake.finish`."""
    applied = lake.finish(
        dataset.table,
        dataset.context.applier,
        now=dataset.context.clock.now(),
        incomplete=incomplete,
        live_files=live_files,
    )
    dataset.publish(settle=True)
    return applied


def landed_full_load(working: WorkingDataset, landing: TaskLanding, glob: str | None) -> FullLoad:
    """The full load of a dataset; `landing` is that of its task.

    `glob` names files below the landing path, by default those of `initial_load`, or what the
    service names as a full load of the table.

    Raises OperationError when its location is unknown.
    """
    dataset, named = working.table.dataset, landing.format.full_load
    in_order = rules_of(dataset.landing.format).in_order
    named((), dataset, glob)  # refused now, before files are listed
    return FullLoad(
        find=lambda done: unread(
            named(landing.files(), dataset, glob), done, may_grow=False, in_order=in_order
        ),
        landing=landing,
    )


def refuse_no_files(load: FullLoad, dataset: ResolvedDataset, glob: str | None) -> None:
    """Raise OperationError when no file of the load has landed."""
    if load.find({}).files:
        return
    named = glob or dataset.landing.initial_load
    why = f"no file matches `{named}`" if named else "no file of a full load has landed"
    raise nothing_to_reload(dataset, why)
