"""A storage task whose source tables have folders of their own.

Tables are found by their folders, and from then on each is a unit of work with a position of its
own, like a native dataset. The ledger remembers which tables there are, before they hold data, and
counts the files without a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from polynya.engine.tasks.new_sources import policy_of_new
from polynya.engine.work.beside import AppliesBeside
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.landing import TaskLanding
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.tidying.beside import MaintenanceBeside
from polynya.engine.work.turns.unit import IDLE, Ended, Turn, Unit
from polynya.formats.files.folders import Folders, unrouted
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors
from polynya.observe.data import FileWaiting


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found when somebody last looked.

    `sources` are the tables that are taken, `live` every file that exists.
    """

    folders: Folders
    sources: frozenset[str]
    live: frozenset[str]


class FolderTask:
    """Finds the tables of one task by their folders."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._units: dict[str, Unit] = {}
        self._look: _Look | None = None

    def step(self, _turn: Turn) -> Ended:
        """Look which tables there are; each is brought up to date by a unit of its own."""
        with self._tables.in_use():
            return self._find()

    def _find(self) -> Ended:
        ledger = self._tables.ledger
        landed = self._landing.files()
        folders, live = self._landing.format.tables(landed), {info.path for info in landed}
        members = ledger.table.state.copy.membership.members
        new = policy_of_new(self._task, members, folders.tables)
        wanted = set(folders.tables) - new.ignored
        routes, errors = datasets_of_sources(self._task, [*members, *wanted], known=members)
        for source in sorted(new.suspended & set(routes)):
            WorkingDataset.open(self._context, routes[source]).suspend_new(source)
        # New tables are remembered before they hold data, and not before they were judged: one that
        # is remembered is not new.
        self._tables.remember(routes, unrouted(folders, ledger.progress), live)
        self._look = _Look(folders, frozenset(routes), frozenset(live))
        for source in sorted(set(routes) - set(self._units)):
            table = FolderTable(self._context, self._task, routes[source], source, self._last_look)
            self._units[source] = Unit(
                routes[source].relations.current, self._task.name, table.step
            )
        return Ended(
            found=tuple(self._units[source] for source in sorted(routes)),
            # The files of these tables stay where they are, unread.
            refused=ConfigErrors(errors) if errors else None,
        )

    def _last_look(self) -> _Look:
        assert self._look is not None, "a table is found by a look"
        return self._look


class FolderTable:
    """Brings one table up to date with its folder, as it was when the task last looked."""

    def __init__(
        self,
        context: EngineContext,
        task: StorageTask,
        dataset: ResolvedDataset,
        source: str,
        look: Callable[[], _Look],
    ) -> None:
        self._context = context
        self._dataset = dataset
        self._source = source
        self._last_look = look
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._applies = AppliesBeside(task, dataset)
        self._maintenance = MaintenanceBeside(dataset)

    def step(self, turn: Turn) -> Ended:
        """Copy the next batch; when all is copied apply if it is worth it."""
        look = self._last_look()
        if self._source not in look.sources:
            return IDLE
        ready = look.folders.tables.get(self._source, ())
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            self._tell_waiting(table, look.folders.waiting.get(self._source, {}))
            ended = self._applies.copied(
                table,
                turn,
                lambda: self._landing.copy_next(table, turn, lambda: ready, lambda: look.live),
            )
            return self._maintenance.after(table, self._applies.bring_up(table, turn, ended))

    def _tell_waiting(self, table: WorkingDataset, companions: Mapping[str, str]) -> None:
        """Say which files cannot be read before another one has landed."""
        for file, companion in companions.items():
            if self._context.is_news(f"{table.name} file {file}", companion):
                table.tell(FileWaiting(subject=table.name, file=file, waits_for=companion))
