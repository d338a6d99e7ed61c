"""What a run does about a table that another process took over.

That may be a short command (`resume`, `replay`, `reload`, `rebuild`), after which the run has to go
on, or a second run of the task. A commit of the older one is refused in any case; this only keeps
two processes from taking the table from each other all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.fence import owner_in_words
from polynya.model.errors import ConflictError, StaleStepError

#: A table is taken back when the other process has not committed for so many seconds.
QUIET_SECONDS = 60.0
#: The same while a reload is under way: comparing a large table takes its time.
QUIET_SECONDS_OF_A_RELOAD = 900.0


@dataclass(frozen=True, slots=True)
class _Sighting:
    """The newest snapshot of a table, and the monotonic time in seconds at which it was new."""

    snapshot: int | None
    at: float


class Truce:
    """The tables that other processes took over, by name. Times in monotonic seconds."""

    def __init__(self) -> None:
        self._lost: dict[str, _Sighting] = {}

    @property
    def is_empty(self) -> bool:
        """Whether all tables are this process's own, as far as it knows."""
        return not self._lost

    def lost(self, error: ConflictError, now: float) -> None:
        """Remember that the table of a refused step is somebody else's, if it is."""
        if isinstance(error, StaleStepError):
            return
        self._lost.setdefault(str(error.where), _Sighting(None, now))

    def wait_for_quiet(self, table: DatasetTable, now: float) -> None:
        """Raise ConflictError as long as the process that took a table over goes on with it."""
        name, state = table.table.name, table.state
        seen = self._lost.get(name)
        if seen is None:
            return
        if seen.snapshot != state.snapshot:
            seen = self._lost[name] = _Sighting(state.snapshot, now)
        quiet = QUIET_SECONDS
        if state.copy.reloading is not None:
            quiet = QUIET_SECONDS_OF_A_RELOAD
        if now - seen.at < quiet:
            raise ConflictError(
                "POLYNYA-LAKE-002",
                f"{owner_in_words(state.ownership.owner)} works on {name}; this one goes on when "
                f"nothing was committed there for {quiet:.0f} s",
                where=name,
                state="nothing is written by this process meanwhile; the other one goes on",
                fix="nothing, if a command such as `reload` or `replay` does it; "
                "end one of two processes that run the same task",
            )
        del self._lost[name]
