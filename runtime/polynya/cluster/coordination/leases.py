"""Leases: which processes are alive, and which member leads.

A lease is dead when its version has not changed for its time to live since this machine first saw
that version, by this machine's monotonic clock. No clock of another machine is ever compared.

One listing shows the versions of all leases, and thus which processes renew them. The content of a
lease is read only where it matters: the leader reads all of them, and a node that wants a unit
reads the lease of its owner. `NodeSession` renews this process's own lease, `Leadership` that of
the leader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

from polynya.cluster.coordination.documents import MAX_TEXT, LeaderLease, NodeLease, NodeState
from polynya.cluster.coordination.member_state import CoordinationPace, NodeIdentity, Together
from polynya.cluster.coordination.store import (
    BATCH,
    LEADER,
    NODES,
    DocumentStore,
    GoOn,
    StoredDocument,
    StoreError,
    attempted,
    below,
    error_line,
    incarnation_of,
    name_of,
    node_of,
    node_path,
)
from polynya.model.error_catalogue.cluster import NODE_REPLACED
from polynya.model.errors import OperationError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo


@dataclass(slots=True)
class _Sighting:
    """`counted_to`: the moment up to which `silent` was counted."""

    version: str
    counted_to: float
    silent: float = 0.0


class Sightings:
    """What was seen of leases, look after look.

    Args:
        longest_gap: seconds between two looks that count as silence at most. While the store could
            not be seen, by this node or by anybody, no owner could be seen to renew either: after
            an outage no process is dead at once.
    """

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._seen: dict[str, _Sighting] = {}

    def look(self, versions: Mapping[str, str], *, asked: float, answered: float) -> None:
        """Take note of all leases that there are, by their versions.

        What is in an answer was written before it came; what is the same in a later answer was the
        same when that one was asked for. So silence counts from an answer to the last question.
        """
        seen: dict[str, _Sighting] = {}
        for path, version in versions.items():
            sighting = self._seen.get(path)
            if sighting is None:
                sighting = _Sighting(version, counted_to=answered)
            elif sighting.version != version:
                sighting.version, sighting.counted_to, sighting.silent = version, answered, 0.0
            elif asked > sighting.counted_to:
                sighting.silent += min(asked - sighting.counted_to, self._longest_gap)
                sighting.counted_to = asked
            seen[path] = sighting
        self._seen = seen

    def silent(self, path: str) -> float | None:
        """Seconds of silence of a lease, None when there is none."""
        sighting = self._seen.get(path)
        return None if sighting is None else sighting.silent


#: A process without a lease is `gone`, too; `unknown`: the store did not say.
Verdict: TypeAlias = Literal["ready", "draining", "gone", "dead", "unknown"]


@dataclass(frozen=True, slots=True)
class _Known:
    """A lease as it was read, None when it could not be; `size` as it was listed then."""

    size: int
    at: float
    lease: NodeLease | None


class LeaseTable:
    """What one node knows of all processes with a lease."""

    def __init__(
        self,
        document_store: DocumentStore,
        clock: Clock,
        pace: CoordinationPace,
        together: Together,
    ) -> None:
        self._document_store, self._clock = document_store, clock
        self.pace, self._together = pace, together
        self._sightings = Sightings(longest_gap=1.5 * pace.renew)
        self._looked = -math.inf
        self._listed: dict[str, ObjectInfo] = {}
        self._known: dict[str, _Known] = {}
        self._first_seen: dict[str, float] = {}
        self._troubles: dict[str, str] = {}
        self._dead_by_leader: Mapping[str, str] = {}
        self._late, self._renewing = False, 1

    def look(self, list_cluster: Callable[[], Mapping[str, ObjectInfo]] | None = None) -> None:
        """See which leases were renewed. Raises what the store raises.

        `list_cluster` lists the objects of the cluster; by default only the leases are listed.
        """
        asked = self._clock.monotonic()
        objects = (
            self._document_store.list(NODES)
            if list_cluster is None
            else below(list_cluster(), NODES)
        )
        self._looked = asked
        answered = self._clock.monotonic()
        listed = {name_of(path.removeprefix(f"{NODES}/")): info for path, info in objects.items()}
        versions = {incarnation: info.version for incarnation, info in listed.items()}
        self._sightings.look(versions, asked=asked, answered=answered)
        self._listed = listed
        # Silence grows with a look and in no other way.
        late, ttl = 1.5 * self.pace.renew, self.pace.ttl
        self._late = any(late <= self.silent(process) < ttl for process in listed)
        self._renewing = max(1, sum(not self.dead(process) for process in listed))
        self._first_seen = {process: self._first_seen.get(process, asked) for process in listed}
        self._known = {
            process: lease for process, lease in self._known.items() if process in listed
        }
        self._troubles = {
            process: why for process, why in self._troubles.items() if process in listed
        }

    @property
    def due(self) -> bool:
        """Whether to look even if nothing depends on it here: any node may lead next.

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
        """Unreadable leases."""
        return tuple(self._troubles.values())

    def silent(self, incarnation: str) -> float:
        """Seconds since its last renewal; 0 when it was never seen."""
        return self._sightings.silent(incarnation) or 0.0

    def age(self, incarnation: str) -> float:
        """Seconds since this node saw it first."""
        now = self._clock.monotonic()
        return now - self._first_seen.get(incarnation, now)

    def dead(self, incarnation: str) -> bool:
        """Whether its lease was not renewed in time."""
        return self.silent(incarnation) >= self.pace.ttl

    def dead_leases(self) -> dict[str, str]:
        """The version of each lease that was not renewed in time."""
        return {
            process: info.version
            for process, info in self._listed.items()
            if self.dead(process)
            and ((lease := self.lease(process)) is None or lease.state != "gone")
        }

    def add_dead(self, dead: Mapping[str, str]) -> None:
        """Take over what the leader found: these versions were not renewed in time."""
        self._dead_by_leader = dead

    def renewing(self) -> int:
        """How many processes renew their leases, at least 1."""
        return self._renewing

    def processes(self, node: str) -> list[str]:
        """The incarnations of a node."""
        prefix = incarnation_of(node, "")
        return [
            process
            for process in self._listed
            if process.startswith(prefix) and node_of(process) == node
        ]

    def lease(self, incarnation: str) -> NodeLease | None:
        """Its lease as it was read last."""
        known = self._known.get(incarnation)
        return None if known is None else known.lease

    def study(self, go_on: GoOn) -> bool:
        """Read changed leases. True when all are read. Raises what the store raises.

        A renewal changes nothing but the nonce, so the size of a lease tells that its state is
        another one. That is only a hint: some others are read again in each turn, in rotation.
        """
        new = [
            process for process, info in self._listed.items() if self._size(process) != info.size
        ]
        others = sorted(
            (known.at, process)
            for process, known in self._known.items()
            if known.size == self._listed[process].size and not self._over(known)
        )
        wanted = new + [process for _, process in others[: self.pace.audits]]
        for start in range(0, len(wanted), BATCH):
            if start and not go_on():
                return False
            for result in self._read(wanted[start : start + BATCH]).values():
                if isinstance(result, Exception) and not isinstance(result, OperationError):
                    raise result
        return True

    def verdicts(self, owners: Set[str]) -> dict[str, Verdict]:
        """The present state of each owner."""
        leases = self._read(sorted(owners))
        return {owner: self._verdict(owner, lease) for owner, lease in leases.items()}

    def _verdict(self, owner: str, found: StoredDocument[NodeLease] | StoreError | None) -> Verdict:
        if found is None:
            return "gone"
        if not isinstance(found, StoredDocument):
            # Its content no longer matters once it is not renewed.
            return "dead" if self.dead(owner) else "unknown"
        # One that was renewed since then is alive again.
        watched = (
            self._listed[owner].version if self.dead(owner) else self._dead_by_leader.get(owner)
        )
        if found.document.state != "gone" and found.version == watched:
            return "dead"
        return found.document.state

    def _size(self, incarnation: str) -> int | None:
        known = self._known.get(incarnation)
        return None if known is None else known.size

    @staticmethod
    def _over(known: _Known) -> bool:
        return known.lease is not None and known.lease.state == "gone"

    def _read(
        self, incarnations: Sequence[str]
    ) -> dict[str, StoredDocument[NodeLease] | StoreError | None]:
        calls: list[Callable[[], StoredDocument[NodeLease] | StoreError | None]] = [
            attempted(partial(self._document_store.read, NodeLease, node_path(incarnation)))
            for incarnation in incarnations
        ]
        results = dict(zip(incarnations, self._together(calls), strict=True))
        for incarnation, result in results.items():
            if incarnation not in self._listed:
                continue
            size, now = self._listed[incarnation].size, self._clock.monotonic()
            if isinstance(result, StoredDocument):
                self._known[incarnation] = _Known(size, now, result.document)
                self._troubles.pop(incarnation, None)
            elif isinstance(result, OperationError):
                self._known[incarnation] = _Known(size, now, None)
                self._troubles[incarnation] = error_line(result)
        return results


#: Writes of another lease: its process may renew it between a read and a write.
_MARK_ATTEMPTS: Final = 3


class NodeSession:
    """The lease of this process.

    Attributes:
        incarnation: this process; another one when the lease was lost and a new one is needed.
        state: what the lease says, None while there is none.
        until: monotonic seconds until which this node trusts its lease.
        lapses: how often the lease was not trusted for a while and then renewed.
        before: earlier incarnations of this node, which this one marked gone.
        attempts: incarnations of this process. The lease of one that got no answer may come late.
    """

    def __init__(
        self, document_store: DocumentStore, me: NodeIdentity, clock: Clock, pace: CoordinationPace
    ) -> None:
        self._document_store, self._me, self._clock, self._pace = document_store, me, clock, pace
        self.before: set[str] = set()
        self.attempts: set[str] = set()
        self.lapses = 0
        self._leaving = False
        self.incarnation = ""
        self.state: NodeState | None = None
        self.until = self._sent = -math.inf
        self._be_new()

    @property
    def trusted(self) -> bool:
        """Whether no other node can take this one for dead yet."""
        return self._clock.monotonic() < self.until

    def begin(self, listed: Iterable[str]) -> None:
        """Mark earlier incarnations of this node gone, then create the lease.

        The caller holds the lock of the work folder, so an earlier process has ended.
        Raises what the store raises; then the next attempt is another incarnation.
        """
        for process in listed:
            if node_of(process) == self._me.node and process != self.incarnation:
                self.mark_gone(process)
        lease = NodeLease(
            node=self._me.node,
            incarnation=self.incarnation,
            state="ready",
            on_demand=self._me.on_demand,
            capacity=self._me.capacity,
            since=self._clock.now(),
            version=self._me.version,
            renewed_at=self._clock.now(),
            machine=self._me.machine,
            zone=self._me.zone,
        )
        attempt, sent = self.incarnation, self._clock.monotonic()
        self.attempts.add(attempt)
        self._be_new()
        if self._document_store.write(node_path(attempt), lease, None):
            self.incarnation = attempt
            self._renewed("ready", sent)

    def keep(self, state: NodeState, leaving: str = "") -> None:
        """Renew the lease when that is due or it has to say something else.

        `leaving` is why the node drains or leaves; what the lease says of it already stays.

        Raises:
            ConflictError: another process marked it gone (POLYNYA-AGT-011).
            DependencyError: what the store raises.
        """
        due = self._clock.monotonic() >= self._sent + self._pace.renew
        if state == self.state and not due:
            return
        found = self._read()
        if found is None:
            # Deleted or damaged: its content is unknown, so this is another process now.
            self._be_new()
            return
        lease = found.document
        if lease.state == "gone":
            if not self._leaving:
                raise NODE_REPLACED(where=self.incarnation)
            # Written by us, although the answer was lost.
            self.state = "gone"
            return
        now = self._clock.now()
        since = lease.since if lease.state == state else now
        why = lease.leaving or leaving[:MAX_TEXT]
        update = {"state": state, "since": since, "renewed_at": now, "leaving": why}
        renewed = lease.model_copy(update=update)
        self._leaving = self._leaving or state == "gone"
        sent = self._clock.monotonic()
        if self._document_store.write(node_path(self.incarnation), renewed, found.version):
            self.lapses += sent >= self.until
            self._renewed(state, sent)

    def mark_gone(self, other: str) -> None:
        """Mark the lease of a process that has ended. Raises what the store raises."""
        for _ in range(_MARK_ATTEMPTS):
            found = self._document_store.read(NodeLease, node_path(other))
            if found is None or found.document.state == "gone":
                break
            update = {"state": "gone", "since": self._clock.now()}
            gone = found.document.model_copy(update=update)
            if self._document_store.write(node_path(other), gone, found.version):
                break
        else:
            # The others wait until its lease ends.
            return
        self.before.add(other)

    def _read(self) -> StoredDocument[NodeLease] | None:
        try:
            return self._document_store.read(NodeLease, node_path(self.incarnation))
        except OperationError:
            return None

    def _renewed(self, state: NodeState, sent: float) -> None:
        self.state, self._sent = state, sent
        self.until = sent + self._pace.trust * self._pace.ttl

    def _be_new(self) -> None:
        self.incarnation = incarnation_of(self._me.node, self._document_store.token())
        self.state = None
        self.until = self._sent = -math.inf


#: Turns for which a restarted process does not take the lead. With three a unit is owned again
#: within two leases, whenever the process of the leader comes back (ADR 43).
_PATIENT_TURNS: Final = 3


class Leadership:
    """The leader's lease, as this member sees it.

    Attributes:
        holder: the incarnation that leads, as far as known.
        term: of the holder.
        configuration: fingerprint of the units that the holder knows, empty when it does not say.
    """

    def __init__(
        self, document_store: DocumentStore, me: NodeIdentity, clock: Clock, pace: CoordinationPace
    ) -> None:
        self._document_store, self._me, self._clock, self._pace = document_store, me, clock, pace
        self._sightings = Sightings(longest_gap=1.5 * pace.renew)
        self._sent = self._until = -math.inf
        # Since when this node has watched, and since when it has seen no leader.
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
        """Find the leader. Renew or resign if it is this member, take the lead if there is none.

        Args:
            me: our incarnation.
            willing: we may lead.
            alone: no other node has a lease.
            configuration: fingerprint of the units that we know.
            over: whether an incarnation is known to be dead or to have no lease.

        Raises what the store raises.
        """
        asked = self._clock.monotonic()
        found = self._document_store.read(LeaderLease, LEADER)
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
                # Otherwise the others would wait half a minute until its lease has expired.
                self._vacate(found)

    def _may_follow(self, now: float) -> bool:
        """Whether we have watched for a lease's time to live, or some turns had no leader.

        Having watched, we know which processes are dead; until then a member that knows more
        should lead.
        """
        knows = now - self._began >= self._pace.ttl
        return knows or now - self._vacant_since >= _PATIENT_TURNS * self._pace.turn

    def _hold(
        self, found: StoredDocument[LeaderLease], configuration: str, *, willing: bool
    ) -> None:
        if not willing:
            self._until = -math.inf
            self._vacate(found)
            return
        due = self._clock.monotonic() >= self._sent + self._pace.renew
        if due or self.configuration != configuration:
            lease = found.document.model_copy(update={"configuration": configuration})
            if self._write(lease, found.version):
                self.configuration = configuration

    def _vacate(self, found: StoredDocument[LeaderLease]) -> None:
        vacant = found.document.model_copy(update={"node": None, "incarnation": None})
        if self._document_store.write(LEADER, vacant, found.version):
            self.holder = None

    def _follow(
        self, me: str, found: StoredDocument[LeaderLease] | None, configuration: str
    ) -> None:
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
        if not self._document_store.write(LEADER, lease, version):
            return False
        self._sent, self._until = sent, sent + self._pace.trust * self._pace.ttl
        return True
