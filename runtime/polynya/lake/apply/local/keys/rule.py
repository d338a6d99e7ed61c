"""Whether the keys of a data file are read, looked up in an index, or read and then indexed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of one core, measured with 64-bit keys on local files (ADR 15).

    Only how they compare matters: text takes longer in each respect.

    Attributes:
        least_rows: of a file that is worth a decision; others are read in some milliseconds.
        read_ns: to read one key column of one row and to compare it.
        far_read_ns: the same over a network.
        build_ns: to read it, to sort it and to write it.
        step_ns: one step of the search for one key.
        look_up_ns: a look-up as such.
    """

    least_rows: int = 100_000
    read_ns: int = 30
    far_read_ns: int = 230
    build_ns: int = 150
    step_ns: int = 15
    look_up_ns: int = 1_500_000

    def build(self, rows: int, columns: int, *, far: bool) -> int:
        """What an index costs once."""
        further = self.far_read_ns - self.read_ns if far else 0
        return rows * columns * (self.build_ns + further)


COSTS: Final = Costs()


class Action(StrEnum):
    """What happens to the keys of a file in an apply."""

    READ = "read"
    LOOK_UP = "look up"
    BUILD = "read, then build an index"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the decision is made of.

    Attributes:
        rows: of the file.
        read: of these, in row groups that may hold a touched key.
        touched: keys of the batch that may be in the file.
        columns: of the key.
        far: the file is read over a network.
        indexed: there is an index.
        missed_ns: what look-ups would have saved in the applies before this one.
    """

    rows: int
    read: int
    touched: int
    columns: int
    far: bool
    indexed: bool
    missed_ns: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and the nanoseconds that a look-up saves in this apply."""

    action: Action
    reason: str
    saved_ns: int = 0


def decide(facts: Facts, costs: Costs = COSTS) -> Decision:
    """Build once look-ups would have saved what a build costs: never more than twice the best."""
    if facts.rows < costs.least_rows:
        return Decision(Action.READ, f"{facts.rows:,} rows are few")
    read = facts.read * facts.columns * (costs.far_read_ns if facts.far else costs.read_ns)
    steps = facts.touched * facts.columns * facts.rows.bit_length()
    saved = read - costs.look_up_ns - steps * costs.step_ns
    if saved <= 0:
        reason = f"{facts.touched:,} keys are found sooner by reading {facts.read:,}"
        return Decision(Action.READ, reason)
    if facts.indexed:
        return Decision(Action.LOOK_UP, f"{facts.touched:,} keys of {facts.rows:,}", saved)
    cost = costs.build(facts.rows, facts.columns, far=facts.far)
    missed = facts.missed_ns + saved
    if missed < cost:
        reason = f"an index would have saved {missed / cost:.0%} of what it costs"
        return Decision(Action.READ, reason, saved)
    return Decision(Action.BUILD, "an index would have saved what it costs", saved)
