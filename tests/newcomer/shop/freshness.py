"""How old files were when their records could be queried: from two lists of moments to figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: A file of a table: its name and number.
Landed = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Freshness:
    """Seconds from the close of a file to its records being visible.

    `unseen` are files that never came into sight, `early` such as were seen before they were
    closed: then the measurement itself is wrong.
    """

    files: int
    p50: float
    p95: float
    most: float
    unseen: tuple[Landed, ...]
    early: tuple[Landed, ...]

    def problems(self, floor: float | None) -> list[str]:
        """What does not hold; `floor` is the highest p95 in seconds, None for any."""
        found = []
        if self.unseen:
            found.append(f"{len(self.unseen)} files never came into sight: {self.unseen[:3]}")
        if self.early:
            found.append(f"{len(self.early)} files seen before they were there: {self.early[:3]}")
        if not self.files:
            found.append("no file was measured")
        elif floor is not None and self.p95 > floor:
            found.append(f"p95 is {self.p95:.1f} s, more than {floor:g} s")
        return found

    def __str__(self) -> str:
        return f"p50 {self.p50:.1f} s, p95 {self.p95:.1f} s, max {self.most:.1f} s"


def freshness(closed: Mapping[Landed, float], seen: Mapping[Landed, float]) -> Freshness:
    """The figures of all files that were closed, at these moments in seconds."""
    ages = sorted(seen[one] - at for one, at in closed.items() if one in seen)
    return Freshness(
        files=len(ages),
        p50=quantile(ages, 0.5),
        p95=quantile(ages, 0.95),
        most=ages[-1] if ages else math.nan,
        unseen=tuple(one for one in closed if one not in seen),
        early=tuple(one for one, at in closed.items() if seen.get(one, at) < at),
    )


def quantile(ascending: list[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed; NaN of nothing."""
    if not ascending:
        return math.nan
    return ascending[max(0, math.ceil(part * len(ascending)) - 1)]
