"""The two sides of a balance: nodes above the mean load give units, nodes below it take some."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import Final, TypeAlias

from polynya.cluster.placement.facts import Rules, UnitFacts
from polynya.cluster.placement.fleet import Fleet, Place

#: Sums of loads are exact up to this.
_ROUNDING: Final = 1 + 1e-9

Choices: TypeAlias = list[tuple[float, UnitFacts]]
"""Units with what they weigh, the lightest first."""


class Taker:
    """A node below the mean. One that has just come takes a growing part of the mean."""

    def __init__(self, place: Place, mean: float, rules: Rules) -> None:
        self.place = place
        self.warm = min(1.0, place.facts.age_seconds / rules.warm_up_seconds)
        due = mean * self.warm
        self._aim = due - (1 - rules.damping) * (due - place.level)
        self._below = place.level < due * (1 - rules.gap)

    @property
    def room(self) -> float:
        """Load that it can take."""
        return (self._aim - self.place.level) * self.place.facts.capacity

    @property
    def cold(self) -> bool:
        """Whether it is so far below the mean that it has to get something."""
        return self._below and self.room > 0


class Giver:
    """A node above the mean, with the units that it can give."""

    def __init__(self, fleet: Fleet, place: Place, mean: float, rules: Rules) -> None:
        self.place = place
        self._fleet = fleet
        self._rules = rules
        self._aim = mean + (1 - rules.damping) * (place.level - mean)
        self._above = place.level > mean * (1 + rules.band)
        self._margin = rules.band * mean

    @property
    def spare(self) -> float:
        """Load that it can give."""
        return (self.place.level - self._aim) * self.place.facts.capacity

    @property
    def hot(self) -> bool:
        """Whether it is so far above the mean that it has to give something."""
        return self._above and self.spare > 0

    def choose(self, taker: Taker) -> UnitFacts | None:
        """Take the largest unit that fits both nodes, else one that is worth its overshoot."""
        light, heavy = self._choices
        # What costs most to move does not leave On-Demand for Spot.
        stays = self.place.facts.on_demand and not taker.place.facts.on_demand
        offers = (light,) if stays else (light, heavy)
        most = min(self.spare, taker.room) * _ROUNDING
        for choices in offers:
            fit = bisect_right(choices, most, key=lambda each: each[0])
            if fit:
                return choices.pop(fit - 1)[1]
        for choices in offers:
            if choices and self._worth_it(choices[0][0], taker):
                return choices.pop(0)[1]
        return None

    def _worth_it(self, weight: float, taker: Taker) -> bool:
        """Whether the busier of the two is clearly less busy after the move."""
        here = self.place.level - weight / self.place.facts.capacity
        there = taker.place.level + weight / taker.place.facts.capacity
        return taker.warm == 1 and max(here, there) <= self.place.level - self._margin

    @cached_property
    def _choices(self) -> tuple[Choices, Choices]:
        """Units that may move: light ones, heavy ones."""
        rest = self._rules.rest_seconds
        sides: tuple[Choices, Choices] = ([], [])
        for unit in self.place.units.values():
            rests = unit.moved_seconds_ago is not None and unit.moved_seconds_ago < rest
            if not rests and not unit.unknown_to and unit.pinned_to != self.place.facts.node:
                sides[unit.heavy].append((self._fleet.weights[unit.unit], unit))
        for choices in sides:
            choices.sort(key=lambda each: (each[0], each[1].unit))
        return sides
