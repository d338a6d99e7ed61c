"""A storage task whose source tables have folders of their own: AWS DMS, Qlik Replicate.

Tables are found by their folders. Each has its own position, like a native dataset; the ledger
remembers which tables there are, before they hold data, and counts the files without a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from polynya.engine.tasks.delivered import delivered
from polynya.engine.tasks.members import policy_of_new
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.threads import in_threads
from polynya.formats.batch import BatchLimits
from polynya.formats.files.discovery import unread
from polynya.formats.files.folders import Folders, sorted_out, unrouted
from polynya.model.config.sources import datasets_of_sources, included
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors
from polynya.store.object_store import ObjectInfo


class FolderTask:
    """Brings all datasets of one task up to date with their folders."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._format = delivered(task)
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._tables = OpenTables(context, task)

    def run(self) -> None:
        """Copy all that has landed and apply what is worth it."""
        with self._tables.in_use():
            self._run()

    def _run(self) -> None:
        ledger = self._tables.ledger
        folders, live = self._landed()
        members = ledger.table.state.copy.membership.members
        new = policy_of_new(self._task, members, folders.tables)
        wanted = set(folders.tables) - new.ignored
        routes, errors = datasets_of_sources(self._task, [*members, *wanted])
        self._tables.meet(routes, new.suspended)
        # New tables are remembered before they hold data, and not before they were judged: one that
        # is remembered is not new.
        self._tables.remember(unrouted(folders, ledger.progress), live)
        tables = self._tables.by_source

        def work(source: str) -> None:
            table = tables[source]
            ready = self._ready(table, folders)
            table.bring_up(self._task.apply, lambda: self._copy_unread(table, ready, live))

        in_threads(work, sorted(routes))
        if errors:
            # The files of these tables stay where they are, unread.
            raise ConfigErrors(errors)

    def _landed(self) -> tuple[Folders, set[str]]:
        """What has landed, by source table, and the paths of all of it."""
        root = self._task.landing.path
        landed = list(self._context.landing.list(root))
        folders = sorted_out(
            landed, root, self._format.table_of, lambda source: included(self._task, source)
        )
        return folders, {info.path for info in landed}

    def _ready(self, table: WorkingDataset, folders: Folders) -> list[ObjectInfo]:
        """The files of a table that can be read; those that wait for their companion are told."""
        ready = []
        for info in folders.tables.get(table.table.dataset.landing.source or "", ()):
            companion = self._format.companion_of(info.path)
            if companion is None or companion in folders.companions:
                ready.append(info)
            elif self._context.is_news(f"{table.name} file {info.path}", companion):
                table.tell("file.waiting", {"file": info.path, "waits_for": companion})
        return ready

    def _copy_unread(
        self, table: WorkingDataset, landed: Sequence[ObjectInfo], live: set[str]
    ) -> None:
        """Copy what is unread of a table's files, full load first."""
        while not self._context.stop.is_set():
            found = unread(landed, table.progress)
            table.found(found)
            if not found.files:
                break
            batch = self._format.read(
                self._context.landing,
                table.reading,
                sorted(found.files, key=lambda part: self._format.reading_order(part.path)),
                table.columns,
                table.keys,
                limits=self._limits,
            )
            table.copy(batch, live_files=live)
