"""A storage task whose source tables have folders of their own.

Tables are found by their folders. Each has its own position, like a native dataset; the ledger
remembers which tables there are, before they hold data, and counts the files without a table.
"""

from __future__ import annotations

from collections.abc import Mapping

from polynya.engine.tasks.new_sources import policy_of_new
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.landing import TaskLanding
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.threads import in_threads
from polynya.formats.files.folders import unrouted
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors
from polynya.observe.data import FileWaiting


class FolderTask:
    """Brings all datasets of one task up to date with their folders."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)

    def run(self) -> None:
        """Copy all that has landed and apply what is worth it."""
        with self._tables.in_use():
            self._run()

    def _run(self) -> None:
        ledger = self._tables.ledger
        landed = self._landing.files()
        folders, live = self._landing.format.tables(landed), {info.path for info in landed}
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
            table, ready = tables[source], folders.tables.get(source, ())
            self._tell_waiting(table, folders.waiting.get(source, {}))
            table.bring_up(
                self._task.apply,
                lambda: self._landing.copy_unread(table, lambda: ready, lambda: live),
            )

        in_threads(work, sorted(routes))
        if errors:
            # The files of these tables stay where they are, unread.
            raise ConfigErrors(errors)

    def _tell_waiting(self, table: WorkingDataset, companions: Mapping[str, str]) -> None:
        """Say which files cannot be read before another one has landed."""
        for file, companion in companions.items():
            if self._context.is_news(f"{table.name} file {file}", companion):
                table.tell(FileWaiting(subject=table.name, file=file, waits_for=companion))
