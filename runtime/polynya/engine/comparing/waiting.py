"""Waits until the tables have all that the source had committed at a moment."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from polynya.engine.plan.inventory import inventory
from polynya.gateway.compare.source import Moment
from polynya.gateway.landing.log import CaptureLog
from polynya.lake.read import inspect
from polynya.lake.warehouse.tables import Tables
from polynya.model.errors import OperationError
from polynya.model.reading.loader import LoadedProject
from polynya.store.clock import Clock

#: Seconds between two looks, at first and after a while: each lists the landed batches.
_PAUSE, _LONG_PAUSE = 0.5, 2.0
_A_WHILE: Final = 10.0


class Waiting:
    """Looks how far a capture has landed, and how far its storage tasks have copied that."""

    def __init__(
        self,
        project: LoadedProject,
        log: CaptureLog,
        tasks: Collection[str],
        catalog: Callable[[], Tables],
        clock: Clock,
        *,
        patience: float,
        follows: bool = True,
    ) -> None:
        """Wait for the storage tasks of these names, each time at most `patience` seconds.

        A capture that does not follow changes has landed all that it will when it has loaded.
        """
        self._project, self._log, self._tasks = project, log, tasks
        self._catalog, self._clock, self._patience = catalog, clock, patience
        self._follows = follows

    def wait(self, moment: Moment) -> None:
        """Return when everything is there. Raises OperationError, POLYNYA-GTW-091."""
        began = self._clock.monotonic()
        number: int | None = None
        while True:
            number = number or self._landed(moment)
            if number is not None and self._is_copied(number):
                return
            waited = self._clock.monotonic() - began
            if waited >= self._patience:
                raise self._late(moment, landed=number is not None)
            self._clock.sleep(_PAUSE if waited < _A_WHILE else _LONG_PAUSE)

    def _landed(self, moment: Moment) -> int | None:
        """The number of a batch with which everything has landed; None: not yet."""
        newest = self._log.newest()
        if newest is None:
            return None
        places = (newest.position["stream"]["offset"], newest.position.get("read_to"))
        there = not self._follows or any(moment.is_reached(one) for one in places if one)
        return newest.number if there else None

    def _is_copied(self, number: int) -> bool:
        """Whether all batches up to one of them were read for all tables."""
        paths = {self._log.path(one) for one in self._log.numbers() if one <= number}
        ledgers = [
            entry
            for entry in inventory(self._project, self._catalog())
            if entry.is_ledger and entry.task.name in self._tasks
        ]
        for entry in ledgers:
            if entry.table is None:
                return False
            files = inspect.states(entry.table)[0].position.files
            if not all(path in files and files[path].complete for path in paths):
                return False
        return True

    def _late(self, moment: Moment, *, landed: bool) -> OperationError:
        part = "copied into the tables" if landed else "landed"
        return OperationError(
            "POLYNYA-GTW-091",
            f"what the source had at {moment.position} was not {part} in "
            f"{self._patience:g} seconds",
            where=self._log.folder,
            state="nothing was compared to the end, and nothing was changed",
            fix="let `polynya run` work on both tasks meanwhile, or wait longer with `--wait`",
        )
