"""Bugs in who learns that configurations differ, and what the leader makes of it."""

from __future__ import annotations

from collections.abc import Collection

from polynya.cluster.coordination.member import Knowing
from polynya.cluster.coordination.planner import Knowledge, Known, known
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.planted.bug import Bug, Patch


def silent(self: Knowing, me: str, units: frozenset[JobKey], leaders: str) -> None:
    """As it was: the leader never hears that a node does not know what is planned for it."""


def only_its_own(self: Knowledge, units: frozenset[JobKey], living: Collection[str]) -> Known:
    """The leader hears who lacks a unit, and plans no other ones than it knows itself."""
    found = known(units, living, self._told())
    return Known(units, {u: who for u, who in found.unknown_to.items() if u in units})


def kept(self: Knowing) -> None:
    """What was told is never taken back."""
    self._told_at = None


KNOWING = (
    Bug(
        "the leader does not hear that a node does not know a unit",
        "this project",
        lambda: (Patch(Knowing, "turn", silent),),
    ),
    Bug(
        "the leader plans only what its own configuration has",
        "this project",
        lambda: (Patch(Knowledge, "known", only_its_own),),
    ),
    Bug(
        "what a node told of its configuration is never taken back",
        "-",
        lambda: (Patch(Knowing, "_take_back", kept),),
    ),
)
