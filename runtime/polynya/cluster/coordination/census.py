"""Which processes there are: their leases, and which of them are dead.

A listing shows the versions of all leases in one request, hence who renews. What a lease says is
read only where it matters: all of them by the leader, that of an owner by who wants its unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from polynya.cluster.coordination.documents import NodeLease
from polynya.cluster.coordination.paths import (
    NODES,
    incarnation_of,
    name_of,
    node_of,
    node_path,
)
from polynya.cluster.coordination.register import Found, Register, StoreError, attempted
from polynya.cluster.coordination.shelf import BATCH, GoOn, told
from polynya.cluster.coordination.sightings import Sightings
from polynya.cluster.coordination.standing import Pace, Together
from polynya.model.errors import OperationError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo

#: `gone` is also who has no lease; `unknown`: the store did not say.
Verdict: TypeAlias = Literal["ready", "draining", "gone", "dead", "unknown"]


@dataclass(frozen=True, slots=True)
class _Known:
    """A lease as it was read, None when it could not be; `size` as it was listed then."""

    size: int
    at: float
    lease: NodeLease | None


class Census:
    """What one node knows of all processes with a lease."""

    def __init__(self, register: Register, clock: Clock, pace: Pace, together: Together) -> None:
        self._register, self._clock = register, clock
        self.pace, self._together = pace, together
        self._sightings = Sightings(longest_gap=1.5 * pace.renew)
        self._looked = -math.inf
        self._listed: dict[str, ObjectInfo] = {}
        self._known: dict[str, _Known] = {}
        self._first_seen: dict[str, float] = {}
        self._troubles: dict[str, str] = {}
        self._heard: Mapping[str, str] = {}
        self._late, self._renewing = False, 1

    def look(self) -> None:
        """See who renewed. Raises what the store raises."""
        asked = self._clock.monotonic()
        found = self._register.list(NODES)
        self._looked = asked
        answered = self._clock.monotonic()
        listed = {name_of(path.removeprefix(f"{NODES}/")): info for path, info in found.items()}
        versions = {one: info.version for one, info in listed.items()}
        self._sightings.look(versions, asked=asked, answered=answered)
        self._listed = listed
        # Silence grows with a look and in no other way.
        late, ttl = 1.5 * self.pace.renew, self.pace.ttl
        self._late = any(late <= self.silent(one) < ttl for one in listed)
        self._renewing = max(1, sum(not self.dead(one) for one in listed))
        self._first_seen = {one: self._first_seen.get(one, asked) for one in listed}
        self._known = {one: known for one, known in self._known.items() if one in listed}
        self._troubles = {one: why for one, why in self._troubles.items() if one in listed}

    @property
    def due(self) -> bool:
        """Whether to look even if nothing here depends on it: who leads next has to know.

        As often as leases are renewed; in every turn while one is late.
        """
        pace, now = self.pace, self._clock.monotonic()
        return self._late or now >= self._looked + pace.renew - pace.turn / 2

    @property
    def listed(self) -> Mapping[str, ObjectInfo]:
        """The leases as they were listed last, by incarnation."""
        return self._listed

    @property
    def troubles(self) -> tuple[str, ...]:
        """Leases that cannot be understood."""
        return tuple(self._troubles.values())

    def silent(self, incarnation: str) -> float:
        """Seconds for which nobody renewed it; 0 when it was never seen."""
        return self._sightings.silent(incarnation) or 0.0

    def age(self, incarnation: str) -> float:
        """Seconds since this node saw it first."""
        now = self._clock.monotonic()
        return now - self._first_seen.get(incarnation, now)

    def dead(self, incarnation: str) -> bool:
        """Whether it has a lease that was not renewed in time."""
        return self.silent(incarnation) >= self.pace.ttl

    def dead_leases(self) -> dict[str, str]:
        """The leases that were not renewed in time, each in the version in which it was seen."""
        return {
            one: info.version
            for one, info in self._listed.items()
            if self.dead(one) and ((lease := self.lease(one)) is None or lease.state != "gone")
        }

    def hear(self, dead: Mapping[str, str]) -> None:
        """Another member has watched these leases for long enough, in these versions."""
        self._heard = dead

    def renewing(self) -> int:
        """How many processes renew their leases, at least 1."""
        return self._renewing

    def processes(self, node: str) -> list[str]:
        """The incarnations of a node."""
        begins = incarnation_of(node, "")
        return [one for one in self._listed if one.startswith(begins) and node_of(one) == node]

    def lease(self, incarnation: str) -> NodeLease | None:
        """What its lease said when it was read last."""
        known = self._known.get(incarnation)
        return None if known is None else known.lease

    def study(self, go_on: GoOn) -> bool:
        """Read leases that say something new. True when each was read. Raises store errors.

        A renewal changes nothing but the nonce, so the size of a lease tells that its state is
        another one. That is only a hint: some others are read again in each turn, in rotation.
        """
        new = [one for one, info in self._listed.items() if self._size(one) != info.size]
        others = sorted(
            (known.at, one)
            for one, known in self._known.items()
            if known.size == self._listed[one].size and not self._over(known)
        )
        wanted = new + [one for _, one in others[: self.pace.audits]]
        for start in range(0, len(wanted), BATCH):
            if start and not go_on():
                return False
            for result in self._read(wanted[start : start + BATCH]).values():
                if isinstance(result, Exception) and not isinstance(result, OperationError):
                    raise result
        return True

    def verdicts(self, owners: Set[str]) -> dict[str, Verdict]:
        """What the owners are, as they are now."""
        return {one: self._verdict(one, found) for one, found in self._read(sorted(owners)).items()}

    def _verdict(self, owner: str, found: Found[NodeLease] | StoreError | None) -> Verdict:
        if found is None:
            return "gone"
        if not isinstance(found, Found):
            # What it says is of no matter once nobody renews it.
            return "dead" if self.dead(owner) else "unknown"
        # One that was renewed since then is alive again.
        watched = self._listed[owner].version if self.dead(owner) else self._heard.get(owner)
        if found.document.state != "gone" and found.version == watched:
            return "dead"
        return found.document.state

    def _size(self, incarnation: str) -> int | None:
        known = self._known.get(incarnation)
        return None if known is None else known.size

    @staticmethod
    def _over(known: _Known) -> bool:
        return known.lease is not None and known.lease.state == "gone"

    def _read(self, incarnations: Sequence[str]) -> dict[str, Found[NodeLease] | StoreError | None]:
        calls: list[Callable[[], Found[NodeLease] | StoreError | None]] = [
            attempted(partial(self._register.read, NodeLease, node_path(one)))
            for one in incarnations
        ]
        found = dict(zip(incarnations, self._together(calls), strict=True))
        for one, result in found.items():
            if one not in self._listed:
                continue
            size, now = self._listed[one].size, self._clock.monotonic()
            if isinstance(result, Found):
                self._known[one] = _Known(size, now, result.document)
                self._troubles.pop(one, None)
            elif isinstance(result, OperationError):
                self._known[one] = _Known(size, now, None)
                self._troubles[one] = told(result)
        return found
