"""How many nodes of a group must be On-Demand while Spot is short: from facts to a base.

An Auto Scaling group whose Spot launch fails tries other Spot pools for ever and never launches
On-Demand instead. Its On-Demand base is the lever: raised by what Spot does not give, it fills
the hole; lowered one at a time, it hands the nodes back to Spot. A change of the base makes the
group *replace* nodes where its mix is no longer the wanted one, so a base must never leave less
room for Spot than there are Spot nodes: this module never chooses such a base.

Level-triggered: each decision is made from the state alone, so events that were lost, doubled
or late change when, not what. Pure; time comes in with the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

QUIET = timedelta(minutes=5)
"""How long a failed Spot launch counts, and how long to wait before each node is handed back."""


class Action(StrEnum):
    """What a decision does to the On-Demand base of the group."""

    KEEP = "keep"
    RAISE = "raise"
    HAND_BACK = "hand back"
    RESTORE = "restore"
    TRIM = "trim"


@dataclass(frozen=True, slots=True)
class Mix:
    """The wanted mix of a group: a number of On-Demand nodes first, then a percentage of them."""

    base: int
    percentage: int

    def spot_share(self, desired: int) -> int:
        """How many of `desired` nodes are to be Spot; parts of a node go to On-Demand."""
        above = max(desired - self.base, 0)
        return above * (100 - self.percentage) // 100


@dataclass(frozen=True, slots=True)
class Intention:
    """The base that was decided last, and when. It outlives a deploy that resets the group's."""

    base: int
    changed: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a group.

    Attributes:
        now: the time of the decision, aware.
        desired: nodes that the group is to have.
        mix: the group's base and percentage as they are.
        configured_base: the base that the owner asked for; the fallback never goes below.
        spot_alive: Spot nodes that run or boot; a node of unknown kind counts as Spot.
        last_shortage: start of the newest launch that failed for want of Spot capacity.
        intention: what was decided last; None when nothing is known of it.
    """

    now: datetime
    desired: int
    mix: Mix
    configured_base: int
    spot_alive: int
    last_shortage: datetime | None
    intention: Intention | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The base that the group is to have, and why."""

    action: Action
    intention: Intention
    reason: str


def decide(facts: Facts) -> Decision:
    """Choose the On-Demand base of the group.

    The base is never below the configured one, never above the desired capacity (unless the
    configured one is), and never so high that the group had to end a Spot node for it.
    """
    known = facts.intention or Intention(facts.mix.base, facts.now)
    held = min(max(known.base, facts.configured_base), _highest(facts))
    missing = _share(facts, held) - facts.spot_alive
    if missing > 0 and _failed_lately(facts):
        needed = _lowest_without_shortage(facts, held)
        reason = f"Spot gives {facts.spot_alive} of {facts.spot_alive + missing} nodes"
        return Decision(Action.RAISE, Intention(needed, facts.now), reason)
    if held > facts.configured_base and _is_quiet(facts, known):
        reason = f"no Spot launch failed for {QUIET}; one node goes back to Spot"
        return Decision(Action.HAND_BACK, Intention(held - 1, facts.now), reason)
    if held != known.base:
        reason = f"{facts.desired} nodes wanted, {facts.spot_alive} of them are Spot already"
        return Decision(Action.TRIM, Intention(held, known.changed), reason)
    if held != facts.mix.base:
        reason = f"the group's base is {facts.mix.base}, a deploy may have reset it"
        return Decision(Action.RESTORE, Intention(held, known.changed), reason)
    return Decision(Action.KEEP, Intention(held, known.changed), "nothing to change")


def is_spot_shortage(message: str) -> bool:
    """Tell whether a failed launch failed for want of Spot capacity.

    Only such a failure is cured by On-Demand: a wrong image or a missing right is not. The texts
    are those that people report of real groups; `tests/` holds them word by word.
    """
    text = message.lower()
    return "spot" in text and any(
        sign in text
        for sign in ("capacity", "max spot instance count exceeded", "spotmaxpricetoolow")
    )


def _share(facts: Facts, base: int) -> int:
    return Mix(base, facts.mix.percentage).spot_share(facts.desired)


def _highest(facts: Facts) -> int:
    """The highest base under which every Spot node keeps its place."""
    base = max(facts.configured_base, facts.desired)
    while base > facts.configured_base and _share(facts, base) < facts.spot_alive:
        base -= 1
    return base


def _lowest_without_shortage(facts: Facts, held: int) -> int:
    """The lowest base that asks Spot for no more than it gives; a step changes at most one."""
    return next(
        base
        for base in range(held, max(held, facts.desired) + 1)
        if _share(facts, base) <= facts.spot_alive
    )


def _failed_lately(facts: Facts) -> bool:
    return facts.last_shortage is not None and facts.now - facts.last_shortage < QUIET


def _is_quiet(facts: Facts, known: Intention) -> bool:
    return not _failed_lately(facts) and facts.now - known.changed >= QUIET
