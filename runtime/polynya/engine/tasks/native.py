"""A storage task over native files: each dataset has its own glob, position and table."""

from __future__ import annotations

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.tables import OpenTables
from polynya.formats.batch import BatchLimits
from polynya.formats.files.discovery import discover
from polynya.formats.native.reader import read_native
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask


class NativeDataset:
    """Brings one dataset up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask, dataset: ResolvedDataset) -> None:
        self._context = context
        self._task = task
        self._dataset = dataset
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._tables = OpenTables(context, task)

    def run(self) -> None:
        """Copy all that has landed, first full load first, and apply if it is worth it."""
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            table.bring_up(self._task.apply, lambda: self._copy_landed(table))

    def _copy_landed(self, table: WorkingDataset) -> None:
        if self._dataset.landing.initial_load is not None:
            self._copy_all(table, self._dataset.landing.initial_load, load=True)
        self._copy_all(table, self._dataset.landing.glob, load=False)

    def _copy_all(self, table: WorkingDataset, glob: str, *, load: bool) -> None:
        landing, root = self._context.landing, self._dataset.landing.folder
        while not self._context.stop.is_set():
            found = discover(landing, root, glob, table.progress)
            table.found(found)
            if not found.files:
                return
            batch = read_native(
                landing, table.reading, found.files, table.columns, self._limits, load=load
            )
            table.copy(batch, live_files=self._context.landed_files(root))
