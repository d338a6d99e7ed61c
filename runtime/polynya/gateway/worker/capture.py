"""A capture from its start until it ends: one round after the other, and what errors make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from polynya.gateway.faults import UNREADABLE, TableError, TableFaults
from polynya.gateway.landing.lander import Lander
from polynya.gateway.landing.position import Position, TableProgress
from polynya.gateway.wire import error_fields
from polynya.gateway.worker.context import CaptureContext
from polynya.gateway.worker.requests import is_for_all, taken
from polynya.gateway.worker.round import Round
from polynya.model.errors import OperationError

#: Seconds until the stream is read again after a table's change could not land.
_RETRY_SECONDS: Final = 5.0
#: Where only a load of all tables helps: the stream is lost, or cannot be read any further.
_BY_RELOAD: Final = frozenset({"POLYNYA-GTW-008", UNREADABLE})


@dataclass(slots=True)
class Capture(CaptureContext):
    """One capture, from its start until it is told to end."""

    def run(self) -> None:
        """Capture until it is told to end, or has done what it was asked for.

        Raises:
            PolynyaError: it cannot go on; `retryable` says whether a new start may help. All that
                has landed stays, and the next start goes on after it.
        """
        lander = Lander(
            self.log,
            self.settings.task,
            self.now,
            writer=self.writer,
            unsent=self.unsent,
            newest=self.log.newest(),
            landed=lambda number, events, size: self.tell(
                "landed", number=number, events=events, object_bytes=size
            ),
        )
        faults = TableFaults(self.settings.table_retries, self.monotonic)
        is_anew = False
        while not self.stop.is_set():
            try:
                with Round(self, lander, is_anew=is_anew) as one:
                    is_anew = self._ends_for_anew(one)
            except TableError as error:
                is_anew = False
                self._take_out(_known_to(lander.position, error), lander, faults)

    def _take_out(self, error: TableError, lander: Lander, faults: TableFaults) -> None:
        """After a change of a table could not land: it is tried again, or goes on without it.

        Raises the error where the task says so.
        """
        gives_up = faults.gives_up(error.table)
        suspends = gives_up and self.settings.table_then == "suspend"
        self.tell(
            "table_failed", table=error.table, error=error_fields(error), suspended=suspends
        )  # fmt: skip
        if gives_up and not suspends:
            raise error
        if not suspends:
            self.stop.wait(_RETRY_SECONDS)
            return

        def move(before: Position) -> Position:
            progress = before.tables.get(error.table, TableProgress())
            return before.with_table(error.table, progress.without_changes(error))

        lander.land(b"", 0, {}, move)

    def _ends_for_anew(self, one: Round) -> bool:
        """Run a round; whether the next one has to begin the capture anew. Raises what it does."""
        try:
            one.run()
        except OperationError as error:
            if error.code not in _BY_RELOAD:
                raise
            waits = not isinstance(error, TableError)
            if not (one.is_for_all or (waits and self._is_asked_for_all())):
                raise
            return True
        return False

    def _is_asked_for_all(self) -> bool:
        """Wait for somebody to ask for a load of all tables; whether somebody does."""
        until = self.monotonic() + self.patience
        while not self.stop.is_set():
            if is_for_all(taken(self.requests)):
                return True
            left = until - self.monotonic()
            if left <= 0:
                return False
            self.wake.wait(left)
            self.wake.clear()
        return False


def _known_to(position: Position, error: TableError) -> TableError:
    """An error with the whole name of its table. Raises it as one of no table where that is open.

    Where nothing has landed yet, no table is known.
    """
    found = [name for name in position.tables if name == error.table]
    found = found or [name for name in position.tables if name.endswith(f".{error.table}")]
    if len(found) == 1:
        return TableError.of(found[0], error)
    raise error
