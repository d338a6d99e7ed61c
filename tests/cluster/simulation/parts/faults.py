"""What goes wrong between a process and the store, drawn from the seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random

from tests.cluster.simulation.parts.world import Process


class Answer(Enum):
    """What the caller of a store gets to hear."""

    TRUE = auto()
    REFUSED = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class Fate:
    """Of one request; seconds from when it is sent.

    `applied_after` None: never. `answered_after` None: as soon as it is applied.
    """

    applied_after: float | None
    answered_after: float | None = None
    answer: Answer = Answer.TRUE


@dataclass(frozen=True, slots=True)
class Blackout:
    """No request of `node` (None: of anybody) arrives in this time."""

    begins: float
    ends: float
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a request has which fault, as a share."""

    lost: float = 0.0
    applied_but_error: float = 0.0
    refused_but_applied: float = 0.0
    refused: float = 0.0
    late: float = 0.0
    slow: float = 0.0


@dataclass(slots=True)
class StoreFaults:
    """Draws the fate of each request until `heals`; counts what it did to whom."""

    random: Random
    rates: Rates
    heals: float
    blackouts: list[Blackout] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    node_of: dict[str, str] = field(default_factory=dict)

    def draw(self, process: Process, verb: str, now: float) -> Fate:
        """What happens to a request that is sent now."""
        first = 0.005 + 0.04 * self.random.random()
        after = first + 0.005 + 0.02 * self.random.random()
        if now >= self.heals:
            return Fate(first)
        node = self.node_of.get(process.name)
        for blackout in self.blackouts:
            if blackout.begins <= now < blackout.ends and blackout.node in {None, node}:
                self.counts["black-out"] += 1
                return Fate(None, 1 + 4 * self.random.random(), Answer.ERROR)
        return self._faulty(verb, first, after)

    def _faulty(self, verb: str, first: float, after: float) -> Fate:
        draw, rates = self.random.random(), self.rates
        writes = verb not in {"read", "list"}
        conditional = verb == "put_if"
        if (draw := draw - rates.lost) < 0:
            self.counts["lost or 5xx"] += 1
            return Fate(None, after + 3 * self.random.random(), Answer.ERROR)
        if (draw := draw - rates.slow) < 0:
            self.counts["slow"] += 1
            wait = 1 + 9 * self.random.random()
            return Fate(wait * self.random.random(), wait)
        if writes and (draw := draw - rates.applied_but_error) < 0:
            self.counts["applied, then an error"] += 1
            return Fate(first, after + 3 * self.random.random(), Answer.ERROR)
        if writes and (draw := draw - rates.late) < 0:
            self.counts["error, applied later"] += 1
            wait = after + 3 * self.random.random()
            return Fate(wait + 15 * self.random.random(), wait, Answer.ERROR)
        if conditional and (draw := draw - rates.refused_but_applied) < 0:
            self.counts["412 on its own write"] += 1
            return Fate(first, after, Answer.REFUSED)
        if conditional and draw - rates.refused < 0:
            self.counts["409, nothing decided"] += 1
            return Fate(None, after, Answer.REFUSED)
        return Fate(first)
