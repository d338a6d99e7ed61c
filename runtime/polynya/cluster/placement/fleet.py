"""The ready nodes with what they have, while a proposal is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polynya.cluster.placement.facts import Move, NodeFacts, Rules, UnitFacts
from polynya.cluster.unit import JobKey

#: What a load counts at most: a nonsense figure must not hide all others.
_MOST_LOAD = 1e9


@dataclass(slots=True)
class Place:
    """A ready node and its units. Its level is its load in relation to its capacity."""

    facts: NodeFacts
    load: float = 0.0
    units: dict[JobKey, UnitFacts] = field(default_factory=dict)

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
        self, nodes: Sequence[NodeFacts], units: Sequence[UnitFacts], rules: Rules
    ) -> None:
        ready = sorted(
            (node for node in nodes if node.state == "ready"), key=lambda node: node.incarnation
        )
        self.places = {node.incarnation: Place(node) for node in ready}
        self.weights = _weights(units, rules)
        self.moves: list[Move] = []

    @property
    def mean(self) -> float:
        """The level at which all nodes were alike: the load that is placed over the capacity."""
        capacity = math.fsum(place.facts.capacity for place in self.places.values())
        return math.fsum(place.load for place in self.places.values()) / capacity

    def keep(self, unit: UnitFacts, place: Place) -> None:
        """Count a unit where it is."""
        place.units[unit.unit] = unit
        place.load += self.weights[unit.unit]

    def move(self, unit: UnitFacts, source: str | None, target: Place, reason: str) -> None:
        """Give a unit to a node."""
        if source in self.places and unit.unit in self.places[source].units:
            del self.places[source].units[unit.unit]
            self.places[source].load -= self.weights[unit.unit]
        self.keep(unit, target)
        self.moves.append(Move(unit.unit, source, target.name, reason))

    def assignment(self) -> Mapping[JobKey, str]:
        """Who has what now."""
        return {unit: place.name for place in self.places.values() for unit in place.units}


def _weights(units: Sequence[UnitFacts], rules: Rules) -> dict[JobKey, float]:
    """What each unit weighs: its load, and a little for being there at all."""
    loads = {unit.unit: _sane(unit.load) for unit in units}
    mean = math.fsum(loads.values()) / len(loads) if loads else 0.0
    least = max(rules.idle_share * mean, rules.idle_load)
    return {unit: load + least for unit, load in loads.items()}


def _sane(load: float) -> float:
    return min(load, _MOST_LOAD) if load > 0 else 0.0
