"""A run of a unit: takes its table over, then takes in what arrived, batch after batch.

Or it does what a person asks of the unit, and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polynya.cluster.control.requests import PendingRequest
from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError, PolynyaError
from tests.cluster.simulation.parts.source import Source
from tests.cluster.simulation.parts.tables import CommitFaults, Handle, Table
from tests.cluster.simulation.parts.world import Process

MOST_ROWS = 10
#: How much of what is asked cannot be done.
IMPOSSIBLE_SHARE = 0.1


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
    `asked` is what it does instead of the work of the unit; `carried_out` says that this was done,
    or cannot be, None: neither.
    """

    unit: JobKey
    epoch: int
    owner: str
    process: Process
    feed: Feed
    may_begin: Callable[[Job], bool]
    ended: Callable[[Job], None]
    asked: PendingRequest | None = None
    stopping: bool = False
    hangs: float = 0.0
    fenced: bool = False
    failed: bool = False
    carried_out: bool | None = None

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
        if self.asked is not None:
            self._carry_out(handle, self.asked)
            return
        while self._goes_on():
            waiting = self.feed.source.arrived() - handle.state.position
            if waiting <= 0:
                process.wait(2 + 2 * random.random())
                continue
            hangs, self.hangs = self.hangs, 0.0
            process.wait(0.5 + 4 * random.random() + hangs)
            handle.commit(min(waiting, MOST_ROWS))

    def _carry_out(self, handle: Handle, asked: PendingRequest) -> None:
        random, process = self.process.world.random, self.process
        hangs, self.hangs = self.hangs, 0.0
        process.wait(0.5 + 4 * random.random() + hangs)
        if random.random() < IMPOSSIBLE_SHARE:
            self.carried_out = False
            return
        if asked.command.kind == "recreate":
            handle.empty(asked.nonce)
        else:
            handle.begin_load(asked.nonce)
            process.wait(1 + 9 * random.random())
            if not self._goes_on():
                return
            handle.end_load(asked.nonce)
        self.carried_out = True

    def _goes_on(self) -> bool:
        return not self.stopping and self.may_begin(self)
