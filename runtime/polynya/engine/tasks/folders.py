"""A storage task whose source tables have folders of their own: AWS DMS, Qlik Replicate.

Tables are found by their folders. Each has its own position, like a native dataset; the ledger
remembers which tables there are, before they hold data, and counts the files without a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from polynya.engine.tasks.delivered import delivered
from polynya.engine.tasks.members import policy_of_new
from polynya.engine.work.context import EngineContext
from polynya.engine.work.evolution import suspend_new
from polynya.engine.work.ledger import ledger_dataset
from polynya.engine.work.steps import (
    bring_up,
    copy_step,
    looked_at_again,
    opened,
    progress_of,
    subject_of,
    tell_found,
)
from polynya.engine.work.threads import in_threads
from polynya.formats.batch import BatchLimits
from polynya.formats.files.discovery import unread
from polynya.formats.files.folders import Folders, sorted_out, unrouted
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import datasets_of_sources, included
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors, SuspendedError
from polynya.observe.events import Event
from polynya.store.object_store import ObjectInfo


class FolderTask:
    """Brings all datasets of one task up to date with their folders."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._format = delivered(task)
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._targets: dict[str, DatasetTable] = {}
        self._ledger: DatasetTable | None = None
        self._told: set[str] = set()

    def run(self) -> None:
        """Copy all that has landed and apply what is worth it."""
        try:
            self._run()
        except SuspendedError:
            raise
        except BaseException:
            # What this owner believes of the tables may be wrong now.
            self._ledger, self._targets = None, {}
            raise

    def _run(self) -> None:
        if self._ledger is None:
            self._ledger = self._table(ledger_dataset(self._task))
        root = self._task.landing.path
        landed = list(self._context.landing.list(root))
        folders = sorted_out(
            landed, root, self._format.table_of, lambda source: included(self._task, source)
        )
        live = {info.path for info in landed}
        members = self._ledger.state.copy.members
        new = policy_of_new(self._task, members, folders.tables)
        wanted = set(folders.tables) - new.ignored
        routes, errors = datasets_of_sources(self._task, [*members, *wanted])
        for source in sorted(set(routes) - set(self._targets)):
            self._targets[source] = self._table(routes[source])
            if source in new.suspended:
                suspend_new(self._context, self._targets[source], source)
        # Not before: a table that was remembered is no new one any more.
        self._remember(self._ledger, routes, folders, live)

        def work(source: str) -> None:
            target = looked_at_again(self._context, self._targets[source])
            self._targets[source] = target
            ready = self._ready(subject_of(target), folders.tables.get(source, ()), folders)
            bring_up(
                self._context,
                target,
                self._task.apply,
                lambda: self._copy_unread(target, ready, live),
            )

        in_threads(work, sorted(routes))
        if errors:
            # The files of these tables stay where they are, unread.
            raise ConfigErrors(errors)

    def _remember(
        self,
        ledger: DatasetTable,
        sources: Iterable[str],
        folders: Folders,
        live: set[str],
    ) -> None:
        """Commit new tables to the ledger before they hold data, and the files without a table."""
        before = ledger.state.copy.members
        members = sorted({*before, *sources})
        batch = unrouted(folders, progress_of(ledger))
        if members == before and not batch.files:
            return
        ledger.state = replace(ledger.state, copy=replace(ledger.state.copy, members=members))
        copy_step(self._context, ledger, batch, live)

    def _ready(
        self, subject: str, landed: Sequence[ObjectInfo], folders: Folders
    ) -> list[ObjectInfo]:
        """The files of a table that can be read; those that wait for their companion are told."""
        ready = []
        for info in landed:
            companion = self._format.companion_of(info.path)
            if companion is None or companion in folders.companions:
                ready.append(info)
            elif info.path not in self._told:
                self._told.add(info.path)
                fields = {"file": info.path, "waits_for": companion}
                self._context.sink(Event("file.waiting", subject, fields))
        return ready

    def _copy_unread(
        self, target: DatasetTable, landed: Sequence[ObjectInfo], live: set[str]
    ) -> None:
        """Copy what is unread of a table's files, full load first."""
        while not self._context.stop.is_set():
            found = unread(landed, progress_of(target))
            tell_found(self._context, target, found)
            if not found.files:
                break
            batch = self._format.read(
                self._context.landing,
                target.reading,
                sorted(found.files, key=lambda part: self._format.reading_order(part.path)),
                target.known_schema(),
                tuple(target.state.copy.keys),
                limits=self._limits,
            )
            copy_step(self._context, target, batch, live)

    def _table(self, dataset: ResolvedDataset) -> DatasetTable:
        return opened(self._context, dataset)
