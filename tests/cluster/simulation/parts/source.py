"""The input of a unit: numbered rows that arrive over time. What a table must hold in the end."""

from __future__ import annotations

from dataclasses import dataclass

from tests.cluster.simulation.parts.world import World


@dataclass(frozen=True, slots=True)
class Source:
    """`rows` rows that arrive one after the other in the first `seconds`."""

    world: World
    rows: int
    seconds: float

    def arrived(self) -> int:
        """How many there are by now."""
        return min(self.rows, int(self.rows * self.world.now / self.seconds) + 1)
