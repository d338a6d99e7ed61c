"""Two versions in one cluster: what the later one said more has to be there at the end. Pure.

A node is of the other version with each start, as in an upgrade and its rollback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.cluster.simulation.judge.records import FOREIGN
from tests.cluster_faults.figures import Said, moment

BY_LATER = "claims of the later version"
AGAIN = "its records written again by this version"


@dataclass(frozen=True, slots=True)
class Launch:
    """A process of a node, from when on, and whether it is of the later version."""

    node: str
    at: datetime
    later: bool


def claims(said: Sequence[Said], launches: Sequence[Launch]) -> dict[str, list[bool]]:
    """Of each unit, in the order of its claims: whether it was the later version that claimed."""
    found: dict[str, list[bool]] = {}
    for event in said:
        if event["type"] == "unit.claimed":
            found.setdefault(event["subject"], []).append(_is_later(event, launches))
    return found


def met(claimed: Mapping[str, Sequence[bool]]) -> Counter[str]:
    """How often the later version wrote the record of a unit, and this one after it."""
    pairs = [pair for one in claimed.values() for pair in pairwise(one)]
    return Counter(
        {
            BY_LATER: sum(sum(one) for one in claimed.values()),
            AGAIN: pairs.count((True, False)),
        }
    )


def forgotten(
    claimed: Mapping[str, Sequence[bool]], records: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The units whose record lacks what the later version once wrote there."""
    return [
        f"{unit}: what a later version added to its record is gone"
        for unit, by in sorted(claimed.items())
        if any(by) and FOREIGN not in records.get(unit, {})
    ]


def _is_later(event: Said, launches: Sequence[Launch]) -> bool:
    of_node = [one for one in launches if one.node == event["node"] and one.at <= moment(event)]
    return of_node[-1].later
