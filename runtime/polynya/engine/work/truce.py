"""What a run does about a table that another process took over.

That may be a short command (`resume`, `replay`, `reload`, `rebuild`), after which the run has to go
on, or a second run of the task. A commit of the older one is refused in any case; this only keeps
two processes from taking the table from each other all the time.
"""

from __future__ import annotations

from polynya.engine.work.context import EngineContext, Sighting
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError

#: A table is taken back when the other process has not committed for so many seconds.
QUIET_SECONDS = 60.0
#: The same while a reload is under way: comparing a large table takes its time.
QUIET_SECONDS_OF_A_RELOAD = 900.0


def wait_for_quiet(context: EngineContext, target: DatasetTable) -> None:
    """Raise ConflictError as long as the process that took a table over goes on with it."""
    name = target.table.name
    seen = context.lost.get(name)
    if seen is None:
        return
    now = context.clock.monotonic()
    if seen.snapshot != target.state.snapshot:
        seen = context.lost[name] = Sighting(target.state.snapshot, now)
    reloading = target.state.copy.reloading is not None
    if now - seen.at < (QUIET_SECONDS_OF_A_RELOAD if reloading else QUIET_SECONDS):
        raise ConflictError(
            "POLYNYA-LAKE-002",
            f"another process works on {name}; this one waits until it has been silent for a while",
            where=name,
            state="nothing is written by this process meanwhile; the other one goes on",
            fix="nothing, if a command such as `reload` or `replay` does it; "
            "end one of two processes that run the same task",
        )
    del context.lost[name]


def lost(context: EngineContext, error: ConflictError) -> None:
    """Remember that the table of a refused step is somebody else's."""
    now = context.clock.monotonic()
    context.lost.setdefault(str(error.where), Sighting(None, now))
