"""A stand-in of a table with the rule of the real one: a commit swaps the state it was based on.

The state holds owner, epoch and position, in the commit that holds the rows (semantics section 11).
The other rules of `Fence` are control arms: they have to lose or to duplicate rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from random import Random
from typing import TypeVar

from polynya.model.errors import ConflictError, DependencyError
from tests.cluster.simulation.parts.world import Process

T = TypeVar("T")


class Fence(Enum):
    """How a commit is made. STATE is the rule, the others are wrong.

    STATE: it swaps the state that it was based on, with the position. NONE: it is made whatever the
    state is by now. CHECKED_BEFORE: the same, if the epoch was not higher a moment before.
    POSITION_AFTER and POSITION_BEFORE: the position is swapped in a commit of its own.
    """

    STATE = auto()
    NONE = auto()
    CHECKED_BEFORE = auto()
    POSITION_AFTER = auto()
    POSITION_BEFORE = auto()

    @property
    def swaps(self) -> bool:
        """Whether each commit is a compare-and-swap."""
        return self not in {Fence.NONE, Fence.CHECKED_BEFORE}


@dataclass(frozen=True, slots=True)
class State:
    """What the newest commit says of its owner and of what has been taken in.

    `loading` is the wish whose reload has begun and not ended.
    """

    epoch: int = 0
    owner: str = ""
    position: int = 0
    commit: int = 0
    loading: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit as it was made, when, and by which process.

    `did` is the wish that it carried out, "" of any other; `emptied`: no row is left.
    """

    at: float
    process: str
    state: State
    rows: range
    did: str = ""
    emptied: bool = False


@dataclass(slots=True)
class Table:
    """Its newest state and all commits that were made; `stored` are the rows in them."""

    name: str
    fence: Fence = Fence.STATE
    state: State = field(default_factory=State)
    commits: list[Commit] = field(default_factory=list)

    def swap(self, based_on: State, commit: Commit) -> bool:
        """Commit if the state is still the one that it is based on. Whether it was."""
        if self.fence.swaps and based_on != self.state:
            return False
        self.state = commit.state
        self.commits.append(commit)
        return True


@dataclass(frozen=True, slots=True)
class CommitRates:
    """How often the catalog fails in which way, as a share of the commits."""

    lost: float = 0.0
    applied_but_error: float = 0.0
    late: float = 0.0


@dataclass(slots=True)
class CommitFaults:
    """Draws the fate of commits until `heals`."""

    random: Random
    rates: CommitRates
    heals: float
    counts: Counter[str]
    commits: int = 0


class Handle:
    """A table as one run of a unit holds it. `granted` is the epoch of the run, `owner` its node.

    Raises ConflictError POLYNYA-LAKE-060 from `take_over` when the table has an epoch as high,
    POLYNYA-LAKE-002 from `commit` when somebody took it over, DependencyError when the outcome is
    unknown.
    """

    def __init__(self, table: Table, process: Process, faults: CommitFaults, owner: str) -> None:
        self.table, self._process, self._faults, self.owner = table, process, faults, owner
        self.state = self._reach(lambda: table.state, 0.1)

    def take_over(self, granted: int) -> None:
        """Make this run the only one whose commits are made."""
        held = self.state
        ours = held.epoch == granted and held.owner == self.owner
        higher = held.epoch > granted or (held.epoch == granted and not ours)
        if higher and self.table.fence is not Fence.NONE:
            raise _refused("POLYNYA-LAKE-060", self.table)
        self._swap(replace(self._next(), epoch=granted))

    def empty(self, request: str) -> None:
        """Begin again from the first row, as a recreation does."""
        self._swap(replace(self._next(), position=0, loading=""), did=request, emptied=True)

    def begin_load(self, request: str) -> None:
        """Begin a reload, unless one has begun that nobody ended."""
        if not self.state.loading:
            self._swap(replace(self._next(), loading=request))

    def end_load(self, request: str) -> None:
        """End the reload that has begun."""
        self._swap(replace(self._next(), loading=""), did=request)

    def commit(self, count: int) -> None:
        """Take in the next `count` rows."""
        held = self.state
        rows = range(held.position, held.position + count)
        if self.table.fence is Fence.POSITION_BEFORE:
            self._swap(replace(self._next(), position=rows.stop))
            self._swap(replace(self._next(), position=rows.stop), rows)
        elif self.table.fence is Fence.POSITION_AFTER:
            self._swap(replace(self._next(), position=rows.start), rows)
            self._swap(replace(self._next(), position=rows.stop))
        else:
            if self.table.fence is Fence.CHECKED_BEFORE and self._epoch() > held.epoch:
                raise _refused("POLYNYA-LAKE-002", self.table)
            self._swap(replace(self._next(), position=rows.stop), rows)

    def _epoch(self) -> int:
        return self._reach(lambda: self.table.state.epoch, 0.1)

    def _next(self) -> State:
        """The state of our next commit, which changes nothing."""
        self._faults.commits += 1
        return replace(self.state, owner=self.owner, commit=self._faults.commits)

    def _swap(
        self, after: State, rows: range = range(0), *, did: str = "", emptied: bool = False
    ) -> None:
        self._process.check_alive()
        world, table, before = self._process.world, self.table, self.state
        draw, rates = self._faults.random.random(), self._faults.rates
        delay = 0.05 + 0.3 * self._faults.random.random()
        answered, clear = delay + 0.02, True
        if world.now < self._faults.heals:
            if (draw := draw - rates.lost) < 0:
                self._faults.counts["commit lost"] += 1
                delay, clear = float("inf"), False
            elif (draw := draw - rates.applied_but_error) < 0:
                self._faults.counts["commit made, then an error"] += 1
                clear = False
            elif draw - rates.late < 0:
                self._faults.counts["commit made later"] += 1
                delay, clear = 1 + 20 * self._faults.random.random(), False
        done: list[bool] = []

        def apply() -> None:
            commit = Commit(world.now, self._process.name, after, rows, did, emptied)
            done.append(table.swap(before, commit))

        if delay != float("inf"):
            world.after(delay, apply)
        self._process.call()
        self._process.wait(answered)
        if clear and done == [True]:
            self.state = after
            return
        found = self._reach(lambda: table.state, 0.1)
        if found.commit == after.commit:
            # Made although the catalog reported an error.
            self.state = after
        elif clear or found.epoch > self.state.epoch:
            raise _refused("POLYNYA-LAKE-002", table)
        else:
            raise DependencyError(
                "POLYNYA-LAKE-003",
                f"nobody knows whether the commit of {table.name} was made",
                where=table.name,
                state="the next run reads the state of the table",
                fix="run again",
            )

    def _reach(self, read: Callable[[], T], seconds: float) -> T:
        self._process.call()
        self._process.wait(seconds)
        return read()


def _refused(code: str, table: Table) -> ConflictError:
    return ConflictError(
        code,
        f"{table.name} has epoch {table.state.epoch} of {table.state.owner}",
        where=table.name,
        state="nothing of this step was written",
        fix="ask who owns it",
    )
