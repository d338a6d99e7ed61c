"""Who leads: a lease that one of the members holds. Without a leader only balancing stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from polynya.cluster.coordination.documents import LeaderLease
from polynya.cluster.coordination.paths import LEADER
from polynya.cluster.coordination.register import Found, Register
from polynya.cluster.coordination.sightings import Sightings
from polynya.cluster.coordination.standing import Me, Pace
from polynya.store.clock import Clock

#: Turns for which a process that has just begun leaves the lead to others. With three a unit is
#: owned again within two leases, whenever the process of the leader comes back (ADR 43).
_LEFT: Final = 3


class Leadership:
    """The leader's lease, as this member sees it.

    Attributes:
        holder: the incarnation that leads, as far as known.
        term: of the holder.
        configuration: fingerprint of the units that the holder knows, empty when it does not say.
    """

    def __init__(self, register: Register, me: Me, clock: Clock, pace: Pace) -> None:
        self._register, self._me, self._clock, self._pace = register, me, clock, pace
        self._sightings = Sightings(longest_gap=1.5 * pace.renew)
        self._sent = self._until = -math.inf
        # Since when we have watched, and since when nobody leads, as we saw it.
        self._began = self._vacant_since = math.inf
        self.holder: str | None = None
        self.term = 0
        self.configuration = ""

    @property
    def leading(self) -> bool:
        """Whether this member leads, and no other can take it for dead yet."""
        return self._clock.monotonic() < self._until

    def turn(
        self,
        me: str,
        *,
        willing: bool,
        alone: bool,
        configuration: str,
        over: Callable[[str], bool],
    ) -> None:
        """Look who leads; renew or resign when it is us, follow on when nobody does.

        Args:
            me: our incarnation.
            willing: we may lead.
            alone: no other node has a lease.
            configuration: fingerprint of the units that we know.
            over: whether an incarnation is known to be dead or to have no lease.

        Raises what the store raises.
        """
        asked = self._clock.monotonic()
        found = self._register.read(LeaderLease, LEADER)
        answered = self._clock.monotonic()
        versions = {LEADER: found.version} if found else {}
        self._sightings.look(versions, asked=asked, answered=answered)
        self._began = min(self._began, answered)
        self.holder = found.document.incarnation if found else None
        self.term = found.document.term if found else 0
        self.configuration = found.document.configuration if found and self.holder else ""
        if found is not None and self.holder == me:
            self._vacant_since = math.inf
            self._hold(found, configuration, willing=willing)
            return
        self._until = -math.inf
        silent = self._sightings.silent(LEADER) or 0.0
        vacant = self.holder is None or silent >= self._pace.ttl or over(self.holder)
        if not vacant:
            self._vacant_since = math.inf
        elif willing:
            self._vacant_since = min(self._vacant_since, answered)
            if found is None or alone or self._may_follow(answered):
                self._follow(me, found, configuration)
            elif self.holder is not None:
                # The others would see only half a minute later that it leads no more.
                self._vacate(found)

    def _may_follow(self, now: float) -> bool:
        """Whether we have watched for a lease, and so know who is dead, or nobody has who lives.

        Until then we leave the lead to one that knows more.
        """
        knows = now - self._began >= self._pace.ttl
        return knows or now - self._vacant_since >= _LEFT * self._pace.turn

    def _hold(self, found: Found[LeaderLease], configuration: str, *, willing: bool) -> None:
        if not willing:
            self._until = -math.inf
            self._vacate(found)
            return
        due = self._clock.monotonic() >= self._sent + self._pace.renew
        if due or self.configuration != configuration:
            lease = found.document.model_copy(update={"configuration": configuration})
            if self._write(lease, found.version):
                self.configuration = configuration

    def _vacate(self, found: Found[LeaderLease]) -> None:
        nobody = found.document.model_copy(update={"node": None, "incarnation": None})
        if self._register.write(LEADER, nobody, found.version):
            self.holder = None

    def _follow(self, me: str, found: Found[LeaderLease] | None, configuration: str) -> None:
        ours = {
            "node": self._me.node,
            "incarnation": me,
            "term": self.term + 1,
            "configuration": configuration,
        }
        before = found.document if found is not None else LeaderLease(term=0)
        if self._write(before.model_copy(update=ours), found.version if found else None):
            self.holder, self.term, self.configuration = me, self.term + 1, configuration

    def _write(self, lease: LeaderLease, version: str | None) -> bool:
        sent = self._clock.monotonic()
        if not self._register.write(LEADER, lease, version):
            return False
        self._sent, self._until = sent, sent + self._pace.trust * self._pace.ttl
        return True
