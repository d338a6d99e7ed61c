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

from typing_extensions import override

from polynya import __version__
from polynya.cluster.control.interruptions import InterruptionLog
from polynya.cluster.control.leader_document import LeaderDocumentWriter
from polynya.cluster.control.leader_report import LeaderReportWriter
from polynya.cluster.control.own_landing import LANDING, OwnLanding
from polynya.cluster.control.requests import (
    FinishedRequest,
    Leaving,
    PendingRequests,
    Requests,
    WorkRequests,
    coordination_store,
)
from polynya.cluster.control.watch_list import SOURCES, WRITE_SECONDS, WatchList
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import (
    MemberState,
    NodeFacts,
    NodeIdentity,
    Together,
)
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.gossip.messages import NodeReport, Picture, Sender
from polynya.cluster.gossip.stream import Gossip, NoGossip, StreamGossip
from polynya.cluster.membership import ClusterMembership
from polynya.cluster.messages import (
    DrainRequested,
    HintReceived,
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

    def failed(error: PolynyaError) -> None:
        inbox.put(Noticed(SpotNoticesUnreadable(subject=node, error=error)))

    SpotWatcher(imds, advised, failed).start()


class Turns(Protocol):
    """A member of a cluster."""

    def turn(self, facts: NodeFacts) -> MemberState:
        """Take one turn. Raises PolynyaError when there can be no other."""
        ...


class RequestReader(Protocol):
    """The requests of operators for tasks and their units."""

    def __call__(self) -> PendingRequests:
        """The requests that are pending now."""
        ...

    def confirmed(self, requests: PendingRequests, grants: Mapping[JobKey, int]) -> PendingRequests:
        """The requests that are still pending for these units of this node."""
        ...

    def settle(self, finished: FinishedRequest) -> None:
        """Publish the outcome of a request."""
        ...


class Leave(Protocol):
    """Gives the work of this node to others, if there are any and AWS recommends it."""

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
        opened: starts gossip once the incarnation is known; its second argument wakes the member.
        requests: reads the requests of operators.
        leave: called before each turn but the first.
        inbox: takes what comes of each turn.
        watcher: gets the reports of this node and of the others after each turn.
        own_landing: writes which objects are for the tasks of this cluster.
        watch_list: writes what may wait for it elsewhere.
        interruptions: takes why this node drains, in each turn in which it does.
    """

    def __init__(
        self,
        member: Turns,
        opened: Callable[[str, Callable[[], None]], Gossip],
        requests: RequestReader,
        leave: Leave,
        inbox: Inbox,
        *,
        watcher: Watcher | None = None,
        own_landing: LeaderDocumentWriter[OwnLanding] | None = None,
        watch_list: LeaderDocumentWriter[WatchList] | None = None,
        interruptions: Callable[[str], None] | None = None,
    ) -> None:
        self._interruptions = interruptions
        self._watcher, self._own_landing, self._watch_list = watcher, own_landing, watch_list
        self._report: NodeReport | None = None
        self._member, self._opened, self._inbox = member, opened, inbox
        self._requests, self._leave = requests, leave
        self._gossip: Gossip | None = None
        self._known_as = ""
        self._facts = NodeFacts(wanted=None)
        self._early = threading.Event()

    def start(self) -> None:
        """Start the thread. A process that must end does not wait for it."""
        threading.Thread(target=self._run, name="member", daemon=True).start()

    def see(self, facts: NodeFacts) -> None:
        """Take these facts for the next turns; the next one is taken at once when it matters."""
        before, self._facts = self._facts, facts
        if _is_urgent(before, facts):
            self._early.set()

    def publish(self, report: NodeReport) -> None:
        """Send this report to the other nodes."""
        self._report = report
        if self._gossip is not None:
            self._gossip.publish(report)

    def know_landing(self, landing: OwnLanding | None) -> None:
        """While this node leads, these objects are for the tasks of the cluster."""
        if self._own_landing is not None:
            self._own_landing.know(landing)

    def know_sources(self, sources: WatchList) -> None:
        """While this node leads, this may wait for the cluster outside of its buckets."""
        if self._watch_list is not None:
            self._watch_list.know(sources)

    def prefer_to_leave(self, reason: str) -> None:
        """Give the units of this node to others, if there are any."""
        self._leave.prefer(reason)
        self._early.set()

    def settle(self, finished: FinishedRequest) -> None:
        """Publish the outcome of a request, in a turn at once."""
        self._requests.settle(finished)
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
        requests, facts = self._requests(), self._facts
        picture = self._gossip.picture() if self._gossip is not None else Picture()
        fenced = _unresolved(facts.fenced, before)
        if facts.leaving and self._interruptions is not None:
            self._interruptions(facts.leaving)
        loads = {**picture.loads(), **facts.loads}
        member_state = self._member.turn(replace(facts, loads=loads, fenced=fenced))
        requests = self._requests.confirmed(requests, member_state.grants)
        self._inbox.put(TurnTaken(member_state, requests, picture))
        self._hint(member_state)
        if self._watcher is not None:
            self._watcher(member_state, self._report, picture)
        if self._own_landing is not None:
            self._own_landing(member_state)
        if self._watch_list is not None:
            self._watch_list(member_state)
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
        done = {action.what for action in member_state.actions}
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


def _is_urgent(before: NodeFacts, facts: NodeFacts) -> bool:
    """Whether others wait for what a member would do about this."""
    return (
        facts.draining != before.draining
        or any(before.fenced.get(unit) != epoch for unit, epoch in facts.fenced.items())
        or (facts.wanted is None) != (before.wanted is None)
        or bool(before.working - facts.working)
    )


T = TypeVar("T")

#: The author of the drain of a node that AWS recommends to leave.
AWS_AUTHOR: Final = "AWS"
#: Most requests of one turn at a time.
_REQUEST_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """How a node is a member of its cluster.

    Attributes:
        place: the coordination place, a folder or `s3://BUCKET/PREFIX`.
        cluster: its name.
        node: id of this node.
        stream: the workload stream, None when nodes do not gossip.
        on_demand: AWS does not take this machine back.
        machine, zone: type and zone of its instance, "" outside of EC2.
    """

    place: str
    cluster: str
    node: str
    stream: str | None
    on_demand: bool
    machine: str = ""
    zone: str = ""


def join(
    settings: MembershipSettings, access: AwsAccess, inbox: Inbox, tell: EventSink
) -> ClusterMembership:
    """Start the turns of this node; their results go to the inbox.

    Raises:
        ConfigError: a place or a stream that cannot be.
    """
    clock, source = BootClock(), random.SystemRandom()
    store = coordination_store(settings.place, access)
    me = NodeIdentity(
        settings.node,
        settings.on_demand,
        float(os.cpu_count() or 1),
        __version__,
        settings.machine,
        settings.zone,
    )
    member = Member(
        store,
        settings.cluster,
        me,
        partial(propose, rules=PlacementRules()),
        clock=clock,
        random=source,
        together=_InThreads(),
    )
    document_store = DocumentStore(store, settings.cluster, source)
    thread = MemberThread(
        member,
        partial(_gossip, settings, access, clock, inbox=inbox),
        WorkRequests(document_store, settings.node, clock),
        Leaving(Requests(document_store, AWS_AUTHOR, clock.now), settings.node),
        inbox,
        watcher=LeaderReportWriter(document_store, clock, stream=settings.stream is not None),
        own_landing=LeaderDocumentWriter(document_store, clock, OwnLanding, LANDING),
        watch_list=LeaderDocumentWriter(
            document_store, clock, WatchList, SOURCES, every_seconds=WRITE_SECONDS
        ),
        interruptions=InterruptionLog(document_store, me, clock.now),
    )
    thread.start()
    return ClusterMembership(settings.node, thread, tell, clock.monotonic)


def _gossip(
    settings: MembershipSettings,
    access: AwsAccess,
    clock: BootClock,
    incarnation: str,
    wake: Callable[[], None],
    *,
    inbox: Inbox,
) -> Gossip:
    if settings.stream is None:
        return NoGossip()
    sender = Sender(settings.cluster, settings.node, incarnation)
    stream = stream_at(settings.stream, access, clock)
    gossip = StreamGossip(
        sender,
        stream,
        clock=clock,
        draw=random.random,
        wake=wake,
        landed=lambda starts: inbox.put(HintReceived(starts)),
    )
    gossip.start()
    return gossip


class _InThreads(Together):
    """Several requests to the store at the same time, in threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_REQUEST_THREADS, thread_name_prefix="coordination")

    @override
    def __call__(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        if len(calls) == 1:
            return [calls[0]()]
        return list(self._pool.map(lambda call: call(), calls))
