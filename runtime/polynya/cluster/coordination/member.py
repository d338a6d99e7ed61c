"""A node as a member of its cluster: one turn after the other, through the object store.

A turn renews the lease, reads the plan, and claims and releases units; the leader also plans.

The leader plans by its own configuration, and each node works by its own. All read the same files,
seconds apart; but a node may be unable to read them, or may still have what another node never got
because a file broke. `DifferencePublisher` publishes a difference that lasts, and the leader then
plans each unit on a node that knows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Set
from functools import lru_cache
from random import Random
from typing import Final

from polynya.cluster.coordination.documents import Freeze, LeaderUnits, NodePlan, UnitDifference
from polynya.cluster.coordination.leases import Leadership, LeaseTable, NodeSession
from polynya.cluster.coordination.member_state import (
    SHORTEST,
    CoordinationPace,
    MemberAction,
    MemberState,
    NodeFacts,
    NodeIdentity,
    ObservedNode,
    Together,
    one_by_one,
)
from polynya.cluster.coordination.ownership import Claims, OwnedUnits, OwnershipRecords
from polynya.cluster.coordination.planner import Planner, Propose
from polynya.cluster.coordination.store import (
    DIFFERENCES,
    FREEZE,
    STORE_ERRORS,
    WANTED_UNITS,
    DocumentStore,
    StoredDocument,
    difference_path,
    node_of,
    plan_path,
    probe,
    told,
)
from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import NODE_REPLACED, UNCONDITIONAL_WRITES
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

_DIGITS: Final = 32


@lru_cache(maxsize=2)
def fingerprint(units: frozenset[JobKey]) -> str:
    """The same for the same units, in every process and version."""
    listed = json.dumps([[unit.task, unit.name] for unit in sorted(units)])
    return hashlib.sha256(listed.encode()).hexdigest()[:_DIGITS]


class DifferencePublisher:
    """Publishes how the units that this process knows differ from the leader's."""

    def __init__(self, document_store: DocumentStore, clock: Clock, pace: CoordinationPace) -> None:
        self._document_store, self._clock, self._pace = document_store, clock, pace
        self._me = ""
        self._since: float | None = None
        self._told_at: float | None = None

    def turn(self, me: str, units: frozenset[JobKey], leaders: str) -> None:
        """Publish a difference of our units that lasts; withdraw it when it is over.

        Args:
            me: our incarnation.
            units: those that we know.
            leaders: fingerprint of those that the leader knows, empty when it is unknown.

        Raises what the store raises.
        """
        if me != self._me:
            self._me, self._since, self._told_at = me, None, None
        if not leaders:
            return
        if fingerprint(units) == leaders:
            self._since = None
            self._take_back()
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if self._told_at is not None or now - self._since >= self._pace.learn:
            self._tell(units, leaders)

    def _tell(self, units: frozenset[JobKey], leaders: str) -> None:
        ours, path = fingerprint(units), difference_path(self._me)
        try:
            found = self._document_store.read(UnitDifference, path)
            version = None if found is None else found.version
        except OperationError:
            # Somebody destroyed it; it is our own.
            found, version = None, self._version()
        if found and (found.document.configuration, found.document.base) == (ours, leaders):
            return
        wanted = self._document_store.read(LeaderUnits, WANTED_UNITS)
        if wanted is None or wanted.document.configuration != leaders:
            # The leader is about to write it.
            return
        theirs = wanted.document.keys()
        update = {
            "configuration": ours,
            "base": leaders,
            "more": tuple(sorted(units - theirs)),
            "less": tuple(sorted(theirs - units)),
        }
        before = found.document if found else UnitDifference(configuration=ours, base=leaders)
        self._told_at = self._clock.monotonic()
        self._document_store.write(path, before.model_copy(update=update), version)

    def _take_back(self) -> None:
        """Delete it, and once more if a write whose answer was lost is made late."""
        if self._told_at is None:
            return
        version = self._version()
        if version is not None:
            self._document_store.delete(difference_path(self._me), version)
        elif self._clock.monotonic() - self._told_at >= self._pace.learn:
            self._told_at = None

    def _version(self) -> str | None:
        info = self._document_store.list(DIFFERENCES).get(difference_path(self._me))
        return None if info is None else info.version


#: Codes of errors that end the agent: it must not work in this cluster.
_FATAL: Final = frozenset({UNCONDITIONAL_WRITES.code, NODE_REPLACED.code})


class Member:
    """This node's part in the cluster. Lives in one thread; starts none.

    Args:
        store: the coordination place. A store that tries a write again by itself must take an
            object that holds exactly the same bytes for its own, as `S3ObjectStore` does.
        cluster: its name; all objects are below it.
        me: this node.
        propose: `placement.propose` with its rules, for when this node leads.
        clock: its monotonic time goes on while the machine is suspended (`BootClock`).
        random: of incarnations, nonces and jitter; in production a `SystemRandom`.
        pace: times of the protocol.
        together: does independent requests at the same time.
    """

    def __init__(
        self,
        store: ObjectStore,
        cluster: str,
        me: NodeIdentity,
        propose: Propose,
        *,
        clock: Clock,
        random: Random,
        pace: CoordinationPace | None = None,
        together: Together = one_by_one,
    ) -> None:
        pace = pace or CoordinationPace()
        document_store = DocumentStore(store, cluster, random)
        records = OwnershipRecords(document_store, together)
        self._store, self._cluster, self._me = store, cluster, me
        self._document_store, self._clock, self._random, self._pace = (
            document_store,
            clock,
            random,
            pace,
        )
        self._lease_table = LeaseTable(document_store, clock, pace, together)
        self._session = NodeSession(document_store, me, clock, pace)
        self._leadership = Leadership(document_store, me, clock, pace)
        self._knowing = DifferencePublisher(document_store, clock, pace)
        self._planner = Planner(
            document_store, self._lease_table, propose, clock=clock, together=together
        )
        self._owned_units = OwnedUnits(records, clock, pace)
        self._claims = Claims(records, self._lease_table, self._owned_units, me=me, clock=clock)
        self._probed = False
        self._frozen: Freeze | None = None
        self._moves_allowed = False
        self._plan: dict[JobKey, str] = {}
        self._plan_read: StoredDocument[NodePlan] | None = None
        self._fenced: dict[JobKey, int] = {}
        self._revoked: frozenset[JobKey] = frozenset()
        self._lapses = 0
        self._started = 0.0
        self._failed = self._unfinished = False
        self._decided: list[MemberAction] = []
        self._troubles: list[str] = []

    def turn(self, seen: NodeFacts) -> MemberState:
        """One round: renew the lease, lead if nobody else does, follow the plan.

        What fails in the store is among the `troubles` of the result and tried again next time.

        Raises:
            OperationError: the store does not enforce conditions of writes (POLYNYA-AGT-010).
            ConflictError: another process with the same node id took our place (POLYNYA-AGT-011).
        """
        self._begin_turn(seen)
        if self._session.state != "gone" and self._joined(seen):
            self._step("renew the session", lambda: self._keep(seen))
            self._step("look for a freeze", self._look_for_freeze)
            self._step("look who leads", lambda: self._look_for_leader(seen))
            self._step("tell what is known here", lambda: self._tell(seen))
            self._step("lead", lambda: self._lead(seen))
            self._step("read the plan", self._read_plan)
            self._reconcile(seen)
            if seen.draining:
                self._step("leave", lambda: self._leave(seen))
        return self._member_state(seen)

    def _begin_turn(self, seen: NodeFacts) -> None:
        self._started = self._clock.monotonic()
        self._failed = self._unfinished = False
        # Until the store has said that the cluster is not frozen.
        self._moves_allowed = False
        self._decided, self._troubles = [], []
        self._owned_units.decided, self._owned_units.troubles = self._decided, self._troubles
        for unit, epoch in seen.fenced.items():
            self._fenced[unit] = max(epoch, self._fenced.get(unit, 0))

    def _step(self, what: str, call: Callable[[], object]) -> None:
        """Do it; the store may fail. An outage that takes its time takes that of one step."""
        spent = self._clock.monotonic() - self._started
        if self._failed and spent > self._pace.turn:
            return
        try:
            call()
        except STORE_ERRORS as error:
            if isinstance(error, PolynyaError) and error.code in _FATAL:
                raise
            self._failed = True
            self._troubles.append(f"{told(error)} (to {what})")

    def _go_on(self) -> bool:
        """Whether a long step has time for more. The session is renewed in the meantime."""
        state = self._session.state
        if state is not None:
            self._step("renew the session", lambda: self._session.keep(state))
        self._doubt_after_lapse()
        more = self._clock.monotonic() - self._started < self._pace.renew
        self._unfinished = self._unfinished or not more
        return more

    def _joined(self, seen: NodeFacts) -> bool:
        """Whether this node is a member, which it becomes with its first configuration."""
        if self._session.state is None:
            if seen.wanted is None or seen.draining:
                return False
            if not self._probed:
                self._step("probe the store", self._probe)
        if self._probed:
            if self._lease_table.due or self._leadership.leading or self._claims.waiting:
                self._step("list the nodes", self._lease_table.look)
            if self._session.state is None and not self._failed:
                self._step("begin a session", lambda: self._session.begin(self._lease_table.listed))
        if self._owned_units.me != self._session.incarnation:
            self._owned_units.begin(self._session.incarnation)
            self._plan, self._plan_read = {}, None
        return self._session.state is not None

    def _probe(self) -> None:
        probe(self._store, self._cluster, self._document_store.token())
        self._probed = True

    def _keep(self, seen: NodeFacts) -> None:
        session, late = self._session, []
        for one in self._lease_table.processes(self._me.node):
            ours = one == session.incarnation or one in session.before
            if not ours and one in session.attempts:
                late.append(one)
            elif not ours and not self._lease_table.dead(one):
                self._troubles.append(
                    f"{NODE_REPLACED.code}: {one} runs with the id of this node, too"
                )
        session.keep("draining" if seen.draining else "ready")
        for one in late:
            session.mark_gone(one)

    def _look_for_freeze(self) -> None:
        try:
            found = self._document_store.read(Freeze, FREEZE)
        except OperationError as error:
            # That it is there is what counts.
            self._troubles.append(told(error))
            self._frozen = Freeze(by="?", since=self._clock.now())
        else:
            self._frozen = found.document if found is not None else None
        self._moves_allowed = self._frozen is None

    def _look_for_leader(self, seen: NodeFacts) -> None:
        willing = not seen.draining and seen.wanted is not None and self._session.trusted
        self._leadership.turn(
            self._session.incarnation,
            willing=willing,
            alone=all(node_of(one) == self._me.node for one in self._lease_table.listed),
            configuration=self._configuration(seen),
            over=self._over,
        )

    def _configuration(self, seen: NodeFacts) -> str:
        return fingerprint(seen.wanted or frozenset())

    def _tell(self, seen: NodeFacts) -> None:
        """Let the leader know if this node knows other units."""
        if seen.wanted is not None and not seen.draining:
            leaders = self._leadership.configuration
            self._knowing.turn(self._session.incarnation, seen.wanted, leaders)

    def _over(self, incarnation: str) -> bool:
        """Whether a process is known to be no member any more."""
        if incarnation in self._session.before:
            return True
        lease = self._lease_table.lease(incarnation)
        gone = lease is not None and lease.state == "gone"
        if (
            incarnation in self._lease_table.listed
            and not gone
            and not self._lease_table.dead(incarnation)
        ):
            return False
        # It may have begun, or renewed its lease, since the leases were listed.
        return self._lease_table.verdicts({incarnation})[incarnation] in {"gone", "dead"}

    def _lead(self, seen: NodeFacts) -> None:
        if not self._leadership.leading:
            self._planner.resign()
        elif self._moves_allowed:
            planned = self._planner.turn(
                self._leadership.term, seen, self._configuration(seen), self._go_on
            )
            self._decided += planned.decided
            self._troubles += planned.troubles
            self._unfinished = self._unfinished or planned.unfinished

    def _read_plan(self) -> None:
        """A plan that is not there, or cannot be understood, leaves the last one in force."""
        path, before = plan_path(self._session.incarnation), self._plan_read
        found = self._document_store.read(NodePlan, path, before)
        if found is not None and found is not before:
            self._plan_read, self._plan = found, found.document.reasons()
            # A node that has just begun need not watch a dead one for a whole lease itself.
            self._lease_table.hear(found.document.dead_leases())

    def _reconcile(self, seen: NodeFacts) -> None:
        """Bring what we own in line with what we are to have."""
        if not self._session.trusted:
            return
        self._doubt_after_lapse()
        owned_units, go_on = self._owned_units, self._go_on
        owned_units.fenced(self._fenced, go_on)
        self._fenced = {}
        owned_units.check(go_on)
        leaving = owned_units.units - self._kept(seen)
        reason = "this node drains" if seen.draining else "the leader wants it elsewhere"
        stops = sorted((leaving & seen.working) - self._revoked)
        self._decided += [MemberAction("revoked", unit, reason) for unit in stops]
        # A job that is between two tries starts again unless the agent was told to stop it: what
        # goes is released in a turn after that. Who drains starts nothing.
        told_to_stop = leaving if seen.draining else leaving & self._revoked
        self._unfinished = self._unfinished or bool(leaving - told_to_stop)
        self._revoked = leaving
        if self._moves_allowed:
            owned_units.release(told_to_stop - seen.working, reason, go_on)
            if not seen.draining:
                known = seen.wanted or frozenset()
                more = self._claims.turn([unit for unit in self._plan if unit in known], go_on)
                self._unfinished = self._unfinished or more

    def _kept(self, seen: NodeFacts) -> Set[JobKey]:
        """What this node is to have, of what it owns. A freeze leaves everything where it is."""
        if seen.draining:
            return frozenset()
        return self._plan.keys() if self._frozen is None else self._owned_units.units

    def _leave(self, seen: NodeFacts) -> None:
        """With nothing left to release, the others need not wait for our lease to run out."""
        if not seen.working and (self._frozen is not None or not self._owned_units.units):
            self._session.keep("gone")

    def _doubt_after_lapse(self) -> None:
        if self._lapses != self._session.lapses:
            self._lapses = self._session.lapses
            self._owned_units.doubt()

    def _member_state(self, seen: NodeFacts) -> MemberState:
        self._doubt_after_lapse()
        session, kept = self._session, self._kept(seen)
        joined = session.state is not None
        return MemberState(
            incarnation=session.incarnation,
            grants={
                unit: epoch for unit, epoch in self._owned_units.sure().items() if unit in kept
            },
            grants_until=session.until,
            revoked=self._owned_units.units - kept,
            state=session.state,
            left=session.state == "gone" or (seen.draining and not joined),
            leader=self._leadership.holder,
            leading=self._leadership.leading,
            frozen=self._frozen,
            held=not self._moves_allowed,
            nodes=self._nodes(),
            waiting=self._claims.waiting | self._unknown(seen),
            decided=tuple(self._decided),
            troubles=tuple(self._troubles),
            next_turn_seconds=self._next_turn(seen),
        )

    def _unknown(self, seen: NodeFacts) -> dict[JobKey, str]:
        """Units of the plan that the configuration of this node does not have, so far."""
        if seen.draining or seen.wanted is None:
            return {}
        missing = self._plan.keys() - seen.wanted - self._owned_units.units
        return dict.fromkeys(sorted(missing), "the configuration of this node does not have it")

    def _next_turn(self, seen: NodeFacts) -> float:
        """Seconds until the next turn; spread, so that many nodes do not ask at the same time."""
        hurry = self._unfinished or self._failed or seen.draining
        seconds = self._pace.soon if hurry else self._pace.turn
        return seconds * (SHORTEST + (1 - SHORTEST) * self._random.random())

    def _nodes(self) -> dict[str, ObservedNode]:
        leading = self._leadership.leading
        drained = self._planner.drained if leading else {}
        planned = self._planner.planned() if leading else None
        seen = {}
        for one in self._lease_table.listed:
            lease, node = self._lease_table.lease(one), node_of(one)
            seen[one] = ObservedNode(
                incarnation=one,
                node=node,
                state=lease.state if lease is not None else None,
                dead=self._lease_table.dead(one),
                silent_seconds=self._lease_table.silent(one),
                on_demand=lease is not None and lease.on_demand,
                drained_by=drained.get(node),
                planned=None if planned is None else planned.get(one, 0),
            )
        return seen
