"""Units that have to move now: a person wants it, or they have no ready node."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from polynya.cluster.placement.facts import NodeFacts, Rules, UnitFacts
from polynya.cluster.placement.fleet import Fleet, Place
from polynya.cluster.unit import JobKey


@dataclass(frozen=True, slots=True)
class _Homeless:
    """A unit without a ready node: the one that it had, and why it has to leave that."""

    unit: UnitFacts
    had: str | None
    why: str


Homeless: TypeAlias = list[_Homeless]


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
        if wish is not None and wish.name != had and wish.name not in unit.unknown_to:
            asked.append((unit, had, wish))
        elif had in fleet.places and had not in unit.unknown_to:
            fleet.keep(unit, fleet.places[had])
        else:
            homeless.append(_Homeless(unit, had, _why(had, known)))
    for unit, had, place in sorted(asked, key=lambda each: each[0].unit):
        fleet.move(unit, had, place, f"a person wants it on {place.facts.node}")
    if fleet.places:
        _place(fleet, homeless, rules.band)


def _newest(fleet: Fleet) -> dict[str, Place]:
    """The place of each node id; its youngest process, should there be two."""
    by_age = sorted(fleet.places.values(), key=lambda place: -place.facts.age_seconds)
    return {place.facts.node: place for place in by_age}


def _why(had: str | None, known: Mapping[str, NodeFacts]) -> str:
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
    homeless.sort(key=lambda each: (-fleet.weights[each.unit.unit], each.unit.unit))
    homeless = _where_known(fleet, homeless)
    waiting = sum(fleet.weights[each.unit.unit] for each in homeless)
    capacity = sum(place.facts.capacity for place in fleet.places.values())
    full = (fleet.mean + waiting / capacity) * (1 + band)
    places = fleet.places.values()
    lasting = [place for place in places if place.facts.on_demand]
    rest = _heavy_to(lasting, fleet, full, homeless)
    everywhere = _heap(places)
    for one in rest:
        _lowest(fleet, everywhere, one)


def _where_known(fleet: Fleet, homeless: Homeless) -> Homeless:
    """Place what not all nodes know, where it is known; returns all else."""
    for one in homeless:
        # For most units nobody has to look at all nodes.
        if not one.unit.unknown_to:
            continue
        knowing = [place for name, place in fleet.places.items() if name not in one.unit.unknown_to]
        if knowing:
            least = min(knowing, key=lambda place: (place.level, place.name))
            fleet.move(one.unit, one.had, least, one.why)
    return [one for one in homeless if not one.unit.unknown_to]


def _heavy_to(some: Iterable[Place], fleet: Fleet, full: float, homeless: Homeless) -> Homeless:
    """Give heavy units to the nodes with the least of these; all that they do not take."""
    heap, rest = _heap(some), []
    for one in homeless:
        if heap and one.unit.heavy and _has_room(fleet, one.unit, heap[0][2], full):
            _lowest(fleet, heap, one)
        else:
            rest.append(one)
    return rest


_Heap: TypeAlias = list[tuple[float, str, Place]]


def _heap(places: Iterable[Place]) -> _Heap:
    heap = [(place.level, place.name, place) for place in places]
    heapq.heapify(heap)
    return heap


def _has_room(fleet: Fleet, unit: UnitFacts, place: Place, full: float) -> bool:
    after = (place.load + fleet.weights[unit.unit]) / place.facts.capacity
    return after <= full or not place.units


def _lowest(fleet: Fleet, heap: _Heap, one: _Homeless) -> None:
    place = heap[0][2]
    fleet.move(one.unit, one.had, place, one.why)
    heapq.heapreplace(heap, (place.level, place.name, place))
