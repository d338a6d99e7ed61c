"""How busy each unit keeps a node, smoothed, so that placement chases no moment."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

from polynya.cluster.unit import JobKey

#: What was known so long ago counts half. With 60 s, noise of a fifth in each measurement causes
#: twice as many moves (`tests/cluster/placement/test_figures.py`).
HALF_LIFE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Loads:
    """An exponential moving average of the load of each unit that was ever measured."""

    values: Mapping[JobKey, float] = field(default_factory=dict)

    def after(
        self,
        seconds: float,
        heard: Mapping[JobKey, float],
        wanted: Container[JobKey],
    ) -> Loads:
        """Return the averages after `seconds` with the figures `heard` in them.

        The time counts and not the number of figures, so it does not matter how often nodes tell
        theirs. A unit that is heard of for the first time starts with its figure; one that is not
        heard of keeps its average; one that is not wanted is dropped. Figures that are none
        (negative, not finite) are ignored.
        """
        kept = 0.5 ** (max(seconds, 0.0) / HALF_LIFE_SECONDS)
        values = {unit: value for unit, value in self.values.items() if unit in wanted}
        for unit, figure in heard.items():
            if unit in wanted and math.isfinite(figure) and figure >= 0:
                before = values.get(unit, figure)
                values[unit] = before * kept + figure * (1 - kept)
        return Loads(values)

    @property
    def typical(self) -> float:
        """Mean of what is known, for a unit that nobody has measured; 1 when nothing is."""
        return math.fsum(self.values.values()) / len(self.values) if self.values else 1.0
