"""A run of a unit: takes its table over, then takes in what arrived, batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError, PolynyaError
from tests.cluster.simulation.parts.source import Source
from tests.cluster.simulation.parts.tables import CommitFaults, Handle, Table
from tests.cluster.simulation.parts.world import Process

MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Feed:
    """The table and the input of a unit, and what strikes its commits."""

    table: Table
    source: Source
    faults: CommitFaults


@dataclass(slots=True)
class Job:
    """A run. `hangs` makes its next step last so many seconds.

    `may_begin` is asked before each step: whether the grant is still good, and tells the oracle.
    """

    unit: JobKey
    epoch: int
    owner: str
    process: Process
    feed: Feed
    may_begin: Callable[[Job], bool]
    ended: Callable[[Job], None]
    stopping: bool = False
    hangs: float = 0.0
    fenced: bool = False
    failed: bool = False

    def run(self) -> None:
        """Work until stopped or failed."""
        try:
            self._work()
        except ConflictError:
            self.fenced = True
        except PolynyaError:
            self.failed = True
        self.ended(self)

    def _work(self) -> None:
        random, process = self.process.world.random, self.process
        handle = Handle(self.feed.table, process, self.feed.faults, self.owner)
        if not self._goes_on():
            return
        handle.take_over(self.epoch)
        while self._goes_on():
            waiting = self.feed.source.arrived() - handle.state.position
            if waiting <= 0:
                process.wait(2 + 2 * random.random())
                continue
            hangs, self.hangs = self.hangs, 0.0
            process.wait(0.5 + 4 * random.random() + hangs)
            handle.commit(min(waiting, MOST_ROWS))

    def _goes_on(self) -> bool:
        return not self.stopping and self.may_begin(self)
