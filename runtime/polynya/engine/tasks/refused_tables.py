"""Tables of a shared capture that cannot be copied as things are; the others go on without them.

What concerns one table alone is held here, with the pause before it is tried again: an error of its
settings, keys or columns, and a fault in our own work on it. What may pass by itself, what another
owner did and what a policy stops concerns the whole task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from polynya.engine.errors import as_polynya
from polynya.engine.work.context import EngineContext
from polynya.engine.work.turns.queue import longer_pause
from polynya.model.errors import PolynyaError, TaskStoppedError
from polynya.observe.data import UnitFailed


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a table is refused, and until when; times in monotonic seconds."""

    error: PolynyaError
    again: float
    pause: float


class RefusedTables:
    """The tables that this process met and could not copy, by source table."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._found: dict[str, _Refusal] = {}

    def attempt(self, source: str, work: Callable[[], None]) -> bool:
        """Do the work of one table, unless it was refused just now; tell whether it was done.

        Raises what does not concern this table alone.
        """
        before = self._found.get(source)
        now = self._context.clock.monotonic()
        if before is not None and now < before.again:
            return False
        try:
            work()
        except Exception as error:
            told = as_polynya(error)
            if told.retryable or isinstance(told, TaskStoppedError) or not self._context.is_alive():
                raise
            pause = longer_pause(0.0 if before is None else before.pause)
            self._found[source] = _Refusal(self._context.explained(told), now + pause, pause)
            return False
        return True

    def passed(self, sources: Collection[str]) -> None:
        """All that was to be done for these tables was done."""
        self._found = {name: one for name, one in self._found.items() if name not in sources}

    def accepts(self, source: str) -> bool:
        """Whether nothing is known against a table."""
        return source not in self._found

    @property
    def errors(self) -> list[PolynyaError]:
        """Why tables are refused, in the order of their names."""
        return [self._found[source].error for source in sorted(self._found)]

    def first_of(self, troubles: Iterable[PolynyaError], subject: str) -> PolynyaError | None:
        """The first of several troubles, which the unit tells; the others are told here, once."""
        found = list(troubles)
        for number, error in enumerate(found[1:], start=2):
            if self._context.is_news(f"{subject} trouble {number}", str(error)):
                self._context.sink(UnitFailed(subject=error.where or subject, error=error))
        return found[0] if found else None
