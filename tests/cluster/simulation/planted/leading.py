"""Bugs in who leads, and in what a leader does. The last three were in this project."""

from __future__ import annotations

import math

from polynya.cluster.coordination.documents import LeaderLease
from polynya.cluster.coordination.leases import Leadership
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.store import DocumentCache, StoredDocument
from tests.cluster.simulation.planted.bug import Bug, Patch


def same_term(
    self: Leadership, me: str, found: StoredDocument[LeaderLease] | None, configuration: str
) -> None:
    """Whoever follows has the term of the one before."""
    ours = {
        "node": self._me.node,
        "incarnation": me,
        "term": max(self.term, 1),
        "configuration": configuration,
    }
    before = found.document if found is not None else LeaderLease(term=0)
    if self._write(before.model_copy(update=ours), found.version if found else None):
        self.holder, self.term = me, max(self.term, 1)


def led_once(self: Leadership) -> bool:
    """Who ever led goes on leading."""
    return self._until > -math.inf or self._sent > -math.inf


def never_over(
    self: Leadership, me: str, found: StoredDocument[LeaderLease] | None, configuration: str
) -> None:
    """Nobody follows a leader that has gone."""
    if found is None:
        _follow(self, me, found, configuration)


_follow = Leadership._follow


def not_looked(self: Member) -> None:
    """A freeze is not looked for."""
    self._turn.moves_allowed = True


def only_new(self: Member) -> None:
    """A plan is read once."""
    if not self._plan.units:
        _read_plan(self)


_read_plan = Member._read_plan


def listed_only(self: Member, incarnation: str) -> bool:
    """As it was: who is not in the last listing is no member."""
    return incarnation not in self._lease_table.listed or self._lease_table.dead(incarnation)


def resigns_for_all(self: Member, incarnation: str) -> bool:
    """Who has just begun takes whoever leads for its own earlier process."""
    young = self._clock.monotonic() < self._leadership._began + self._pace.turn
    return young or _over(self, incarnation)


_over = Member._over


def at_once(self: Member) -> None:
    """As it was: what is to go is released in the turn that says so."""
    self._revoked = self._owned_units.units - self._kept()
    _reconcile(self)


_reconcile = Member._reconcile


LEADING = (
    Bug(
        "a new leader has the term of the last one",
        "-",
        lambda: (Patch(Leadership, "_follow", same_term),),
    ),
    Bug(
        "nobody follows a leader that died",
        "iceberg#12372 no coordinator",
        lambda: (Patch(Leadership, "_follow", never_over),),
    ),
    Bug(
        "who led once goes on planning",
        "zombie coordinators: iceberg#13593, #16016",
        lambda: (Patch(Leadership, "leading", property(led_once)),),
    ),
    Bug(
        "who has just begun resigns for any leader",
        "-",
        lambda: (Patch(Member, "_over", resigns_for_all),),
    ),
    Bug(
        "a freeze does not stop anything",
        "-",
        lambda: (Patch(Member, "_look_for_freeze", not_looked),),
    ),
    Bug(
        "a plan is read once",
        "KCL#1743: assignments that nobody takes up",
        lambda: (Patch(Member, "_read_plan", only_new),),
    ),
    Bug(
        "a destroyed plan is never written again",
        "this project, found by the simulator",
        lambda: (Patch(DocumentCache, "damaged", lambda self, path: None),),
    ),
    Bug(
        "a leader that has just joined is taken for gone",
        "this project, found by the simulator",
        lambda: (Patch(Member, "_over", listed_only),),
    ),
    Bug(
        "a unit is released before its agent heard that it goes",
        "this project, found by the simulator",
        lambda: (Patch(Member, "_reconcile", at_once),),
    ),
)
