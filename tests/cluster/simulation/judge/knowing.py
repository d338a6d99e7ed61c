"""Where configurations differ: a unit that some nodes know is on one of those before long.

One that no node knows any more is nobody's.
"""

from __future__ import annotations

import math

from polynya.cluster.unit import JobKey
from tests.cluster.simulation.judge.oracle import Oracle
from tests.cluster.simulation.plan import Plan

#: A node tells of a difference after 60 s; the leader's lease says what it knows within 10 s, and
#: it takes some turns of 5 s until the unit is planned elsewhere, released and claimed.
BOUND = 100.0
#: A unit that is handed over at that moment has an owner again so soon.
HAND_OVER = 15.0


def settled(plan: Plan) -> dict[JobKey, float]:
    """When each unit has to be where it is known: so long after the last change."""
    starts = [one.starts for one in plan.machines]
    return {unit: max(_changes(plan, unit) + starts) + BOUND for unit in plan.knows}


def _changes(plan: Plan, unit: JobKey) -> list[float]:
    moments = [moment for one in plan.knows[unit] for moment in (one.since, one.until)]
    return [moment for moment in moments if math.isfinite(moment)]


def _owner(held: list[tuple[float, str | None]], moment: float) -> tuple[float, str | None]:
    """Who had it then, and since when."""
    return next(((at, node) for at, node in reversed(held) if at <= moment), (0.0, None))


def judge(oracle: Oracle, plan: Plan, moments: dict[JobKey, float]) -> int:
    """Whether the owner of each unit knows it then, if anybody does; how many were judged."""
    for unit, moment in moments.items():
        held = oracle.records.held.get(f"{unit.task}/{unit.name}", [])
        since, owner = _owner(held, moment)
        if owner is None and moment - since < HAND_OVER:
            _, owner = _owner(held, since + HAND_OVER)
        knowing = {f"n{number}" for number, one in enumerate(plan.knows[unit]) if one.at(moment)}
        if owner not in (knowing or {None}):
            oracle.fail(f"{owner} has {unit} {BOUND:g} s after the change: {knowing} know it")
    return len(moments)
