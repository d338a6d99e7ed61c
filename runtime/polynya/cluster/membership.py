"""A node's membership in its cluster, as the agent's thread sees it: rights, load, idle nodes.

The member takes its turns on another thread (`member_thread.py`). It reports by messages, and
receives the facts of this node as `NodeFacts`. `rights` decides which jobs this node may run.

Each node counts the backlog of its own units. `without_owner` and `LastFigures` let the leader
count that of units without an owner, once: units of a node that died, until another node claims
them, or for as long as the cluster is frozen. No node reads the landing zone of such a unit, so the
last report of its owner counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from polynya.cluster.control.own_landing import OwnLanding
from polynya.cluster.control.requests import FinishedRequest, PendingRequest, PendingRequests
from polynya.cluster.control.watch_list import WatchList
from polynya.cluster.coordination.documents import Freeze
from polynya.cluster.coordination.member_state import (
    MemberAction,
    MemberActionKind,
    MemberState,
    NodeFacts,
    ObservedNode,
)
from polynya.cluster.gossip.messages import NodeReport, Picture, UnitReport
from polynya.cluster.messages import LeaveAdvised, TurnTaken
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import BacklogSize
from polynya.engine.scheduler import THREADS
from polynya.model.error_catalogue.cluster import TOO_MANY_NODES
from polynya.observe import cluster as events
from polynya.observe.events import Event, EventSink

#: A node whose last heartbeat is older than this may have no units any more.
_MAX_AGE_SECONDS: Final = 60.0


class JobView(Protocol):
    """A job as the membership sees it; `AgentJob` has the meaning of the attributes."""

    key: JobKey
    wanted: str | None
    running: str | None
    epoch: int | None
    fenced: int | None
    busy_seconds: float
    held: str | None

    @property
    def failures(self) -> Sequence[object]:
        """The failures since its last success."""
        ...

    @property
    def state(self) -> str:
        """Its state, in one word."""
        ...

    @property
    def reason(self) -> str:
        """Why it is in that state."""
        ...

    def waiting(self, now: float) -> BacklogSize:
        """Its backlog."""
        ...


class Peers(Protocol):
    """The way from the agent to its member and to the other nodes. No call waits."""

    def see(self, facts: NodeFacts) -> None:
        """Give the member these facts in its next turn."""
        ...

    def publish(self, report: NodeReport) -> None:
        """Send this report to the other nodes."""
        ...

    def know_landing(self, landing: OwnLanding | None) -> None:
        """While this node leads, these objects are for the tasks of the cluster."""
        ...

    def know_sources(self, sources: WatchList) -> None:
        """While this node leads, this may wait for the cluster outside of its buckets."""
        ...

    def prefer_to_leave(self, reason: str) -> None:
        """Give the units of this node to others, if there are any."""
        ...

    def settle(self, finished: FinishedRequest) -> None:
        """Publish the outcome of a request for a unit."""
        ...


class ClusterMembership:
    """What this node knows of the cluster. `tell` takes events.

    `now` is always in monotonic seconds of the member's clock.
    """

    def __init__(self, node: str, peers: Peers, tell: EventSink, now: Callable[[], float]) -> None:
        self._node, self._peers, self._tell, self._now = node, peers, tell, now
        self._member_state: MemberState | None = None
        self._requests = PendingRequests()
        self._picture = Picture()
        self._reasons: dict[JobKey, str] = {}
        self._troubles: tuple[str, ...] = ()
        self._loads = LoadMeter()
        self._figures, self._idle = LastFigures(), IdleNodes()
        self._wanted: frozenset[JobKey] = frozenset()

    @property
    def left(self) -> bool:
        """Whether all is handed over, so that the process may end."""
        return self._member_state is not None and self._member_state.left

    def configured(self, landing: OwnLanding | None) -> None:
        """These objects are for the tasks of the cluster, by the configuration in force."""
        self._peers.know_landing(landing)

    def watch(self, sources: WatchList) -> None:
        """This may wait for the cluster outside of its buckets, as far as this node has read."""
        self._peers.know_sources(sources)

    def leave(self, advice: LeaveAdvised) -> None:
        """AWS recommends to leave this instance: give the work to others, if there are any."""
        self._peers.prefer_to_leave(advice.reason)

    def taken(self, message: TurnTaken) -> frozenset[str]:
        """Take note of a turn of the member; returns tasks whose suspended jobs to retry."""
        before, self._member_state = self._member_state, message.member_state
        before_requests, self._requests = self._requests, message.requests
        self._picture = message.picture
        for peer in message.picture.nodes.values():
            self._figures.add(peer.heartbeat.units, self._now(), age_seconds=peer.age_seconds)
        for action in message.member_state.actions:
            self._remember(action)
        for event in self._news(before, message.member_state):
            self._tell(event)
        again = message.requests.resumed.items() - before_requests.resumed.items()
        return frozenset(task for task, _ in again)

    def rights(self) -> Rights:
        """Which jobs may run here now."""
        owners = {
            unit.unit: peer.heartbeat.sender.node
            for peer in self._picture.nodes.values()
            if peer.age_seconds < _MAX_AGE_SECONDS
            for unit in peer.heartbeat.units
        }
        return rights(
            self._member_state,
            self._now(),
            reasons=self._reasons,
            owners=owners,
            stopped=self._requests.stopped,
        )

    def requests(self) -> Mapping[JobKey, PendingRequest]:
        """The requests that are executed before the work of their units continues."""
        return self._requests.units

    @property
    def held(self) -> str | None:
        """Why no request is executed now; None when requests may be."""
        if self._member_state is None or not self._member_state.held:
            return None
        frozen = self._member_state.frozen is not None
        return "the cluster is frozen" if frozen else "it is unknown whether the cluster is frozen"

    def settle(self, finished: FinishedRequest) -> None:
        """Report the outcome of a request for a unit."""
        request = finished.request
        self._tell(
            events.UnitRequestEnded(
                subject=finished.unit.name,
                task=finished.unit.task,
                kind=request.command.kind,
                by=request.by,
                done=finished.done,
                outcome=finished.text,
            )
        )
        self._peers.settle(finished)

    def show(
        self, jobs: Mapping[JobKey, JobView], *, state: str, draining: bool, leaving: str = ""
    ) -> None:
        """Give the state of the jobs to the member and to the other nodes.

        `leaving` is why the node drains.
        """
        now = self._now()
        granted = self.rights().grants
        working = {key: job for key, job in jobs.items() if job.running is not None}
        # A job that may start any moment counts as working: a unit is released only after the turn
        # that revoked it has arrived here.
        able = {key for key, job in jobs.items() if key in granted and job.wanted is not None}
        loads = self._loads.measured({key: job.busy_seconds for key, job in working.items()}, now)
        self._wanted = _wanted(jobs.values(), self._requests.stopped)
        self._peers.see(
            NodeFacts(
                wanted=self._wanted,
                working=frozenset(working) if draining else frozenset(working) | able,
                draining=draining,
                leaving=leaving,
                loads=loads,
                heavy=frozenset(key for key in jobs if key.name == key.task),
                fenced={key: job.fenced for key, job in jobs.items() if job.fenced is not None},
            )
        )
        # Also units that wait after a failure: this node owns them.
        units = tuple(
            _unit_report(job, granted.get(key, job.epoch or 0), loads.get(key, 0.0), now)
            for key, job in jobs.items()
            if key in granted or key in working
        )
        self._figures.add(units, now)
        self._peers.publish(NodeReport(state, units))

    def report(self) -> dict[str, Any]:
        """The part of the node's state about its cluster."""
        member_state = self._member_state or MemberState("")
        frozen = member_state.frozen
        return {
            "incarnation": member_state.incarnation or None,
            "state": member_state.state,
            "leader": member_state.leader,
            "leading": member_state.leading,
            "frozen": None if frozen is None else _freeze(frozen),
            "units": len(member_state.grants),
            "nodes": len([node for node in member_state.nodes.values() if not node.dead]),
            "stopped_tasks": dict(sorted(self._requests.stopped.items())),
            "troubles": list(member_state.troubles),
            "stream_trouble": self._picture.trouble,
            "unowned": unowned.as_json() if (unowned := self._unowned()) is not None else None,
        }

    def _unowned(self) -> Unowned | None:
        """The backlog of units without an owner; None when another node leads or it is unknown."""
        member_state, picture = self._member_state, self._picture
        if member_state is None or not member_state.leading or picture.trouble is not None:
            return None
        me, own = member_state.incarnation, member_state.grants
        units = without_owner(self._wanted, own, picture, member_state.nodes, me)
        self._figures.keep(self._wanted)
        return self._figures.waiting(units, self._now()) if units is not None else None

    def _remember(self, action: MemberAction) -> None:
        if action.what in ("claimed", "raised", "revoked"):
            self._reasons[action.unit] = action.reason
        elif action.what in ("lost", "released"):
            self._reasons.pop(action.unit, None)

    def _news(self, before: MemberState | None, now: MemberState) -> Iterable[Event]:
        for action in now.actions:
            yield _EVENTS[action.what](
                subject=action.unit.name,
                task=action.unit.task,
                reason=action.reason,
                epoch=action.epoch,
                node=action.node,
            )
        if now.leader != (before.leader if before is not None else None):
            yield events.LeaderChanged(subject=self._node, leader=now.leader)
        was = before.frozen if before is not None else None
        if (now.frozen is None) != (was is None):
            freeze = now.frozen or was
            reason = f"{freeze.by}: {freeze.reason}" if freeze is not None else ""
            yield events.ClusterFrozen(
                subject=self._node, frozen=now.frozen is not None, reason=reason
            )
        yield from self._trouble_news(now)

    def _trouble_news(self, now: MemberState) -> Iterable[Event]:
        stream = self._picture.trouble
        idle = (
            self._idle.trouble(now.nodes, len(self._wanted), self._now()) if now.leading else None
        )
        troubles = (
            *now.troubles,
            *([f"workload stream: {stream}"] if stream else []),
            *([idle] if idle else []),
        )
        for text in troubles:
            # A trouble that lasts is reported once.
            if text not in self._troubles:
                yield events.ClusterTrouble(subject=self._node, message=text)
        if self._troubles and not troubles:
            yield events.ClusterRecovered(subject=self._node)
        self._troubles = troubles


def _wanted(jobs: Iterable[JobView], stopped: Mapping[str, str]) -> frozenset[JobKey]:
    return frozenset(
        job.key for job in jobs if job.wanted is not None and job.key.task not in stopped
    )


def _unit_report(job: JobView, epoch: int, load: float, now: float) -> UnitReport:
    waiting = job.waiting(now)
    return UnitReport(
        unit=job.key,
        epoch=epoch,
        load=load,
        lag_seconds=round(waiting.oldest_seconds, 1),
        backlog_seconds=round(waiting.node_seconds, 1),
        state=job.state,
        reason=job.reason if _waits(job) else "",
    )


def _waits(job: JobView) -> bool:
    """Whether its work waits after a failure or for a decision; not whether it starts soon."""
    after_failure = bool(job.failures) and job.state == "waiting"
    return after_failure or job.state == "suspended" or job.held is not None


_EVENTS: Final[Mapping[MemberActionKind, type[events.UnitDecided]]] = {
    "claimed": events.UnitClaimed,
    "released": events.UnitReleased,
    "revoked": events.UnitRevoked,
    "lost": events.UnitLost,
    "raised": events.UnitRaised,
    "planned": events.UnitPlanned,
    "alarm": events.UnitAlarm,
}


def _freeze(freeze: Freeze) -> dict[str, str]:
    """The author of the freeze, since when and why."""
    return {"by": freeze.by, "since": freeze.since.isoformat(), "reason": freeze.reason}


#: `elsewhere`: another node has the job, or will have; `stopped`: an operator stopped its task;
#: `waiting`: this node does not know.
Where: TypeAlias = Literal["here", "elsewhere", "stopped", "waiting"]


@dataclass(frozen=True, slots=True)
class Right:
    """Whether a job may run here: in `epoch`, or not at all (None); and why."""

    where: Where
    reason: str
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of all jobs of a node.

    Attributes:
        grants: epoch by unit.
        reasons: why a unit was given to this node, or what it waits for.
        owners: the node that has a unit, as far as the others reported.
        stopped: why a task stands still, by task.
        lapsed: why there are no grants at all, None when they hold.
    """

    grants: Mapping[JobKey, int] = field(default_factory=dict)
    reasons: Mapping[JobKey, str] = field(default_factory=dict)
    owners: Mapping[JobKey, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    lapsed: str | None = None

    def of(self, job: JobKey) -> Right:
        """The right of one job."""
        if job.task in self.stopped:
            return Right("stopped", self.stopped[job.task])
        if self.lapsed is not None:
            return Right("waiting", self.lapsed)
        reason = self.reasons.get(job)
        if job in self.grants:
            return Right("here", reason or "the cluster gave it to this node", self.grants[job])
        if job in self.owners:
            return Right("elsewhere", f"node {self.owners[job]} has it")
        return Right("elsewhere", reason or "another node has it, or will have it")


_NOT_YET: Final = "this node is not a member of the cluster yet"
_LAPSED: Final = "the lease of this node could not be renewed: others may have its units"


def rights(
    member_state: MemberState | None,
    now: float,
    *,
    reasons: Mapping[JobKey, str],
    owners: Mapping[JobKey, str],
    stopped: Mapping[str, str],
) -> Rights:
    """The rights that follow from what the member knew last; `now` in seconds of its clock.

    A node that could not renew its lease for too long must believe that others have its units.
    """
    if member_state is None or member_state.state is None:
        return Rights(stopped=stopped, lapsed=_NOT_YET)
    if now >= member_state.grants_until:
        return Rights(stopped=stopped, lapsed=_LAPSED)
    return Rights(
        grants=member_state.grants,
        reasons={**reasons, **member_state.waiting},
        owners=owners,
        stopped=stopped,
    )


#: Seconds of one measurement; shorter ones jump between 0 and 1.
_WINDOW_SECONDS: Final = 10.0
#: Age in seconds at which a measurement counts half.
_HALF_LIFE_SECONDS: Final = 60.0


class LoadMeter:
    """Measures from totals."""

    def __init__(self) -> None:
        self._totals: dict[JobKey, float] = {}
        self._loads: dict[JobKey, float] = {}
        self._at: float | None = None

    def measured(self, totals: Mapping[JobKey, float], now: float) -> Mapping[JobKey, float]:
        """The load of units by the seconds that each has worked in total, at monotonic `now`.

        A unit that is not in `totals` is forgotten.
        """
        if self._at is None:
            self._at, self._totals = now, dict(totals)
            return {}
        passed = now - self._at
        if passed < _WINDOW_SECONDS:
            return {unit: load for unit, load in self._loads.items() if unit in totals}
        kept = 0.5 ** (passed / _HALF_LIFE_SECONDS)
        loads = {}
        for unit, total in totals.items():
            figure = max(total - self._totals.get(unit, 0.0), 0.0) / passed
            loads[unit] = self._loads.get(unit, figure) * kept + figure * (1 - kept)
        self._at, self._totals, self._loads = now, dict(totals), loads
        return loads


@dataclass(frozen=True, slots=True)
class Unowned:
    """Units that no node has. `seconds` is the work in them for one node, as its own is counted."""

    units: int
    seconds: float
    oldest_seconds: float

    def as_json(self) -> dict[str, float]:
        """The figures, rounded."""
        return {
            "units": self.units,
            "seconds": round(self.seconds, 3),
            "oldest_seconds": round(self.oldest_seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class _Last:
    seconds: float
    lag_seconds: float
    at: float


class LastFigures:
    """The last report of each unit; `now` in monotonic seconds."""

    def __init__(self) -> None:
        self._last: dict[JobKey, _Last] = {}

    def add(self, units: Iterable[UnitReport], now: float, *, age_seconds: float = 0.0) -> None:
        """Take a report that was made `age_seconds` ago."""
        at = now - age_seconds
        for unit in units:
            last = self._last.get(unit.unit)
            if last is None or last.at < at:
                self._last[unit.unit] = _Last(unit.backlog_seconds, unit.lag_seconds, at)

    def keep(self, wanted: Collection[JobKey]) -> None:
        """Forget units that are no longer wanted."""
        self._last = {unit: last for unit, last in self._last.items() if unit in wanted}

    def waiting(self, units: Collection[JobKey], now: float) -> Unowned:
        """The waiting work of these units, which has waited longer since its report."""
        waiting = [
            last
            for unit in units
            if (last := self._last.get(unit)) is not None and last.lag_seconds > 0
        ]
        seconds = sum(last.seconds for last in waiting)
        return Unowned(
            units=len(units),
            seconds=seconds / min(THREADS, len(waiting) or 1),
            oldest_seconds=max((last.lag_seconds + now - last.at for last in waiting), default=0.0),
        )


def without_owner(
    wanted: Collection[JobKey],
    own: Collection[JobKey],
    picture: Picture,
    nodes: Mapping[str, ObservedNode],
    me: str,
) -> frozenset[JobKey] | None:
    """The units that no living node has; None when this node cannot know.

    It knows when every other living node reported all its units. A unit that changes its owner is
    among them until its new owner reports it, at its next heartbeat.
    """
    owned = set(own)
    for incarnation, node in nodes.items():
        if node.dead or node.state == "gone" or incarnation == me:
            continue
        peer = picture.nodes.get(incarnation)
        if peer is None or peer.heartbeat.left_out:
            return None
        owned |= {unit.unit for unit in peer.heartbeat.units}
    return frozenset(wanted) - owned


#: Replaced nodes and their replacements run at the same time for some minutes.
_IDLE_SECONDS: Final = 900.0


class IdleNodes:
    """Finds out whether a cluster has had too many nodes for long."""

    def __init__(self) -> None:
        self._since: float | None = None

    def trouble(self, nodes: Mapping[str, ObservedNode], units: int, now: float) -> str | None:
        """The trouble of `units` of work for these nodes at monotonic `now`, None without one."""
        ready = sum(
            not node.dead and node.state == "ready" and node.drained_by is None
            for node in nodes.values()
        )
        if ready <= max(units, 1):
            self._since = None
            return None
        if self._since is None:
            self._since = now
        if now - self._since < _IDLE_SECONDS:
            return None
        error = TOO_MANY_NODES(units=units, nodes=ready)
        return f"{error.code}: {error}"
