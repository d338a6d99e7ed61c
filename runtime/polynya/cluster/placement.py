"""Placement of units on nodes: facts, load, forced moves and balancing. Pure."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from polynya.cluster.unit import JobKey

NodeState: TypeAlias = Literal["ready", "draining"]


@dataclass(frozen=True, slots=True)
class PlacementNode:
    """A node whose session is alive. A node that is not named is dead.

    Attributes:
        incarnation: of its process; assignments name it.
        node: its id, which outlives the process; requests of operators name it.
        state: a draining node gets nothing and keeps nothing.
        on_demand: AWS does not take it back, as it does a Spot node.
        capacity: how much it can do, next to the others; processors, say. Above 0.
        age_seconds: since its session began.
    """

    incarnation: str
    node: str
    state: NodeState = "ready"
    on_demand: bool = False
    capacity: float = 1.0
    age_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class PlacementUnit:
    """A unit of work that the configuration wants.

    Attributes:
        unit: which one.
        load: busy seconds per second, smoothed (`LoadMeter` in `cluster/membership.py`).
        heavy: costs much to move, such as one with a large state.
        moved_seconds_ago: since it went from one node to another, whatever the cause. None: not
            that the leader knows. The first placement of a unit is not a move.
        pinned_to: the node that an operator moved it to.
        unknown_to: incarnations whose configuration does not have it; they do not get it. Empty
            in most cases. What not all nodes know is not moved for balance.
    """

    unit: JobKey
    load: float = 0.0
    heavy: bool = False
    moved_seconds_ago: float | None = None
    pinned_to: str | None = None
    unknown_to: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """How eager placement is. A unit that has no ready node is placed at once, whatever they say.

    Attributes:
        start: nothing is moved for balance before a node is this far above the mean load; all such
            measures are parts of the mean. Wider than the band: noise begins no round of moves.
        gap: or before one is this far below it. Idle capacity hurts less than a late unit.
        band: once moves have begun, nodes this far above the mean give.
        damping: the part of an excess that is moved, so that noise is not chased.
        most_moves: moves for balance in a round.
        most_share: the same as a part of all units; the greater of the two holds. Moves for
            another cause use it up, too.
        round_seconds: how long a round is, however often the leader plans.
        rest_seconds: a unit that moved is not moved for balance for so long.
        warm_up_seconds: a node so young is filled for balance gradually.
        idle_share: what a unit weighs in addition to its load, as a part of the mean load of units:
            an idle unit takes some work, too.
        idle_load: the same in busy seconds per second; the greater of the two holds. Where all
            units idle, differences are not worth a move.
    """

    start: float = 0.20
    gap: float = 0.25
    band: float = 0.10
    damping: float = 0.8
    most_moves: int = 6
    most_share: float = 0.10
    round_seconds: float = 60.0
    rest_seconds: float = 300.0
    warm_up_seconds: float = 120.0
    idle_share: float = 0.05
    idle_load: float = 0.005


@dataclass(frozen=True, slots=True)
class Move:
    """A unit gets another node, and why. `source` is None when it had none."""

    unit: JobKey
    source: str | None
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlacementProposal:
    """The incarnation that should have each unit, and the moves that lead there.

    A unit is missing from the assignment only when no node is ready that knows it.
    """

    assignment: Mapping[JobKey, str]
    moves: tuple[Move, ...]


#: What a load counts at most: a nonsense figure must not hide all others.
_MOST_LOAD = 1e9


@dataclass(slots=True)
class NodeLoad:
    """A ready node and its units. Its level is its load in relation to its capacity."""

    facts: PlacementNode
    load: float = 0.0
    units: dict[JobKey, PlacementUnit] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its incarnation."""
        return self.facts.incarnation

    @property
    def level(self) -> float:
        """Load for each unit of capacity."""
        return self.load / self.facts.capacity


class Fleet:
    """Ready nodes, what each unit weighs, and the moves so far."""

    def __init__(
        self, nodes: Sequence[PlacementNode], units: Sequence[PlacementUnit], rules: PlacementRules
    ) -> None:
        ready = sorted(
            (node for node in nodes if node.state == "ready"), key=lambda node: node.incarnation
        )
        self.nodes = {node.incarnation: NodeLoad(node) for node in ready}
        self.weights = _weights(units, rules)
        self.moves: list[Move] = []

    @property
    def mean(self) -> float:
        """The level at which all nodes were alike: the load that is placed over the capacity."""
        capacity = math.fsum(node.facts.capacity for node in self.nodes.values())
        return math.fsum(node.load for node in self.nodes.values()) / capacity

    def keep(self, unit: PlacementUnit, node: NodeLoad) -> None:
        """Count a unit where it is."""
        node.units[unit.unit] = unit
        node.load += self.weights[unit.unit]

    def move(self, unit: PlacementUnit, source: str | None, target: NodeLoad, reason: str) -> None:
        """Give a unit to a node."""
        if source in self.nodes and unit.unit in self.nodes[source].units:
            del self.nodes[source].units[unit.unit]
            self.nodes[source].load -= self.weights[unit.unit]
        self.keep(unit, target)
        self.moves.append(Move(unit.unit, source, target.name, reason))

    def assignment(self) -> Mapping[JobKey, str]:
        """The present assignment."""
        return {unit: node.name for node in self.nodes.values() for unit in node.units}


def _weights(units: Sequence[PlacementUnit], rules: PlacementRules) -> dict[JobKey, float]:
    """What each unit weighs: its load, and a little for being there at all."""
    loads = {unit.unit: _sane(unit.load) for unit in units}
    mean = math.fsum(loads.values()) / len(loads) if loads else 0.0
    least = max(rules.idle_share * mean, rules.idle_load)
    return {unit: load + least for unit, load in loads.items()}


def _sane(load: float) -> float:
    return min(load, _MOST_LOAD) if load > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Homeless:
    """A unit without a ready node: the one that it had, and why it has to leave that."""

    unit: PlacementUnit
    had: str | None
    why: str


Homeless: TypeAlias = list[_Homeless]


def settle(
    fleet: Fleet,
    nodes: Sequence[PlacementNode],
    units: Iterable[PlacementUnit],
    current: Mapping[JobKey, str],
    rules: PlacementRules,
) -> None:
    """Leave each unit where it is, if it may stay; place all others at once, the largest first."""
    ready = _newest(fleet)
    known = {node.incarnation: node for node in nodes}
    homeless: Homeless = []
    asked: list[tuple[PlacementUnit, str | None, NodeLoad]] = []
    for unit in units:
        had = current.get(unit.unit)
        target = ready.get(unit.pinned_to) if unit.pinned_to is not None else None
        if target is not None and target.name != had and target.name not in unit.unknown_to:
            asked.append((unit, had, target))
        elif had in fleet.nodes and had not in unit.unknown_to:
            fleet.keep(unit, fleet.nodes[had])
        else:
            homeless.append(_Homeless(unit, had, _why(had, known)))
    for unit, had, node in sorted(asked, key=lambda move: move[0].unit):
        fleet.move(unit, had, node, f"an operator wants it on {node.facts.node}")
    if fleet.nodes:
        _place(fleet, homeless, rules.band)


def _newest(fleet: Fleet) -> dict[str, NodeLoad]:
    """The youngest process of each node id."""
    by_age = sorted(fleet.nodes.values(), key=lambda node: -node.facts.age_seconds)
    return {node.facts.node: node for node in by_age}


def _why(had: str | None, known: Mapping[str, PlacementNode]) -> str:
    if had is None:
        return "no node had it"
    if had not in known:
        return f"{had} is gone"
    why = "does not know it" if known[had].state == "ready" else "drains"
    return f"{known[had].node} {why}"


def _place(fleet: Fleet, homeless: Homeless, band: float) -> None:
    """Give each unit to the node with the lowest level; heavy ones to On-Demand, with room there.

    What not all nodes know comes first.

    The largest first, each to the node with the least ("LPT"), is at most a third above the best
    possible (Graham, Bounds on multiprocessing timing anomalies, 1969).
    """
    homeless.sort(key=lambda candidate: (-fleet.weights[candidate.unit.unit], candidate.unit.unit))
    homeless = _where_known(fleet, homeless)
    waiting = sum(fleet.weights[candidate.unit.unit] for candidate in homeless)
    capacity = sum(node.facts.capacity for node in fleet.nodes.values())
    full = (fleet.mean + waiting / capacity) * (1 + band)
    nodes = fleet.nodes.values()
    lasting = [node for node in nodes if node.facts.on_demand]
    rest = _heavy_to(lasting, fleet, full, homeless)
    everywhere = _heap(nodes)
    for candidate in rest:
        _lowest(fleet, everywhere, candidate)


def _where_known(fleet: Fleet, homeless: Homeless) -> Homeless:
    """Place what not all nodes know, where it is known; returns all else."""
    for candidate in homeless:
        # Most units need no look at all nodes.
        if not candidate.unit.unknown_to:
            continue
        knowing = [
            node for name, node in fleet.nodes.items() if name not in candidate.unit.unknown_to
        ]
        if knowing:
            least = min(knowing, key=lambda node: (node.level, node.name))
            fleet.move(candidate.unit, candidate.had, least, candidate.why)
    return [candidate for candidate in homeless if not candidate.unit.unknown_to]


def _heavy_to(some: Iterable[NodeLoad], fleet: Fleet, full: float, homeless: Homeless) -> Homeless:
    """Give heavy units to the nodes with the least of these; all that they do not take."""
    heap, rest = _heap(some), []
    for candidate in homeless:
        if heap and candidate.unit.heavy and _has_room(fleet, candidate.unit, heap[0][2], full):
            _lowest(fleet, heap, candidate)
        else:
            rest.append(candidate)
    return rest


_Heap: TypeAlias = list[tuple[float, str, NodeLoad]]


def _heap(nodes: Iterable[NodeLoad]) -> _Heap:
    heap = [(node.level, node.name, node) for node in nodes]
    heapq.heapify(heap)
    return heap


def _has_room(fleet: Fleet, unit: PlacementUnit, node: NodeLoad, full: float) -> bool:
    after = (node.load + fleet.weights[unit.unit]) / node.facts.capacity
    return after <= full or not node.units


def _lowest(fleet: Fleet, heap: _Heap, candidate: _Homeless) -> None:
    node = heap[0][2]
    fleet.move(candidate.unit, candidate.had, node, candidate.why)
    heapq.heapreplace(heap, (node.level, node.name, node))


#: Sums of loads are exact up to this.
_ROUNDING: Final = 1 + 1e-9

Choices: TypeAlias = list[tuple[float, PlacementUnit]]
"""Units with what they weigh, the lightest first."""


class Taker:
    """A node below the mean. One that has just come takes a growing part of the mean."""

    def __init__(self, node: NodeLoad, mean: float, rules: PlacementRules) -> None:
        self.node = node
        self.warm = min(1.0, node.facts.age_seconds / rules.warm_up_seconds)
        due = mean * self.warm
        self._aim = due - (1 - rules.damping) * (due - node.level)
        self._below = node.level < due * (1 - rules.gap)

    @property
    def room(self) -> float:
        """Load that it can take."""
        return (self._aim - self.node.level) * self.node.facts.capacity

    @property
    def cold(self) -> bool:
        """Whether it is so far below the mean that it has to get something."""
        return self._below and self.room > 0


class Giver:
    """A node above the mean, with the units that it can give."""

    def __init__(self, fleet: Fleet, node: NodeLoad, mean: float, rules: PlacementRules) -> None:
        self.node = node
        self._fleet = fleet
        self._rules = rules
        self._aim = mean + (1 - rules.damping) * (node.level - mean)
        self._above = node.level > mean * (1 + rules.band)
        self._margin = rules.band * mean

    @property
    def spare(self) -> float:
        """Load that it can give."""
        return (self.node.level - self._aim) * self.node.facts.capacity

    @property
    def hot(self) -> bool:
        """Whether it is so far above the mean that it has to give something."""
        return self._above and self.spare > 0

    def choose(self, taker: Taker) -> PlacementUnit | None:
        """Take the largest unit that fits both nodes, else one that is worth its overshoot."""
        light, heavy = self._choices
        # What costs most to move does not leave On-Demand for Spot.
        stays = self.node.facts.on_demand and not taker.node.facts.on_demand
        offers = (light,) if stays else (light, heavy)
        most = min(self.spare, taker.room) * _ROUNDING
        for choices in offers:
            fit = bisect_right(choices, most, key=lambda choice: choice[0])
            if fit:
                return choices.pop(fit - 1)[1]
        for choices in offers:
            if choices and self._worth_it(choices[0][0], taker):
                return choices.pop(0)[1]
        return None

    def _worth_it(self, weight: float, taker: Taker) -> bool:
        """Whether the busier of the two is clearly less busy after the move."""
        here = self.node.level - weight / self.node.facts.capacity
        there = taker.node.level + weight / taker.node.facts.capacity
        return taker.warm == 1 and max(here, there) <= self.node.level - self._margin

    @cached_property
    def _choices(self) -> tuple[Choices, Choices]:
        """Units that may move: light ones, heavy ones."""
        rest = self._rules.rest_seconds
        sides: tuple[Choices, Choices] = ([], [])
        for unit in self.node.units.values():
            rests = unit.moved_seconds_ago is not None and unit.moved_seconds_ago < rest
            if not rests and not unit.unknown_to and unit.pinned_to != self.node.facts.node:
                sides[unit.heavy].append((self._fleet.weights[unit.unit], unit))
        for choices in sides:
            choices.sort(key=lambda choice: (choice[0], choice[1].unit))
        return sides


_Givers: TypeAlias = list[tuple[bool, float, str, Giver]]
_Takers: TypeAlias = list[tuple[bool, float, str, Taker]]


def balance(fleet: Fleet, units: Sequence[PlacementUnit], rules: PlacementRules) -> None:
    """Level the nodes, in as many moves as the round has left.

    Where units had to leave their nodes there are no other moves until they have settled.
    """
    if any(move.source is not None for move in fleet.moves):
        return
    left = _moves_left(units, rules)
    mean = fleet.mean
    if left <= 0 or mean <= 0:
        return
    givers: _Givers = []
    takers: _Takers = []
    for node in fleet.nodes.values():
        if node.level > mean:
            _offer(givers, Giver(fleet, node, mean, rules))
        else:
            _ask(takers, Taker(node, mean, rules))
    if not _begins(givers, takers, mean * (1 + rules.start)):
        return
    while left > 0 and givers and takers:
        giver, taker = givers[0][-1], takers[0][-1]
        if not (giver.hot or taker.cold):
            return
        heapq.heappop(givers)
        unit = giver.choose(taker)
        if unit is None:
            # Its units are too large for the emptiest node, so they are for every other one.
            continue
        heapq.heappop(takers)
        fleet.move(unit, giver.node.name, taker.node, _reason(giver, taker, mean))
        left -= 1
        _offer(givers, giver)
        _ask(takers, taker)


def _begins(givers: _Givers, takers: _Takers, far: float) -> bool:
    """Whether a node is far enough from the mean."""
    return any(giver[-1].node.level > far for giver in givers) or any(
        taker[-1].cold for taker in takers
    )


def _offer(givers: _Givers, giver: Giver) -> None:
    """Line a node up to give, the one with the highest level first."""
    if giver.spare > 0:
        heapq.heappush(givers, (not giver.hot, -giver.node.level, giver.node.name, giver))


def _ask(takers: _Takers, taker: Taker) -> None:
    """Line a node up to take, the one with the most room first."""
    if taker.room > 0:
        heapq.heappush(takers, (not taker.cold, -taker.room, taker.node.name, taker))


def _reason(giver: Giver, taker: Taker, mean: float) -> str:
    busy, free = giver.node, taker.node
    return (
        f"{busy.facts.node} has {busy.level / mean:.2f} of the mean load, "
        f"{free.facts.node} {free.level / mean:.2f}"
    )


def _moves_left(units: Sequence[PlacementUnit], rules: PlacementRules) -> int:
    """How many moves the round has left; moves for another cause use it up, too."""
    most = max(rules.most_moves, int(rules.most_share * len(units)))
    recent = sum(
        unit.moved_seconds_ago is not None and unit.moved_seconds_ago < rules.round_seconds
        for unit in units
    )
    return most - recent


def propose(
    nodes: Sequence[PlacementNode],
    units: Sequence[PlacementUnit],
    current: Mapping[JobKey, str],
    rules: PlacementRules,
) -> PlacementProposal:
    """Propose a node for every unit.

    Units without a ready node, and those that an operator moved, are placed at once. Then
    nodes far above the mean load give to nodes below it, within the limits of the rules. The same
    facts give the same proposal, whatever their order; n units take O(n log n).

    Args:
        nodes: with a living session.
        units: that the configuration wants, each once.
        current: incarnation that each unit is planned for now; may name dead nodes.
        rules: how eager to be.
    """
    units = sorted(units, key=lambda unit: unit.unit)
    fleet = Fleet(nodes, units, rules)
    settle(fleet, nodes, units, current, rules)
    if fleet.nodes:
        balance(fleet, units, rules)
    return PlacementProposal(fleet.assignment(), tuple(fleet.moves))


#: What was known so long ago counts half. With 60 s, noise of a fifth in each measurement causes
#: twice as many moves (`tests/cluster/test_figures.py`).
HALF_LIFE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Loads:
    """An exponential moving average of the load of each unit that was ever measured."""

    values: Mapping[JobKey, float] = field(default_factory=dict)

    def after(
        self,
        seconds: float,
        reported: Mapping[JobKey, float],
        wanted: Container[JobKey],
    ) -> Loads:
        """Return the averages after `seconds` with the `reported` figures in them.

        The time counts and not the number of figures, so it does not matter how often nodes tell
        theirs. A unit that is reported for the first time starts with its figure; one that is not
        reported keeps its average; one that is not wanted is dropped. Figures that are none
        (negative, not finite) are ignored.
        """
        kept = 0.5 ** (max(seconds, 0.0) / HALF_LIFE_SECONDS)
        values = {unit: value for unit, value in self.values.items() if unit in wanted}
        for unit, figure in reported.items():
            if unit in wanted and math.isfinite(figure) and figure >= 0:
                before = values.get(unit, figure)
                values[unit] = before * kept + figure * (1 - kept)
        return Loads(values)

    @property
    def typical(self) -> float:
        """Mean of the known loads, for a unit without a figure; 1 without any."""
        return math.fsum(self.values.values()) / len(self.values) if self.values else 1.0
