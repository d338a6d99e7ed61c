"""Whether statistics are worth a scan, decided with the reason.

Iceberg attaches them to one snapshot, and they expire with it. So a table that changes every minute
would need a scan every minute; one that rests keeps them as long as it rests.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """When a snapshot gets statistics.

    least_rows: a planner errs by little over fewer.
    rest: how long the table has not changed.
    """

    least_rows: int = 1_000_000
    rest: timedelta = timedelta(hours=1)


RULE: Final = Rule()


@dataclass(frozen=True, slots=True)
class Facts:
    """Rows of Current, the time since the newest snapshot, and whether that has statistics."""

    rows: int
    age: timedelta
    has_statistics: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether statistics are computed, and why."""

    compute: bool
    why: str


def choose(facts: Facts, rule: Rule = RULE) -> Choice:
    """Decide."""
    if facts.has_statistics:
        return Choice(compute=False, why="the newest snapshot has statistics")
    if facts.rows < rule.least_rows:
        why = f"Current has {facts.rows:,} rows; below {rule.least_rows:,} planners need none"
        return Choice(compute=False, why=why)
    rested = int(facts.age.total_seconds())
    if facts.age < rule.rest:
        why = f"the table changed {rested:,} s ago, and its next change makes statistics old"
        return Choice(compute=False, why=why)
    why = f"{facts.rows:,} rows in Current, no statistics, and no change for {rested:,} s"
    return Choice(compute=True, why=why)
