"""Many nodes and units: 1,000 real members over one store in memory, in simulated time.

No faults but the loss of nodes. A turn is carried out at one moment and takes as long as its
requests would: `LATENCY` each, `TOGETHER` at a time where the member asks for several at once.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from random import Random
from typing import TypeVar

from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import (
    CoordinationPace,
    MemberState,
    NodeFacts,
    NodeIdentity,
    ObservedNode,
)
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.agent import proposing
from tests.cluster.simulation.parts.machine import day
from tests.cluster.simulation.scale.counted import CountedStore

T = TypeVar("T")

LATENCY = 0.03
TOGETHER = 16
#: When the configuration comes into force that has all units; until then it has one.
CONFIGURED = 30.0


class Now:
    """Simulated time: of the whole fleet, and of a turn that is at work."""

    def __init__(self) -> None:
        self.seconds = 0.0


class FleetClock:
    """The clock port; nothing sleeps."""

    def __init__(self, now: Now) -> None:
        self._now = now

    def now(self) -> datetime:
        """The time of the day."""
        return day(self._now.seconds)

    def monotonic(self) -> float:
        """Simulated seconds."""
        return self._now.seconds

    def sleep(self, seconds: float) -> None:
        """Take time."""
        self._now.seconds += seconds


class Unwatched(Member):
    """A member that draws no picture of all other nodes for people: nobody looks at it here."""

    def _nodes(self) -> dict[str, ObservedNode]:
        return {}


@dataclass(slots=True)
class Node:
    """One process: its member, what it works on, whether it lives."""

    name: str
    member: Member
    working: set[JobKey] = field(default_factory=set)
    member_state: MemberState | None = None
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a fleet."""

    nodes: int = 1000
    units: int = 100_000
    lost_share: float = 0.10
    seed: int = 1


class Fleet:
    """All nodes, and who worked on each unit when."""

    def __init__(
        self,
        sizes: Sizes,
        tell: Callable[[str], None] = lambda _: None,
        *,
        pace: CoordinationPace | None = None,
    ) -> None:
        self._tell, self._told, self._pace = tell, 0.0, pace
        self.sizes, self.random, self.now = sizes, Random(sizes.seed), Now()
        self.store = CountedStore(lambda: self.now.seconds)
        self.units = [JobKey(f"t{n % 200}", f"u{n}") for n in range(sizes.units)]
        self.loads = {unit: self.random.lognormvariate(0, 0.5) for unit in self.units}
        self.wanted = frozenset(self.units)
        self.owner: dict[JobKey, str] = {}
        self.moves: Counter[str] = Counter()
        self.lost: set[str] = set()
        self.left = 0
        self.clock = FleetClock(self.now)
        self._events: list[tuple[float, int, Node]] = []
        self.nodes = [self._node(f"n{number}") for number in range(sizes.nodes)]
        for number, node in enumerate(self.nodes):
            heappush(self._events, (10 * self.random.random(), number, node))
        self._number = len(self.nodes)

    def _node(self, name: str) -> Node:
        member = Unwatched(
            self.store,
            "c",
            NodeIdentity(name),
            proposing,
            clock=self.clock,
            random=Random(self.random.random()),
            pace=self._pace,
            together=self._together,
        )
        return Node(name, member)

    def _together(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        began = self.now.seconds
        results = []
        for number, call in enumerate(calls):
            self.now.seconds = began + LATENCY * (number // TOGETHER)
            results.append(call())
        self.now.seconds = began + LATENCY * -(-len(calls) // TOGETHER)
        return results

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> float:
        """Let time pass until then, or until it is done; returns when that was."""
        while self._events and self._events[0][0] <= until:
            due, _, node = heappop(self._events)
            if node.dead:
                continue
            self.now.seconds = due
            self._progress()
            self._turn(node)
            self._number += 1
            assert node.member_state is not None
            heappush(
                self._events,
                (self.now.seconds + node.member_state.next_turn_seconds, self._number, node),
            )
            if done():
                return due
        return until

    def _progress(self) -> None:
        """Tell how it goes, once in a simulated minute."""
        if self.now.seconds >= self._told + 60:
            self._told += 60
            self._tell(f"after {self._told:.0f} s {len(self.owner)} units have had an owner")

    def _turn(self, node: Node) -> None:
        wanted = self.wanted if self.now.seconds >= CONFIGURED else frozenset(self.units[:1])
        seen = NodeFacts(wanted=wanted, working=frozenset(node.working), loads=self.loads)
        node.member_state = member_state = node.member.turn(seen)
        node.working = set(member_state.grants) - member_state.revoked
        for unit in member_state.grants:
            before = self.owner.get(unit)
            if before != node.name:
                self._moved(before, unit)
                self.owner[unit] = node.name

    def _moved(self, before: str | None, unit: JobKey) -> None:
        if before is None:
            self.moves["first"] += 1
        else:
            self.moves["needed" if before in self.lost else "needless"] += 1
            self.left -= before in self.lost

    def lose(self) -> set[str]:
        """Some nodes vanish without a word."""
        lost = self.random.sample(self.nodes, int(self.sizes.lost_share * len(self.nodes)))
        for node in lost:
            node.dead = True
        self.lost = {node.name for node in lost}
        self.left = sum(name in self.lost for name in self.owner.values())
        return self.lost

    def orphans(self) -> int:
        """Units whose node does not live, or that never had one."""
        living = {node.name for node in self.nodes if not node.dead}
        return sum(self.owner.get(unit) not in living for unit in self.units)

    def spread(self) -> float:
        """Load of the fullest living node over the mean."""
        loads = {node.name: 0.0 for node in self.nodes if not node.dead}
        for unit, name in self.owner.items():
            if name in loads:
                loads[name] += self.loads[unit]
        return max(loads.values()) / statistics.fmean(loads.values())
