"""The thread on which a node is a member of its cluster."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, TypeVar

from polynya import __version__
from polynya.cluster.control.leader_report import LeaderReportWriter
from polynya.cluster.control.requests import (
    FinishedRequest,
    Leaving,
    PendingRequests,
    Requests,
    WorkRequests,
    coordination_store,
)
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import MemberState, NodeFacts, NodeIdentity
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.gossip.messages import NodeReport, Picture, Sender
from polynya.cluster.gossip.stream import Gossip, NoGossip, StreamGossip
from polynya.cluster.membership import ClusterMembership
from polynya.cluster.messages import (
    DrainRequested,
    Inbox,
    LeaveAdvised,
    MembershipEnded,
    Noticed,
    TurnTaken,
)
from polynya.cluster.placement import PlacementRules, propose
from polynya.cluster.spot import Advice, Imds, SpotAction, SpotWatcher
from polynya.cluster.unit import JobKey
from polynya.engine.errors import as_polynya
from polynya.model.config.aws import AwsAccess
from polynya.model.errors import PolynyaError
from polynya.observe.cluster import SpotAdvised, SpotNoticesUnreadable
from polynya.observe.events import EventSink
from polynya.store.clock import BootClock
from polynya.store.places import stream_at


def watch_spot(imds: Imds, node: str, inbox: Inbox) -> None:
    """Ask for notices from now on."""

    def advised(advice: Advice) -> None:
        inbox.put(Noticed(SpotAdvised(subject=node, wish=advice.action, reason=advice.reason)))
        if advice.action is SpotAction.DRAIN:
            inbox.put(DrainRequested(advice.reason, advice.within_seconds))
        else:
            inbox.put(LeaveAdvised(advice.reason))

    def unheard(error: PolynyaError) -> None:
        inbox.put(Noticed(SpotNoticesUnreadable(subject=node, error=error)))

    SpotWatcher(imds, advised, unheard).start()


class Turns(Protocol):
    """A member of a cluster."""

    def turn(self, seen: NodeFacts) -> MemberState:
        """Take one turn. Raises PolynyaError when there can be no other."""
        ...


class RequestReader(Protocol):
    """What a person asks of tasks and of their units."""

    def __call__(self) -> PendingRequests:
        """What is asked now."""
        ...

    def confirmed(self, asked: PendingRequests, grants: Mapping[JobKey, int]) -> PendingRequests:
        """What is still asked of these units of this node."""
        ...

    def settle(self, settled: FinishedRequest) -> None:
        """Let everybody know what became of a wish."""
        ...


class Leave(Protocol):
    """Gives the work of this node to others, if there are any and somebody prefers that."""

    def prefer(self, reason: str) -> None:
        """Prefer it from now on."""
        ...

    def __call__(self, member_state: MemberState) -> None:
        """Do what can be done before a turn."""
        ...


class Watcher(Protocol):
    """Receives the result of each turn, for the status of the cluster."""

    def __call__(self, member_state: MemberState, own: NodeReport | None, picture: Picture) -> None:
        """Take note. Raises nothing."""
        ...


class MemberThread:
    """Takes turns until the member has left. What it offers to other threads waits for nothing.

    Args:
        member: whose turns they are.
        opened: begins to tell and to hear, once it is known as which incarnation; what it is given
            wakes the member.
        asked: reads the requests of operators.
        leave: asked before each turn but the first.
        inbox: takes what comes of each turn.
        watcher: receives after each turn what this node reports, and what the others reported.
    """

    def __init__(
        self,
        member: Turns,
        opened: Callable[[str, Callable[[], None]], Gossip],
        asked: RequestReader,
        leave: Leave,
        inbox: Inbox,
        *,
        watcher: Watcher | None = None,
    ) -> None:
        self._watcher = watcher
        self._report: NodeReport | None = None
        self._member, self._opened, self._inbox = member, opened, inbox
        self._asked, self._leave = asked, leave
        self._gossip: Gossip | None = None
        self._known_as = ""
        self._seen = NodeFacts(wanted=None)
        self._early = threading.Event()

    def start(self) -> None:
        """Start the thread. A process that must end does not wait for it."""
        threading.Thread(target=self._run, name="member", daemon=True).start()

    def see(self, seen: NodeFacts) -> None:
        """Let the next turns know this; the next one is taken at once when it matters."""
        before, self._seen = self._seen, seen
        if _is_urgent(before, seen):
            self._early.set()

    def publish(self, report: NodeReport) -> None:
        """Let the other nodes know this."""
        self._report = report
        if self._gossip is not None:
            self._gossip.publish(report)

    def prefer_to_leave(self, reason: str) -> None:
        """Give the units of this node to others, if there are any."""
        self._leave.prefer(reason)
        self._early.set()

    def settle(self, settled: FinishedRequest) -> None:
        """Let everybody know what became of a wish, in a turn at once."""
        self._asked.settle(settled)
        self._early.set()

    def _run(self) -> None:
        member_state: MemberState | None = None
        while member_state is None or not member_state.left:
            if member_state is not None:
                self._early.wait(member_state.next_turn_seconds)
            self._early.clear()
            try:
                member_state = self._turn(member_state)
            except Exception as error:  # noqa: BLE001 - the edge of a thread
                self._inbox.put(MembershipEnded(as_polynya(error)))
                return

    def _turn(self, before: MemberState | None) -> MemberState:
        if before is not None:
            self._leave(before)
        asked, seen = self._asked(), self._seen
        picture = self._gossip.picture() if self._gossip is not None else Picture()
        fenced = _unresolved(seen.fenced, before)
        loads = {**picture.loads(), **seen.loads}
        member_state = self._member.turn(replace(seen, loads=loads, fenced=fenced))
        asked = self._asked.confirmed(asked, member_state.grants)
        self._inbox.put(TurnTaken(member_state, asked, picture))
        self._hint(member_state)
        if self._watcher is not None:
            self._watcher(member_state, self._report, picture)
        return member_state

    def _hint(self, member_state: MemberState) -> None:
        if member_state.state is None:
            return
        if self._gossip is None or self._known_as != member_state.incarnation:
            # A new incarnation after its lease was lost: the sender of the former one stops.
            if self._gossip is not None:
                self._gossip.stop()
            self._gossip = self._opened(member_state.incarnation, self._early.set)
            self._known_as = member_state.incarnation
        done = {one.what for one in member_state.actions}
        if "released" in done:
            self._gossip.hint("released")
        if "planned" in done:
            self._gossip.hint("planned")


def _unresolved(
    fenced: Mapping[JobKey, int], member_state: MemberState | None
) -> Mapping[JobKey, int]:
    """The fenced units without the ones that have a higher epoch already.

    The agent reports a fence until it has learned of that epoch, so that an answer that fails is
    asked for again.
    """
    grants = member_state.grants if member_state is not None else {}
    return {unit: epoch for unit, epoch in fenced.items() if grants.get(unit, epoch) <= epoch}


def _is_urgent(before: NodeFacts, seen: NodeFacts) -> bool:
    """Whether others wait for what a member would do about this."""
    return (
        seen.draining != before.draining
        or any(before.fenced.get(unit) != epoch for unit, epoch in seen.fenced.items())
        or (seen.wanted is None) != (before.wanted is None)
        or bool(before.working - seen.working)
    )


T = TypeVar("T")

#: Who asks for the drain of a node that AWS recommends to leave.
BY_AWS: Final = "AWS"
#: Most requests of one turn at a time.
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """How a node takes part.

    Attributes:
        place: the coordination place, a folder or `s3://BUCKET/PREFIX`.
        cluster: its name.
        node: id of this node.
        stream: the workload stream, None when nodes do not gossip.
        on_demand: AWS does not take this machine back.
    """

    place: str
    cluster: str
    node: str
    stream: str | None
    on_demand: bool


def join(
    sharing: MembershipSettings, access: AwsAccess, inbox: Inbox, tell: EventSink
) -> ClusterMembership:
    """Begin to take turns; what comes of them goes to the inbox.

    Raises:
        ConfigError: a place or a stream that cannot be.
    """
    clock, source = BootClock(), random.SystemRandom()
    store = coordination_store(sharing.place, access)
    me = NodeIdentity(sharing.node, sharing.on_demand, float(os.cpu_count() or 1), __version__)
    member = Member(
        store,
        sharing.cluster,
        me,
        partial(propose, rules=PlacementRules()),
        clock=clock,
        random=source,
        together=_InThreads(),
    )
    document_store = DocumentStore(store, sharing.cluster, source)
    thread = MemberThread(
        member,
        lambda incarnation, wake: _gossip(sharing, incarnation, access, clock, wake),
        WorkRequests(document_store, sharing.node, clock),
        Leaving(Requests(document_store, BY_AWS, clock.now), sharing.node),
        inbox,
        watcher=LeaderReportWriter(document_store, clock, stream=sharing.stream is not None),
    )
    thread.start()
    return ClusterMembership(sharing.node, thread, tell, clock.monotonic)


def _gossip(
    sharing: MembershipSettings,
    incarnation: str,
    access: AwsAccess,
    clock: BootClock,
    wake: Callable[[], None],
) -> Gossip:
    if sharing.stream is None:
        return NoGossip()
    sender = Sender(sharing.cluster, sharing.node, incarnation)
    stream = stream_at(sharing.stream, access, clock)
    gossip = StreamGossip(sender, stream, clock=clock, draw=random.random, wake=wake)
    gossip.start()
    return gossip


class _InThreads:
    """Does several requests at the same time; see `Together`."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="coordination")

    def __call__(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        if len(calls) == 1:
            return [calls[0]()]
        return list(self._pool.map(lambda call: call(), calls))
