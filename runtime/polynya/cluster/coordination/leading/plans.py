"""Which plans are written next, so that no unit is ever in two of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polynya.cluster.coordination.documents import Plan
from polynya.cluster.unit import JobKey

#: The units of each incarnation, each unit with its reason.
Plans = Mapping[str, Mapping[JobKey, str]]


@dataclass(frozen=True, slots=True)
class Change:
    """The plan of one incarnation is to have these units. `loses`: some that it has now go."""

    incarnation: str
    units: Mapping[JobKey, str]
    loses: bool


def changes(stored: Plans, desired: Plans) -> list[Change]:
    """The plans to write now; first those that lose units.

    A plan gets a unit only when no other one has it: what moves is taken out of its old plan, and
    put into the new one once that is known to be written. Reasons alone are no cause to write.
    """
    holders: dict[JobKey, set[str]] = {}
    for incarnation, units in stored.items():
        for unit in units:
            holders.setdefault(unit, set()).add(incarnation)
    found = []
    for incarnation in sorted(stored.keys() | desired.keys()):
        now, then = stored.get(incarnation, {}), desired.get(incarnation, {})
        if now.keys() == then.keys():
            continue
        units = {
            unit: reason
            for unit, reason in then.items()
            if holders.get(unit, set()) <= {incarnation}
        }
        if units.keys() != now.keys():
            found.append(Change(incarnation, units, loses=not now.keys() <= units.keys()))
    return sorted(found, key=lambda change: not change.loses)


def assignment(plans: Iterable[tuple[str, Plan]], living: frozenset[str]) -> dict[JobKey, str]:
    """Which incarnation has each unit by the plans that were found.

    Two plans name one unit when a leader that had lost its term wrote once more: then the one of a
    living node counts, and of those the newest.
    """
    ranked = sorted(plans, key=lambda one: (one[0] in living, one[1].term, one[1].number, one[0]))
    return {unit: incarnation for incarnation, plan in ranked for unit in plan.reasons()}


def by_incarnation(
    placed: Mapping[JobKey, str], reasons: Mapping[JobKey, str]
) -> dict[str, dict[JobKey, str]]:
    """The same turned around, each unit with its reason."""
    plans: dict[str, dict[JobKey, str]] = {}
    for unit, incarnation in placed.items():
        plans.setdefault(incarnation, {})[unit] = reasons.get(unit, "")
    return plans
