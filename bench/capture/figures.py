"""What a part measured, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table. `reached` None: there is no goal, or nothing was measured."""

    what: str
    measured: str
    goal: str = ""
    reached: bool | None = None

    def line(self) -> str:
        """As a line of Markdown."""
        word = {True: "reached", False: "**not reached**", None: ""}[self.reached]
        return f"| {self.what} | {self.measured} | {self.goal} | {word} |"


def table(figures: Sequence[Figure]) -> str:
    """The table in Markdown."""
    head = "| what | measured | goal |  |"
    return "\n".join([head, "|---" * 4 + "|", *(one.line() for one in figures)])


def middle(values: Sequence[float], form: str = ",.0f") -> str:
    """The median, with the range where there are several."""
    known = f"{median(values):{form}}"
    if len(values) == 1:
        return known
    return f"{known} ({min(values):{form}} to {max(values):{form}})"


def quantile(ages: Sequence[float], part: float) -> float:
    """The age that this part of them does not exceed; NaN without any."""
    known = sorted(ages)
    return known[min(int(part * len(known)), len(known) - 1)] if known else float("nan")
