"""A life in which everything goes well but one call: that with a given number."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import Enum

from greenlet import getcurrent

from tests.cluster.simulation.drill import Drill
from tests.cluster.simulation.parts.faults import Answer, Fate, Rates, StoreFaults
from tests.cluster.simulation.parts.tables import CommitFaults, CommitRates
from tests.cluster.simulation.parts.world import Process

#: A service manager starts a killed agent again after so many seconds.
STARTS_AGAIN = 5.0


class Mode(Enum):
    """What becomes of a call."""

    LOST = "not made, an error"
    APPLIED = "made, an error"
    KILLED_BEFORE = "the process killed before it"
    KILLED_AFTER = "the process killed after it"


class Blow:
    """Counts the calls of a life and strikes one; None: none.

    Attributes:
        calls: what each was, in their order.
        fell: whether the one to be struck was made.
    """

    def __init__(self, number: int | None = None, mode: Mode = Mode.LOST) -> None:
        self.number, self.mode = number, mode
        self.calls: list[str] = []
        self.fell = False
        self._drill: Drill | None = None

    def prepare(self, drill: Drill) -> None:
        """Have the calls of this life counted."""
        self._drill = drill
        faults = drill.place.faults
        faulted = StruckStore(faults.random, Rates(), faults.heals)
        faulted.node_of, faulted.blow = faults.node_of, self
        drill.place = replace(drill.place, faults=faulted)
        for unit, feed in drill.feeds.items():
            drill.feeds[unit] = replace(feed, faults=StruckCommits(feed.faults, self))

    def falls(self, process: Process, what: str) -> Mode | None:
        """Count a call; how it is struck, None: not at all. Does not return if it dies before."""
        self.calls.append(what)
        if len(self.calls) - 1 != self.number:
            return None
        self.fell = True
        if self.mode is Mode.KILLED_BEFORE:
            self._kill(process)
        if self.mode is Mode.KILLED_AFTER:
            process.interrupt = self._kill
        return self.mode

    def process(self) -> Process:
        """The one whose thread this is."""
        assert self._drill is not None
        here = getcurrent()
        agents = self._drill.agents.values()
        return next(one.process for one in agents if here in one.process._turns)

    def _kill(self, process: Process) -> None:
        assert self._drill is not None
        drill = self._drill
        drill.counts["crash"] += 1
        drill.oracle.crashed(process.name)
        for machine in drill.machines:
            if machine.process is process:
                drill.world.after(STARTS_AGAIN, lambda machine=machine: drill.start(machine))
        process.exit()


class StruckStore(StoreFaults):
    """Every request arrives and is answered, but for one."""

    blow: Blow

    def draw(self, process: Process, verb: str, now: float) -> Fate:
        """What happens to a request."""
        faulted = self.blow.falls(process, f"store: {verb}")
        if faulted is Mode.LOST:
            return Fate(None, 0.03, Answer.ERROR)
        if faulted is Mode.APPLIED:
            return Fate(0.02, 0.03, Answer.ERROR)
        return Fate(0.02)


class StruckCommits(CommitFaults):
    """Every commit is made, but for one."""

    def __init__(self, faults: CommitFaults, blow: Blow) -> None:
        super().__init__(faults.random, CommitRates(), faults.heals, Counter())
        self._blow = blow

    @property
    def rates(self) -> CommitRates:
        """Asked once for each commit: what becomes of it."""
        faulted = self._blow.falls(self._blow.process(), "commit")
        if faulted is Mode.LOST:
            return CommitRates(lost=1.0)
        return CommitRates(applied_but_error=1.0) if faulted is Mode.APPLIED else CommitRates()

    @rates.setter
    def rates(self, value: CommitRates) -> None:
        """None is set."""
