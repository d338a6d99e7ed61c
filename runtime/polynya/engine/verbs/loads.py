"""Where the full load of a dataset lies, by the format of its task."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.engine.tasks.delivered import Delivered, delivered
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.gather import Load
from polynya.formats.batch import BatchLimits, FileProgress
from polynya.formats.files.discovery import Discovery, discover, glob_pattern, relative_to, unread
from polynya.formats.files.folders import sorted_out
from polynya.formats.native.reader import read_native
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import DISCOVERING
from polynya.model.config.task import StorageTask
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectStore


def load_of(working: WorkingDataset, task: StorageTask, glob: str | None) -> Load:
    """The full load of a dataset.

    `glob` names files below the landing path, by default those of `initial_load`, or whatever the
    service names as a full load of the table.

    Raises OperationError when the dataset says nowhere where it lies.
    """
    dataset = working.table.dataset
    if dataset.landing.format == "debezium":
        raise _nothing_to_reload(
            dataset,
            "a capture has no files of a full load",
            fix="take a new snapshot with the connector: its records are upserts; docs/reload.md "
            "says how to find those that are gone",
        )
    if dataset.landing.format in DISCOVERING:
        return _delivered_load(working, task, glob)
    return _native_load(working, task, glob)


def refuse_nothing(load: Load, dataset: ResolvedDataset, glob: str | None) -> None:
    """Raise OperationError for a load of which no file has landed."""
    if load.find({}).files:
        return
    named = glob or dataset.landing.initial_load
    why = f"no file matches `{named}`" if named else "no file of a full load has landed"
    raise _nothing_to_reload(dataset, why)


def _native_load(working: WorkingDataset, task: StorageTask, glob: str | None) -> Load:
    dataset, landing = working.table.dataset, working.context.landing
    limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
    wanted = glob or dataset.landing.initial_load
    if wanted is None:
        raise _nothing_to_reload(dataset, "no `initial_load`")
    return Load(
        find=lambda done: discover(landing, dataset.landing.folder, wanted, done, may_grow=False),
        read=lambda files: read_native(
            landing, working.reading, files, working.columns, limits, load=True
        ),
    )


def _delivered_load(working: WorkingDataset, task: StorageTask, glob: str | None) -> Load:
    dataset, landing = working.table.dataset, working.context.landing
    limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
    form = delivered(task)
    return Load(
        find=lambda done: _loads(landing, dataset, form, glob, done),
        read=lambda files: form.read(
            landing, working.reading, files, working.columns, working.keys, limits=limits
        ),
    )


def _loads(
    landing: ObjectStore,
    dataset: ResolvedDataset,
    form: Delivered,
    glob: str | None,
    done: Mapping[str, FileProgress],
) -> Discovery:
    root = dataset.landing.folder
    folders = sorted_out(
        list(landing.list(root)), root, form.table_of, lambda one: one == dataset.landing.source
    )
    pattern = glob_pattern(glob or "**")
    loads = [
        info
        for info in folders.tables.get(dataset.landing.source or "", ())
        if form.is_load(info.path) and pattern.fullmatch(relative_to(root, info.path))
    ]
    return unread(loads, done, may_grow=False)


def _nothing_to_reload(
    dataset: ResolvedDataset,
    why: str,
    fix: str = "land the new full load where `initial_load` says, or name its files with `--files`",
) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-014",
        f"there is nothing to reload {dataset.relations.current} from: {why}",
        where=f"task {dataset.task}",
        state="nothing was changed",
        fix=fix,
    )
