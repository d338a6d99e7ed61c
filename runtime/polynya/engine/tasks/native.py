"""A storage task over native files: each dataset has its own glob, position and table."""

from __future__ import annotations

from polynya.engine.work.context import EngineContext
from polynya.engine.work.steps import bring_up, copy_step, opened, progress_of, tell_found
from polynya.formats.batch import BatchLimits
from polynya.formats.files.discovery import discover
from polynya.formats.native.reader import read_native
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask


class NativeDataset:
    """Brings one dataset up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask, dataset: ResolvedDataset) -> None:
        self._context = context
        self._task = task
        self._dataset = dataset
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._target: DatasetTable | None = None

    def run(self) -> None:
        """Copy all that has landed, first full load first, and apply if it is worth it.

        The state of the table is read once: as long as nobody takes over, nobody else changes it.
        """
        if self._target is None:
            self._target = opened(self._context, self._dataset)
        try:
            target = self._target
            bring_up(self._context, target, self._task.apply, lambda: self._copy_landed(target))
        except BaseException:
            # What this owner believes of the table may be wrong now.
            self._target = None
            raise

    def _copy_landed(self, target: DatasetTable) -> None:
        if self._dataset.landing.initial_load is not None:
            self._copy_all(target, self._dataset.landing.initial_load, load=True)
        self._copy_all(target, self._dataset.landing.glob, load=False)

    def _copy_all(self, target: DatasetTable, glob: str, *, load: bool) -> None:
        while not self._context.stop.is_set():
            done = progress_of(target)
            found = discover(self._context.landing, self._dataset.landing.folder, glob, done)
            tell_found(self._context, target, found)
            if not found.files:
                return
            batch = read_native(
                self._context.landing,
                target.reading,
                found.files,
                target.known_schema(),
                self._limits,
                load=load,
            )
            copy_step(
                self._context,
                target,
                batch,
                landed_files(self._context, self._dataset.landing.folder),
            )


def landed_files(context: EngineContext, path: str) -> set[str]:
    """Every file that exists below a landing path; the position forgets files that left."""
    return {info.path for info in context.landing.list(path)}
