"""Units that have to move now: a person wants it, or they have no ready node."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from polynya.cluster.placement.facts import NodeFacts, Rules, UnitFacts
from polynya.cluster.placement.fleet import Fleet, Place
from polynya.cluster.unit import JobKey

Homeless: TypeAlias = list[tuple[UnitFacts, str | None, str]]
"""Units without a ready node: the one it had, and why it has to leave."""


def settle(
    fleet: Fleet,
    nodes: Sequence[NodeFacts],
    units: Iterable[UnitFacts],
    current: Mapping[JobKey, str],
    rules: Rules,
) -> None:
    """Leave each unit where it is, if it may stay; place all others at once, the largest first."""
    wished = _newest(fleet)
    known = {node.incarnation: node for node in nodes}
    homeless: Homeless = []
    asked: list[tuple[UnitFacts, str | None, Place]] = []
    for unit in units:
        had = current.get(unit.unit)
        wish = wished.get(unit.pinned_to) if unit.pinned_to is not None else None
        if wish is not None and wish.name != had:
            asked.append((unit, had, wish))
        elif had in fleet.places:
            fleet.keep(unit, fleet.places[had])
        else:
            homeless.append((unit, had, _why(had, known)))
    for unit, had, place in sorted(asked, key=lambda each: each[0].unit):
        fleet.move(unit, had, place, f"a person wants it on {place.facts.node}")
    if fleet.places:
        _place(fleet, homeless, rules)


def _newest(fleet: Fleet) -> dict[str, Place]:
    """The place of each node id; its youngest process, should there be two."""
    by_age = sorted(fleet.places.values(), key=lambda place: -place.facts.age_seconds)
    return {place.facts.node: place for place in by_age}


def _why(had: str | None, known: Mapping[str, NodeFacts]) -> str:
    if had is None:
        return "no node had it"
    return f"{known[had].node} drains" if had in known else f"{had} is gone"


def _place(fleet: Fleet, homeless: Homeless, rules: Rules) -> None:
    """Give each unit to the node with the lowest level; heavy ones to On-Demand while it has room.

    The largest first, each to the node with the least ("LPT"), is at most a third above the best
    possible (Graham, Bounds on multiprocessing timing anomalies, 1969).
    """
    homeless.sort(key=lambda each: (-fleet.weights[each[0].unit], each[0].unit))
    waiting = sum(fleet.weights[unit.unit] for unit, _, _ in homeless)
    capacity = sum(place.facts.capacity for place in fleet.places.values())
    full = (fleet.mean + waiting / capacity) * (1 + rules.band)
    rest: Homeless = []
    lasting = _heap(place for place in fleet.places.values() if place.facts.on_demand)
    for unit, had, why in homeless:
        if unit.heavy and lasting and _after(fleet, unit, lasting[0][2]) <= full:
            _lowest(fleet, lasting, unit, had, why)
        else:
            rest.append((unit, had, why))
    everywhere = _heap(fleet.places.values())
    for unit, had, why in rest:
        _lowest(fleet, everywhere, unit, had, why)


_Heap: TypeAlias = list[tuple[float, str, Place]]


def _heap(places: Iterable[Place]) -> _Heap:
    heap = [(place.level, place.name, place) for place in places]
    heapq.heapify(heap)
    return heap


def _after(fleet: Fleet, unit: UnitFacts, place: Place) -> float:
    return (place.load + fleet.weights[unit.unit]) / place.facts.capacity


def _lowest(fleet: Fleet, heap: _Heap, unit: UnitFacts, had: str | None, why: str) -> None:
    place = heap[0][2]
    fleet.move(unit, had, place, why)
    heapq.heapreplace(heap, (place.level, place.name, place))
