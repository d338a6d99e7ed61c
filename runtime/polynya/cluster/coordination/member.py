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
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
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
    error_line,
    node_of,
    plan_path,
    probe,
)
from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import NODE_REPLACED, UNCONDITIONAL_WRITES
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo, ObjectStore

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
        self._published_at: float | None = None

    def turn(self, me: str, units: frozenset[JobKey], leaders: str) -> None:
        """Publish a difference of our units that lasts; withdraw it when it is over.

        Args:
            me: our incarnation.
            units: those that we know.
            leaders: fingerprint of those that the leader knows, empty when it is unknown.

        Raises what the store raises.
        """
        if me != self._me:
            self._me, self._since, self._published_at = me, None, None
        if not leaders:
            return
        if fingerprint(units) == leaders:
            self._since = None
            self._withdraw()
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if self._published_at is not None or now - self._since >= self._pace.learn:
            self._publish(units, leaders)

    def _publish(self, units: frozenset[JobKey], leaders: str) -> None:
        ours, path = fingerprint(units), difference_path(self._me)
        try:
            found = self._document_store.read(UnitDifference, path)
            version = None if found is None else found.version
        except OperationError:
            # It is damaged, and our own: overwrite it.
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
        self._published_at = self._clock.monotonic()
        self._document_store.write(path, before.model_copy(update=update), version)

    def _withdraw(self) -> None:
        """Delete the difference, again if a write whose answer was lost happens late."""
        if self._published_at is None:
            return
        version = self._version()
        if version is not None:
            self._document_store.delete(difference_path(self._me), version)
        elif self._clock.monotonic() - self._published_at >= self._pace.learn:
            self._published_at = None

    def _version(self) -> str | None:
        info = self._document_store.list(DIFFERENCES).get(difference_path(self._me))
        return None if info is None else info.version


#: Codes of errors that end the agent: it must not work in this cluster.
_FATAL: Final = frozenset({UNCONDITIONAL_WRITES.code, NODE_REPLACED.code})


@dataclass(slots=True)
class _Turn:
    """One turn, and what came of it so far.

    Attributes:
        facts: the input of the turn.
        started: when it began, in monotonic seconds.
        moves_allowed: the store has said in this turn that the cluster is not frozen.
        failed: the store failed in one of the steps.
        unfinished: there is more to do, for which the next turn should come soon.
        listed: the objects of the cluster, None while they were not listed.
    """

    facts: NodeFacts
    started: float
    moves_allowed: bool = False
    failed: bool = False
    unfinished: bool = False
    actions: list[MemberAction] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    listed: Mapping[str, ObjectInfo] | None = None


@dataclass(frozen=True, slots=True)
class _FollowedPlan:
    """The plan of this incarnation as it was read last, and its units with their reasons."""

    stored: StoredDocument[NodePlan] | None = None
    units: Mapping[JobKey, str] = field(default_factory=dict)


class Member:
    """This node's part in the cluster. Lives in one thread; starts none.

    Args:
        store: the coordination place. A store that tries a write again by itself must take an
            object that holds exactly the same bytes for its own, as `S3ObjectStore` does.
        cluster: its name; all objects are below it.
        me: this node.
        propose: `placement.propose` with its rules, for when this node leads.
        clock: its monotonic time continues while the machine is suspended (`BootClock`).
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
        self._store, self._cluster, self._me = store, cluster, me
        self._clock, self._random = clock, random
        self._pace = pace = pace or CoordinationPace()
        self._documents = documents = DocumentStore(store, cluster, random)
        self._lease_table = LeaseTable(documents, clock, pace, together)
        self._session = NodeSession(documents, me, clock, pace)
        self._leadership = Leadership(documents, me, clock, pace)
        self._differences = DifferencePublisher(documents, clock, pace)
        self._planner = Planner(
            documents, self._lease_table, propose, clock=clock, together=together
        )
        records = OwnershipRecords(documents, together)
        self._owned_units = OwnedUnits(records, clock, pace)
        self._claims = Claims(records, self._lease_table, self._owned_units, me=me, clock=clock)
        self._is_store_probed = False
        self._frozen: Freeze | None = None
        self._plan = _FollowedPlan()
        #: Fenced units that were not looked up yet, with the epoch that was found.
        self._fenced: dict[JobKey, int] = {}
        #: Units that the agent was told to stop in the last turn.
        self._revoked: frozenset[JobKey] = frozenset()
        #: Lapses of the session after which the owned units were checked.
        self._lapses = 0
        self._turn = _Turn(NodeFacts(wanted=None), started=0.0)

    def turn(self, facts: NodeFacts) -> MemberState:
        """One round: renew the lease, lead if no other node does, follow the plan.

        What fails in the store is among the `troubles` of the result and tried again next time.

        Raises:
            OperationError: the store does not enforce conditional writes (POLYNYA-AGT-010).
            ConflictError: another process with the same node id replaced this one
                (POLYNYA-AGT-011).
        """
        self._begin_turn(facts)
        if self._session.state != "gone" and self._join():
            for purpose, step in (
                ("renew the session", self._renew_session),
                ("look for a freeze", self._look_for_freeze),
                ("look who leads", self._look_for_leader),
                ("publish which units are known here", self._publish_difference),
                ("lead", self._lead),
                ("read the plan", self._read_plan),
            ):
                self._attempt(purpose, step)
            self._reconcile()
            if facts.draining:
                self._attempt("leave", self._leave)
        return self._state()

    def _begin_turn(self, facts: NodeFacts) -> None:
        self._turn = turn = _Turn(facts, self._clock.monotonic())
        self._owned_units.actions, self._owned_units.troubles = turn.actions, turn.troubles
        for unit, epoch in facts.fenced.items():
            self._fenced[unit] = max(epoch, self._fenced.get(unit, 0))

    def _attempt(self, purpose: str, step: Callable[[], object]) -> None:
        """Take a step; the store may fail. An outage that takes its time takes that of one step."""
        spent = self._clock.monotonic() - self._turn.started
        if self._turn.failed and spent > self._pace.turn:
            return
        try:
            step()
        except STORE_ERRORS as error:
            if isinstance(error, PolynyaError) and error.code in _FATAL:
                raise
            self._turn.failed = True
            self._turn.troubles.append(f"{error_line(error)} (to {purpose})")

    def _go_on(self) -> bool:
        """Whether a long step has time for more. The session is renewed in the meantime."""
        state = self._session.state
        if state is not None:
            self._attempt("renew the session", lambda: self._session.keep(state))
        self._doubt_after_lapse()
        more = self._clock.monotonic() - self._turn.started < self._pace.renew
        self._turn.unfinished |= not more
        return more

    def _join(self) -> bool:
        """Whether this node is a member, which it becomes with its first configuration."""
        session, lease_table = self._session, self._lease_table
        if session.state is None:
            if self._turn.facts.wanted is None or self._turn.facts.draining:
                return False
            if not self._is_store_probed:
                self._attempt("probe the store", self._probe)
        if self._is_store_probed:
            if self._leadership.leading:
                self._attempt("list the cluster", lambda: lease_table.look(self._listed))
            elif lease_table.due or self._claims.waiting:
                self._attempt("list the nodes", lease_table.look)
            if session.state is None and not self._turn.failed:
                self._attempt("begin a session", lambda: session.begin(lease_table.listed))
        if self._owned_units.me != session.incarnation:
            self._owned_units.begin(session.incarnation)
            self._plan = _FollowedPlan()
        return session.state is not None

    def _listed(self) -> Mapping[str, ObjectInfo]:
        """The objects of the cluster as they are listed in this turn, once."""
        if self._turn.listed is None:
            self._turn.listed = self._documents.list_without_units()
        return self._turn.listed

    def _probe(self) -> None:
        probe(self._store, self._cluster, self._documents.token())
        self._is_store_probed = True

    def _renew_session(self) -> None:
        session, late = self._session, []
        for process in self._lease_table.processes(self._me.node):
            ours = process == session.incarnation or process in session.before
            if not ours and process in session.attempts:
                late.append(process)
            elif not ours and not self._lease_table.dead(process):
                self._turn.troubles.append(
                    f"{NODE_REPLACED.code}: {process} runs with the id of this node, too"
                )
        facts = self._turn.facts
        session.keep("draining" if facts.draining else "ready", facts.leaving)
        for process in late:
            session.mark_gone(process)

    def _look_for_freeze(self) -> None:
        try:
            freeze = self._documents.read(Freeze, FREEZE)
        except OperationError as error:
            # A freeze exists, whatever it says.
            self._turn.troubles.append(error_line(error))
            self._frozen = Freeze(by="?", since=self._clock.now())
        else:
            self._frozen = freeze.document if freeze is not None else None
        self._turn.moves_allowed = self._frozen is None

    def _look_for_leader(self) -> None:
        facts = self._turn.facts
        self._leadership.turn(
            self._session.incarnation,
            willing=not facts.draining and facts.wanted is not None and self._session.trusted,
            alone=all(node_of(process) == self._me.node for process in self._lease_table.listed),
            configuration=self._configuration(),
            over=self._over,
        )

    def _configuration(self) -> str:
        return fingerprint(self._turn.facts.wanted or frozenset())

    def _over(self, incarnation: str) -> bool:
        """Whether a process is known to be no member any more."""
        if incarnation in self._session.before:
            return True
        lease_table = self._lease_table
        lease = lease_table.lease(incarnation)
        gone = lease is not None and lease.state == "gone"
        if incarnation in lease_table.listed and not gone and not lease_table.dead(incarnation):
            return False
        # It may have begun, or renewed its lease, since the leases were listed.
        return lease_table.verdicts({incarnation})[incarnation] in {"gone", "dead"}

    def _publish_difference(self) -> None:
        """Let the leader know if this node knows other units."""
        facts = self._turn.facts
        if facts.wanted is not None and not facts.draining:
            leaders = self._leadership.configuration
            self._differences.turn(self._session.incarnation, facts.wanted, leaders)

    def _lead(self) -> None:
        turn = self._turn
        if not self._leadership.leading:
            self._planner.resign()
        elif turn.moves_allowed:
            result = self._planner.turn(
                self._leadership.term,
                turn.facts,
                self._configuration(),
                self._listed(),
                self._go_on,
            )
            turn.actions += result.actions
            turn.troubles += result.troubles
            turn.unfinished |= result.unfinished

    def _read_plan(self) -> None:
        """A plan that is not there, or cannot be understood, leaves the last one in force."""
        before = self._plan.stored
        plan = self._documents.read(NodePlan, plan_path(self._session.incarnation), before)
        if plan is not None and plan is not before:
            self._plan = _FollowedPlan(plan, plan.document.reasons())
            # A node that has just begun need not watch a dead one for a whole lease itself.
            self._lease_table.add_dead(plan.document.dead_leases())

    def _reconcile(self) -> None:
        """Bring the owned units in line with the plan."""
        if not self._session.trusted:
            return
        self._doubt_after_lapse()
        turn, owned_units = self._turn, self._owned_units
        facts = turn.facts
        owned_units.fenced(self._fenced, self._go_on)
        self._fenced = {}
        owned_units.check(self._go_on)
        leaving = owned_units.units - self._kept()
        reason = "this node drains" if facts.draining else "the leader wants it elsewhere"
        stops = sorted((leaving & facts.working) - self._revoked)
        turn.actions += [MemberAction("revoked", unit, reason) for unit in stops]
        # A job that is between two tries starts again unless the agent was told to stop it: what
        # goes is released in a turn after that. A node that drains starts nothing.
        stopping = leaving if facts.draining else leaving & self._revoked
        turn.unfinished |= bool(leaving - stopping)
        self._revoked = leaving
        if turn.moves_allowed:
            owned_units.release(stopping - facts.working, reason, self._go_on)
            if not facts.draining:
                known = facts.wanted or frozenset()
                wanted = [unit for unit in self._plan.units if unit in known]
                # The claims call `_go_on`, which may find the turn unfinished, too.
                more = self._claims.turn(wanted, self._go_on)
                turn.unfinished |= more

    def _kept(self) -> Set[JobKey]:
        """The owned units that this node should keep. A freeze leaves everything where it is."""
        if self._turn.facts.draining:
            return frozenset()
        return self._plan.units.keys() if self._frozen is None else self._owned_units.units

    def _leave(self) -> None:
        """With nothing left to release, the others need not wait for our lease to run out."""
        if not self._turn.facts.working and (
            self._frozen is not None or not self._owned_units.units
        ):
            self._session.keep("gone")

    def _doubt_after_lapse(self) -> None:
        if self._lapses != self._session.lapses:
            self._lapses = self._session.lapses
            self._owned_units.doubt()

    def _state(self) -> MemberState:
        self._doubt_after_lapse()
        turn, session, owned_units = self._turn, self._session, self._owned_units
        kept = self._kept()
        return MemberState(
            incarnation=session.incarnation,
            grants={unit: epoch for unit, epoch in owned_units.sure().items() if unit in kept},
            grants_until=session.until,
            revoked=owned_units.units - kept,
            state=session.state,
            left=session.state == "gone" or (turn.facts.draining and session.state is None),
            leader=self._leadership.holder,
            leading=self._leadership.leading,
            frozen=self._frozen,
            held=not turn.moves_allowed,
            nodes=self._nodes(),
            waiting=self._claims.waiting | self._unknown_units(),
            actions=tuple(turn.actions),
            troubles=tuple(turn.troubles),
            next_turn_seconds=self._next_turn_seconds(),
        )

    def _unknown_units(self) -> dict[JobKey, str]:
        """Units of the plan that the configuration of this node does not have, so far."""
        facts = self._turn.facts
        if facts.draining or facts.wanted is None:
            return {}
        missing = self._plan.units.keys() - facts.wanted - self._owned_units.units
        return dict.fromkeys(sorted(missing), "the configuration of this node does not have it")

    def _next_turn_seconds(self) -> float:
        """Seconds until the next turn; spread, so that many nodes do not ask at the same time."""
        turn = self._turn
        hurry = turn.unfinished or turn.failed or turn.facts.draining
        seconds = self._pace.soon if hurry else self._pace.turn
        return seconds * (SHORTEST + (1 - SHORTEST) * self._random.random())

    def _nodes(self) -> dict[str, ObservedNode]:
        leading, lease_table = self._leadership.leading, self._lease_table
        drained = self._planner.drained if leading else {}
        planned = self._planner.planned() if leading else None
        nodes = {}
        for incarnation in lease_table.listed:
            lease, node = lease_table.lease(incarnation), node_of(incarnation)
            nodes[incarnation] = ObservedNode(
                incarnation=incarnation,
                node=node,
                state=lease.state if lease is not None else None,
                dead=lease_table.dead(incarnation),
                silent_seconds=lease_table.silent(incarnation),
                on_demand=lease is not None and lease.on_demand,
                drained_by=drained.get(node),
                planned=None if planned is None else planned.get(incarnation, 0),
            )
        return nodes
