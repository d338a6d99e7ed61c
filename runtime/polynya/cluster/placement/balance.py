"""Moves that nobody needs at once: from nodes far above the mean load to nodes below it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

from polynya.cluster.placement.facts import Rules, UnitFacts
from polynya.cluster.placement.fleet import Fleet
from polynya.cluster.placement.sides import Giver, Taker

_Givers: TypeAlias = list[tuple[bool, float, str, Giver]]
_Takers: TypeAlias = list[tuple[bool, float, str, Taker]]


def balance(fleet: Fleet, units: Sequence[UnitFacts], rules: Rules) -> None:
    """Level the nodes, in as many moves as the round has left.

    Where units had to leave their nodes there are no other moves until the dust has settled.
    """
    if any(move.source is not None for move in fleet.moves):
        return
    left = _moves_left(units, rules)
    mean = fleet.mean
    if left <= 0 or mean <= 0:
        return
    givers: _Givers = []
    takers: _Takers = []
    for place in fleet.places.values():
        if place.level > mean:
            _offer(givers, Giver(fleet, place, mean, rules))
        else:
            _ask(takers, Taker(place, mean, rules))
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
        fleet.move(unit, giver.place.name, taker.place, _reason(giver, taker, mean))
        left -= 1
        _offer(givers, giver)
        _ask(takers, taker)


def _begins(givers: _Givers, takers: _Takers, far: float) -> bool:
    """Whether a node is far enough from the mean."""
    return any(each[-1].place.level > far for each in givers) or any(
        each[-1].cold for each in takers
    )


def _offer(givers: _Givers, giver: Giver) -> None:
    """Line a node up to give, the one with the highest level first."""
    if giver.spare > 0:
        heapq.heappush(givers, (not giver.hot, -giver.place.level, giver.place.name, giver))


def _ask(takers: _Takers, taker: Taker) -> None:
    """Line a node up to take, the one with the most room first."""
    if taker.room > 0:
        heapq.heappush(takers, (not taker.cold, -taker.room, taker.place.name, taker))


def _reason(giver: Giver, taker: Taker, mean: float) -> str:
    busy, free = giver.place, taker.place
    return (
        f"{busy.facts.node} has {busy.level / mean:.2f} of the mean load, "
        f"{free.facts.node} {free.level / mean:.2f}"
    )


def _moves_left(units: Sequence[UnitFacts], rules: Rules) -> int:
    """How many moves the round has left; moves for another cause use it up, too."""
    most = max(rules.most_moves, int(rules.most_share * len(units)))
    recent = sum(
        unit.moved_seconds_ago is not None and unit.moved_seconds_ago < rules.round_seconds
        for unit in units
    )
    return most - recent
