"""Whether a figure levels off: pure, from points in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

#: A moment in seconds and what was measured then.
Point = tuple[float, float]
#: The most that a figure which is level may grow over the second half, as part of its level. One
#: that grows linearly from nothing grows by 0.67, from a third of its end by 0.4.
MOST_GROWTH: Final = 0.25
#: A line through fewer points says nothing.
LEAST_POINTS: Final = 6


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through the second half: its middle, and its rise as part of that."""

    level: float
    growth: float
    points: int

    @property
    def level_off(self) -> bool:
        """Whether it rises by little, and enough was measured to know."""
        return self.points >= LEAST_POINTS and self.growth <= MOST_GROWTH

    def __str__(self) -> str:
        return f"level {self.level:,.3g}, {self.growth:+.0%} over the second half"


def trend(points: Sequence[Point]) -> Trend:
    """The line of least squares through the second half of the time; NaN values are left out."""
    known = sorted(point for point in points if not math.isnan(point[1]))
    if not known:
        return Trend(math.nan, math.nan, 0)
    middle = (known[0][0] + known[-1][0]) / 2
    late = [point for point in known if point[0] >= middle]
    moment, level = (fmean(one[place] for one in late) for place in (0, 1))
    spread = math.fsum((at - moment) ** 2 for at, _ in late)
    slope = (
        math.fsum((at - moment) * (value - level) for at, value in late) / spread if spread else 0.0
    )
    rise = slope * (late[-1][0] - late[0][0])
    return Trend(level, rise / level if level else 0.0, len(late))
