"""A storage task whose datasets are declared: each has its own files, position and table."""

from __future__ import annotations

from polynya.engine.work.beside import AppliesBeside
from polynya.engine.work.context import EngineContext
from polynya.engine.work.landing import TaskLanding
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.tidying.beside import MaintenanceBeside
from polynya.engine.work.turns.look import SharedLook
from polynya.engine.work.turns.unit import Ended, Turn
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask


class DeclaredDataset:
    """Brings one dataset up to date with its landed files."""

    def __init__(
        self, context: EngineContext, task: StorageTask, dataset: ResolvedDataset, look: SharedLook
    ) -> None:
        self._dataset = dataset
        self._look = look
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._applies = AppliesBeside(task, dataset)
        self._maintenance = MaintenanceBeside(dataset)

    def step(self, turn: Turn) -> Ended:
        """Copy the next batch, first full load first; when all is copied apply if it is worth it.

        While it is applied it is copied: an apply of a run that goes on is a unit of its own.
        """
        landing, look = self._landing, self._look
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            ended = self._applies.copied(
                table,
                turn,
                lambda: landing.copy_next(table, turn, lambda: look.files(turn), look.paths),
            )
            if turn.more_comes:
                return ended
            return self._maintenance.after(table, self._applies.bring_up(table, turn, ended))
