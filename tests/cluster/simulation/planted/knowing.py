"""Bugs in who learns that configurations differ, and what the leader makes of it."""

from __future__ import annotations

from collections.abc import Collection

from polynya.cluster.coordination.member import DifferencePublisher
from polynya.cluster.coordination.planner import KnownUnits, UnitKnowledge, known_units
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.planted.bug import Bug, Patch


def silent(self: DifferencePublisher, me: str, units: frozenset[JobKey], leaders: str) -> None:
    """As it was: the leader never hears that a node does not know what is planned for it."""


def only_its_own(
    self: UnitKnowledge, units: frozenset[JobKey], living: Collection[str]
) -> KnownUnits:
    """The leader hears who lacks a unit, and plans no other ones than it knows itself."""
    found = known_units(units, living, self._reported())
    return KnownUnits(units, {u: who for u, who in found.unknown_to.items() if u in units})


def kept(self: DifferencePublisher) -> None:
    """What was told is never taken back."""
    self._published_at = None


KNOWING = (
    Bug(
        "the leader does not hear that a node does not know a unit",
        "this project",
        lambda: (Patch(DifferencePublisher, "turn", silent),),
    ),
    Bug(
        "the leader plans only what its own configuration has",
        "this project",
        lambda: (Patch(UnitKnowledge, "known", only_its_own),),
    ),
    Bug(
        "what a node told of its configuration is never taken back",
        "-",
        lambda: (Patch(DifferencePublisher, "_withdraw", kept),),
    ),
)
