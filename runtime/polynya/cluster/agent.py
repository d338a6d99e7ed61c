"""The agent of one node: it runs the tasks of the configuration, reports, drains and ends.

One thread owns all state. It takes a message, acts on it and waits for the next one; other threads
only send messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from queue import Empty
from typing import Any, Final, TypeAlias

from polynya.cluster.configuration import Acceptance, ActiveConfiguration, Watch
from polynya.cluster.control.own_landing import own_landing
from polynya.cluster.control.reading import AGENT_STATE_FILE
from polynya.cluster.control.watch_list import WatchList, watch_list
from polynya.cluster.gossip.messages import NodeReport, UnitReport
from polynya.cluster.gossip.stream import Gossip
from polynya.cluster.jobs import AgentJob, JobSupervisor
from polynya.cluster.membership import ClusterMembership, LoadMeter
from polynya.cluster.messages import (
    ConfigurationRead,
    DrainRequested,
    HintReceived,
    Inbox,
    JarsFetched,
    JobObserved,
    LeaveAdvised,
    MembershipEnded,
    Message,
    Noticed,
    RunEnded,
    TurnTaken,
    Workers,
)
from polynya.cluster.report import AgentFacts, Node, node_report
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import CaptureFigures, ReadPosition
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.observe.cluster import (
    AgentDraining,
    AgentReady,
    AgentStarted,
    AgentStopped,
    ReportFailed,
)
from polynya.observe.events import Event, EventSink
from polynya.store.clock import Clock
from polynya.store.object_store import LocalObjectStore


class AgentEnd(Enum):
    """How an agent ended; after RESTART its process has to start again."""

    DRAINED = auto()
    CUT_OFF = auto()
    RESTART = auto()


@dataclass(slots=True)
class _Drain:
    reason: str
    then: AgentEnd
    since: float
    within: float


class Ending:
    """The end of one agent.

    Args:
        node: its name.
        within_seconds: longest time that it may take, unless a shorter one is requested.
        clock: of its deadline.
        tell: takes what happens.
        for_good: called when the agent is going to end and not to start again.
    """

    def __init__(
        self,
        node: str,
        within_seconds: float,
        clock: Clock,
        tell: EventSink,
        for_good: Callable[[], None],
    ) -> None:
        self._node, self._within_seconds, self._clock = node, within_seconds, clock
        self._tell, self._for_good = tell, for_good
        self._drain: _Drain | None = None
        #: Why the agent could not continue, None when it was asked to end.
        self.failure: PolynyaError | None = None

    @property
    def begun(self) -> bool:
        """Whether the agent starts nothing more."""
        return self._drain is not None

    @property
    def reason(self) -> str:
        """Why the agent ends; empty while it does not."""
        return "" if self._drain is None else self._drain.reason

    def begin(self, reason: str, then: AgentEnd, within_seconds: float | None = None) -> None:
        """Begin to end. The first of several reasons is reported; the nearest deadline counts."""
        if then is AgentEnd.DRAINED:
            self._for_good()
        now, within = self._clock.monotonic(), self._within_seconds
        if within_seconds is not None:
            within = min(within, within_seconds)
        if self._drain is None:
            self._drain = _Drain(reason, then, now, within)
            self._tell(AgentDraining(subject=self._node, reason=reason, within_seconds=within))
            return
        self._drain.within = min(self._drain.within, now - self._drain.since + within)
        if then is AgentEnd.DRAINED:
            # An agent that was told to end does not start again.
            self._drain.then = then

    def fail(self, error: PolynyaError) -> None:
        """Begin to end because the agent cannot continue."""
        self.failure = self.failure or error
        self.begin(str(error), AgentEnd.DRAINED)

    def come(self, at_work: Sequence[str], *, handing_over: bool) -> AgentEnd | None:
        """How the agent has ended, None while it runs.

        Args:
            at_work: names of the jobs that work.
            handing_over: other nodes still wait for this one to release its units.
        """
        drain, now = self._drain, self._clock.monotonic()
        if drain is None:
            return None
        waits = bool(at_work) or (handing_over and self.failure is None)
        if waits and now - drain.since < drain.within:
            return None
        self._tell(
            AgentStopped(
                subject=self._node,
                reason=drain.reason,
                seconds=round(now - drain.since, 3),
                cut_off=tuple(sorted(at_work)),
            )
        )
        return AgentEnd.CUT_OFF if at_work and drain.then is AgentEnd.DRAINED else drain.then


Encode: TypeAlias = Callable[[object], str]
"""A value as one line of JSON."""


class Outlets:
    """All places that take the reports of a node; what they return is what went wrong."""

    def __init__(self, places: Iterable[Callable[[Mapping[str, Any]], str | None]]) -> None:
        # As it is at each report: some are only known when the engine runs.
        self._places = places
        self._wrong: dict[int, str] = {}

    def put(self, report: Mapping[str, Any]) -> list[str]:
        """Give it to all; returns new troubles."""
        news = []
        for number, put in enumerate(self._places):
            wrong = put(report) or ""
            if wrong and wrong != self._wrong.get(number):
                news.append(wrong)
            self._wrong[number] = wrong
        return news


class StateFile:
    """The newest report, in the work folder; whole at every moment."""

    def __init__(self, folder: LocalObjectStore, encode: Encode) -> None:
        self._folder, self._encode = folder, encode

    def put(self, report: Mapping[str, object]) -> str | None:
        """Write it; returns what was wrong, if anything."""
        try:
            self._folder.put(AGENT_STATE_FILE, self._encode(report).encode())
        except OSError as error:
            return f"{AGENT_STATE_FILE}: {error.strerror}"
        return None


class HeartbeatOutlet:
    """The heart of a report on the workload stream, for a node that shares nothing.

    `now` is in monotonic seconds.
    """

    def __init__(self, gossip: Gossip, now: Callable[[], float]) -> None:
        self._gossip, self._now = gossip, now
        self._loads = LoadMeter()

    def put(self, report: Mapping[str, Any]) -> str | None:
        """Tell it; returns what was wrong with the last one, if anything."""
        jobs = {
            JobKey(task, name): job
            for task, one in report["tasks"].items()
            for name, job in one["jobs"].items()
        }
        totals = {key: job["busy_seconds"] for key, job in jobs.items()}
        loads = self._loads.measured(totals, self._now())
        units = (
            UnitReport(
                unit=key,
                epoch=0,
                load=loads.get(key, 0.0),
                lag_seconds=job["lag_seconds"],
                backlog_seconds=job["backlog"]["seconds"],
                state=job["state"],
                reason=job["reason"] if job["state"] in ("waiting", "suspended") else "",
            )
            for key, job in jobs.items()
        )
        self._gossip.publish(NodeReport(report["state"], tuple(units)))
        trouble = self._gossip.picture().trouble
        return f"workload stream: {trouble}" if trouble is not None else None


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """What an agent reaches the world by.

    Attributes:
        read: begins to read the configuration, which ends with a ConfigurationRead.
        workers: starts the engine for a project.
        tell: takes what happens.
        reports: take the report; what they return is what went wrong.
        alive: called in every turn.
        ready: called when the first good configuration is in force.
        draining: called when the agent is going to end for good.
        draw: numbers in [0, 1) that spread pauses.
        fetch_jars: begins to fetch the jars of a project, which ends with a JarsFetched.
        join: makes this node a member of its cluster; None where nodes share nothing.
        configured: called with each project that is in force from now on.
        due: the next moments at which the cluster has work besides its tasks, by what it is.
    """

    read: Callable[[], None]
    workers: Callable[[LoadedProject], Workers]
    tell: EventSink
    reports: Iterable[Callable[[Mapping[str, Any]], str | None]]
    alive: Callable[[], None]
    ready: Callable[[], None]
    draining: Callable[[], None]
    draw: Callable[[], float]
    fetch_jars: Callable[[LoadedProject], object]
    join: Callable[[LoadedProject], ClusterMembership] | None = None
    configured: Callable[[LoadedProject], None] = lambda _: None
    due: Callable[[datetime], Mapping[str, datetime]] = lambda _: {}


@dataclass(slots=True)
class Lacking:
    """Which jars of landings the driver was started without."""

    _has: frozenset[str] = frozenset()
    _wants: frozenset[str] = frozenset()

    @property
    def any(self) -> bool:
        """Whether the configuration in force needs one of them."""
        return not self._wants <= self._has

    def started(self, groups: frozenset[str]) -> None:
        """The driver was started with these."""
        self._has = self._wants = groups

    def asked(self, groups: frozenset[str]) -> bool:
        """Another configuration needs these; returns whether some must be fetched."""
        before, self._wants = self._wants, groups
        return self.any and groups != before


@dataclass(frozen=True, slots=True)
class AgentPace:
    """How often, in seconds, and how long a drain may take."""

    poll: float = 10.0
    report: float = 10.0
    drain: float = 90.0


#: Longest wait for a message, in seconds.
_PATIENCE: Final = 0.5
#: News are reported at once, but not more often, in seconds.
_NEWS: Final = 1.0


class Agent:
    """The agent of one node."""

    def __init__(
        self,
        node: Node,
        acceptance: Acceptance,
        ports: AgentPorts,
        *,
        clock: Clock,
        inbox: Inbox,
        pace: AgentPace | None = None,
    ) -> None:
        self._node, self._ports, self._clock, self._inbox = node, ports, clock, inbox
        self._pace = pace or AgentPace()
        self._watch = Watch(node.id, acceptance, ports.read, self._tell, self._pace.poll)
        self._workers: Workers | None = None
        self._supervisor: JobSupervisor | None = None
        self._works_for: ResolvedTarget | None = None
        self._lacks = Lacking()
        self._membership: ClusterMembership | None = None
        self._ending = Ending(node.id, self._pace.drain, clock, self._tell, ports.draining)
        self._reported_at: float | None = None
        self._news = False
        self._outlets = Outlets(ports.reports)

    def run(self) -> AgentEnd:
        """Work until told to end.

        Raises PolynyaError when this node can have no part in its cluster.
        """
        self._tell(AgentStarted(subject=self._node.id))
        ended = None
        while ended is None:
            ended = self.turn(_PATIENCE)
        if self._ending.failure is not None:
            raise self._ending.failure
        return ended

    def turn(self, patience: float) -> AgentEnd | None:
        """Take all messages, waiting up to these seconds for the first one, then act."""
        for message in self._messages(patience):
            self._take(message)
        self._ports.alive()
        now = self._clock.monotonic()
        if not self._ending.begun:
            self._watch.look(now)
        handing_over = self._act()
        at_work = [job.key.name for job in self._jobs.values() if job.running is not None]
        ended = self._ending.come(at_work, handing_over=handing_over)
        every = _NEWS if self._news else self._pace.report
        due = self._reported_at is None or now - self._reported_at >= every
        if due or ended is not None:
            self._reported_at, self._news = now, False
            self._report("stopped" if ended is not None else self._state)
        return ended

    def _act(self) -> bool:
        """Decide about all jobs; returns whether others wait for this node to release units."""
        draining, membership = self._ending.begun, self._membership
        if self._supervisor is not None:
            self._supervise(self._supervisor, membership, draining=draining)
        if membership is None:
            return False
        membership.show(
            self._jobs, state=self._state, draining=draining, leaving=self._ending.reason
        )
        return not membership.left

    def _supervise(
        self, supervisor: JobSupervisor, membership: ClusterMembership | None, *, draining: bool
    ) -> None:
        if membership is None:
            supervisor.act(draining=draining)
            return
        supervisor.ask(membership.requests())
        supervisor.act(draining=draining, rights=membership.rights(), held=membership.held)
        for one in supervisor.settled():
            membership.settle(one)

    @property
    def _jobs(self) -> Mapping[JobKey, AgentJob]:
        return {} if self._supervisor is None else self._supervisor.jobs

    @property
    def _state(self) -> str:
        if self._ending.begun:
            return "draining"
        return "starting" if self._supervisor is None else "running"

    def _messages(self, patience: float) -> Iterable[Message]:
        try:
            yield self._inbox.get(timeout=patience) if patience else self._inbox.get_nowait()
            while True:
                yield self._inbox.get_nowait()
        except Empty:
            return

    def _take(self, message: Message) -> None:
        if isinstance(message, DrainRequested):
            self._ending.begin(message.reason, AgentEnd.DRAINED, message.within_seconds)
        elif isinstance(message, ConfigurationRead):
            if not self._ending.begun and (found := self._watch.taken(message.result)) is not None:
                self._configure(found)
        elif isinstance(message, Noticed):
            self._tell(message.event)
        elif isinstance(message, JarsFetched):
            if self._lacks.any:
                self._ending.begin("a landing needs more jars than Spark has", AgentEnd.RESTART)
        elif isinstance(message, MembershipEnded):
            self._ending.fail(message.error)
        elif isinstance(message, LeaveAdvised | TurnTaken | HintReceived):
            self._take_of_cluster(message)
        elif self._supervisor is not None:
            if isinstance(message, JobObserved):
                self._ports.tell(replace(message.event, task=message.job.task))
            self._supervisor.take(message)
            failed = isinstance(message, RunEnded) and message.error is not None
            if failed and self._workers is not None and not self._workers.alive():
                self._ending.begin("the Spark driver died", AgentEnd.RESTART)

    def _take_of_cluster(self, message: LeaveAdvised | TurnTaken | HintReceived) -> None:
        if isinstance(message, HintReceived):
            if self._workers is not None:
                self._workers.landed(message.starts)
            return
        if self._membership is None or self._supervisor is None:
            return
        if isinstance(message, LeaveAdvised):
            self._membership.leave(message)
        else:
            self._supervisor.forgive(self._membership.taken(message))

    def _configure(self, found: ActiveConfiguration) -> None:
        self._ports.configured(found.project)
        if self._supervisor is None:
            self._workers = self._ports.workers(found.project)
            self._works_for = found.project.target
            self._lacks.started(found.project.stream_jars)
            self._supervisor = JobSupervisor(
                self._workers, self._clock, self._tell, self._ports.draw
            )
            if self._ports.join is not None:
                self._membership = self._ports.join(found.project)
            self._ports.ready()
            self._tell(AgentReady(subject=self._node.id, tasks=tuple(sorted(found.tasks))))
        elif found.project.target != self._works_for:
            # Catalog and jars are those with which the driver was started.
            self._ending.begin("the target changed", AgentEnd.RESTART)
            return
        elif self._lacks.asked(found.project.stream_jars):
            self._ports.fetch_jars(found.project)
        assert self._workers is not None, "an agent with a supervisor has workers"
        tasks = [one.task for one in found.tasks.values()]
        self._workers.know(None if found.errors else tasks)
        self._supervisor.configure(found.tasks)
        if self._membership is not None:
            self._membership.configured(own_landing(found.project.target.landing, tasks))

    def _report(self, state: str) -> None:
        now = self._clock.monotonic()
        jobs = list(self._jobs.values())
        facts = AgentFacts(
            node=self._node,
            at=self._clock.now(),
            state=state,
            in_force=self._watch.in_force,
            unread=self._watch.unread,
            unused=self._watch.unused,
            jobs=jobs,
            backlogs=[job.waiting(now) for job in jobs],
            streams=[job.backlog.streams(now) for job in jobs],
            captures=[job.backlog.captures(now) for job in jobs],
            mirrors=[job.backlog.mirrors(now) for job in jobs],
            sharing=self._membership.report() if self._membership is not None else None,
            busy_seconds=self._workers.busy_seconds() if self._workers is not None else 0.0,
        )
        if self._membership is not None and facts.in_force is not None:
            self._membership.watch(self._watched(facts.in_force, jobs, now))
        for wrong in self._outlets.put(node_report(facts)):
            self._tell(ReportFailed(subject=self._node.id, message=wrong))

    def _watched(
        self, in_force: ActiveConfiguration, jobs: Sequence[AgentJob], now: float
    ) -> WatchList:
        """What may wait for the cluster, for tasks that nothing keeps from working."""
        positions: dict[str, list[ReadPosition]] = {}
        captures: dict[str, CaptureFigures] = {}
        for job in jobs:
            positions.setdefault(job.key.task, []).extend(job.backlog.positions(now))
            captures |= job.backlog.captures(now)
        kept = {job.key.task for job in jobs if job.state in {"stopped", "suspended"}}
        tasks = [one.task for name, one in in_force.tasks.items() if name not in kept]
        moment = self._clock.now()
        return watch_list(tasks, positions, captures, moment, more=self._ports.due(moment))

    def _tell(self, event: Event) -> None:
        self._news = True
        self._ports.tell(event)
