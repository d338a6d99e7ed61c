"""A storage task over Debezium files: datasets are discovered, one file feeds many of them.

A file is read once for all datasets. Each dataset's commit holds its own position in the file; the ledger is committed
last. After a crash in between the file is read again, and each dataset skips what it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from polynya.engine.context import EngineContext
from polynya.engine.ledger import ledger_dataset
from polynya.engine.native_task import landed_files, progress_of
from polynya.engine.steps import apply_step, copy_step, subject_of
from polynya.lake.dataset import DatasetTable
from polynya.landing.batch import BatchLimits, DatasetBatch
from polynya.landing.debezium.reader import DebeziumScope, read_debezium
from polynya.landing.discovery import discover
from polynya.model.errors import OperationError
from polynya.model.settings import Dataset
from polynya.model.task import ResolvedDataset, StorageTask, resolved
from polynya.observe.events import Event

#: Datasets that are copied or applied at the same time; more only wait for the same cores.
THREADS = 4


class DebeziumTask:
    """Brings all datasets of one task up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._targets: dict[str, DatasetTable] = {}
        self._ledger: DatasetTable | None = None

    def run(self) -> None:
        """Copy all that has landed and apply what is worth it."""
        ledger = self._open()
        while not self._context.stop.is_set():
            found = discover(self._context.landing, self._task.landing.path, "**/*", progress_of(ledger))
            for changed in found.changed:
                self._context.sink(Event("file.changed", subject_of(ledger), {"file": changed.path}))
            if not found.parts:
                break
            known = {source: target.known_schema() for source, target in self._targets.items()}
            done = {source: _records(target) for source, target in self._targets.items()}
            batch = read_debezium(
                self._context.landing, self._scope(), found.parts, known, self._limits, done=done
            )
            live = landed_files(self._context, self._task.landing.path)
            new = sorted(set(batch.datasets) - set(self._targets))
            for source in new:
                self._targets[source] = self._table(source)
            _in_threads(lambda item: self._copy(*item, live), batch.datasets)
            self._commit_ledger(ledger, batch.unrouted, live)
        if not self._context.stop.is_set():
            _in_threads(lambda item: apply_step(self._context, item[1], self._task.apply), self._targets)

    def _open(self) -> DatasetTable:
        if self._ledger is None:
            self._ledger = DatasetTable.open(
                self._context.spark, ledger_dataset(self._task), self._context.owner
            )
        else:
            self._ledger.reload()
        for source in self._ledger.state.copy.members:
            if source in self._targets:
                self._targets[source].reload()
            else:
                self._targets[source] = self._table(source)
        return self._ledger
