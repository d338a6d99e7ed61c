"""A floor, what was measured beside it, and the table of all."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.measurements import Point


@dataclass(frozen=True, slots=True)
class Measured:
    """One line: seconds of Polynya and of its peer, or values of another unit, one for each round.

    `at_least` is the floor of the ratio (seconds of the peer for one of ours), None for a line
    that is only to be known. `settings` says how it was measured. `points` are for pictures.
    """

    what: str
    ours: Sequence[float]
    peer: Sequence[float]
    peer_is: str
    at_least: float | None
    settings: str
    unit: str = "s"
    points: Sequence[Point] = ()

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer: medians."""
        return statistics.median(self.peer) / statistics.median(self.ours)

    @property
    def reached(self) -> bool | None:
        """Whether the floor is reached, None where there is none."""
        return None if self.at_least is None else self.ratio >= self.at_least

    def row(self) -> str:
        """The line of the table."""
        floor = "" if self.at_least is None else f"≥ {self.at_least:.2f}"
        verdict = {True: "reached", False: "**not reached**", None: ""}[self.reached]
        ours, peer = (_values(values, self.unit) for values in (self.ours, self.peer))
        cells = (self.what, ours, peer, self.peer_is)
        return f"| {' | '.join(cells)} | {self.ratio:.2f} | {floor} | {verdict} |"


def table(lines: Sequence[Measured]) -> str:
    """All lines as a table in Markdown, and how each was measured."""
    heads = ("floor", "Polynya", "peer", "peer is", "ratio", "floor of the ratio", "")
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(one.row() for one in lines)]
    settings = [f"- {one.what}: {one.settings}" for one in lines]
    return "\n".join([*rows, "", *settings])


def _values(values: Sequence[float], unit: str) -> str:
    """The median, and the range where there is one."""
    median = f"{statistics.median(values):.2f} {unit}"
    return f"{median} ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else median
