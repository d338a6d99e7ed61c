"""Control arms: tables whose commits break the rule, under the right coordination."""

from __future__ import annotations

from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.parts.tables import Fence
from tests.cluster.simulation.planted.bug import Bug

COMMITS = (
    Bug(
        "fence off: commits are made whatever the state is",
        "a lease alone, with blind appends",
        under=Under(fence=Fence.NONE),
    ),
    Bug(
        "the epoch is checked before the commit, not within",
        "check-then-commit of Spark's streaming sink",
        under=Under(fence=Fence.CHECKED_BEFORE),
    ),
    Bug(
        "the position is committed after the rows",
        "a model: lost or doubled in half of the histories",
        under=Under(fence=Fence.POSITION_AFTER),
    ),
    Bug(
        "the position is committed before the rows",
        "a model: lost or doubled in half of the histories",
        under=Under(fence=Fence.POSITION_BEFORE),
    ),
)
