"""The agent of one node: keeps the tasks of the configuration in force running, reports, drains.

One thread owns all state. It takes messages, acts, and waits for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from queue import Empty
from typing import Any, Final

from polynya.cluster.configuration.accept import Acceptance, InForce
from polynya.cluster.configuration.watch import Watch
from polynya.cluster.ending import Ended, Ending
from polynya.cluster.jobs import Job
from polynya.cluster.messages import (
    ConfigurationRead,
    DrainAsked,
    Inbox,
    JarsFetched,
    LeaveAdvised,
    Message,
    Noticed,
    Observed,
    RunEnded,
    SharingEnded,
    TurnTaken,
    Workers,
)
from polynya.cluster.outlets import Outlets
from polynya.cluster.report import Facts, Node, node_report
from polynya.cluster.sharing.part import Part
from polynya.cluster.supervisor import Supervisor
from polynya.cluster.unit import JobKey
from polynya.model.config.target import ResolvedTarget
from polynya.model.reading.loader import LoadedProject
from polynya.observe.events import Event, EventSink
from polynya.observe.node import AgentReady, AgentStarted, ReportFailed
from polynya.store.clock import Clock


@dataclass(frozen=True, slots=True)
class Ports:
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
    join: Callable[[LoadedProject], Part] | None = None


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
        """Another configuration needs these; returns whether some of them are to be fetched."""
        before, self._wants = self._wants, groups
        return self.any and groups != before


@dataclass(frozen=True, slots=True)
class Pace:
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
        ports: Ports,
        *,
        clock: Clock,
        inbox: Inbox,
        pace: Pace | None = None,
    ) -> None:
        self._node, self._ports, self._clock, self._inbox = node, ports, clock, inbox
        self._pace = pace or Pace()
        self._watch = Watch(node.id, acceptance, ports.read, self._tell, self._pace.poll)
        self._workers: Workers | None = None
        self._supervisor: Supervisor | None = None
        self._works_for: ResolvedTarget | None = None
        self._lacks = Lacking()
        self._part: Part | None = None
        self._ending = Ending(node.id, self._pace.drain, clock, self._tell, ports.draining)
        self._reported_at: float | None = None
        self._news = False
        self._outlets = Outlets(ports.reports)

    def run(self) -> Ended:
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

    def turn(self, patience: float) -> Ended | None:
        """Take what there is to take, waiting so many seconds for the first of it, then act."""
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
        draining, part = self._ending.begun, self._part
        if self._supervisor is not None:
            self._supervise(self._supervisor, part, draining=draining)
        if part is None:
            return False
        part.show(self._jobs, state=self._state, draining=draining)
        return not part.left

    def _supervise(self, supervisor: Supervisor, part: Part | None, *, draining: bool) -> None:
        if part is None:
            supervisor.act(draining=draining)
            return
        supervisor.ask(part.asked())
        supervisor.act(draining=draining, rights=part.rights(), held=part.held)
        for one in supervisor.settled():
            part.settle(one)

    @property
    def _jobs(self) -> Mapping[JobKey, Job]:
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
        if isinstance(message, DrainAsked):
            self._ending.begin(message.reason, Ended.DRAINED, message.within_seconds)
        elif isinstance(message, ConfigurationRead):
            if not self._ending.begun and (found := self._watch.taken(message.result)) is not None:
                self._configure(found)
        elif isinstance(message, Noticed):
            self._tell(message.event)
        elif isinstance(message, JarsFetched):
            if self._lacks.any:
                self._ending.begin("a landing needs more jars than Spark has", Ended.RESTART)
        elif isinstance(message, SharingEnded):
            self._ending.fail(message.error)
        elif isinstance(message, LeaveAdvised | TurnTaken):
            self._take_of_cluster(message)
        elif self._supervisor is not None:
            if isinstance(message, Observed):
                self._ports.tell(replace(message.event, task=message.job.task))
            self._supervisor.take(message)
            failed = isinstance(message, RunEnded) and message.error is not None
            if failed and self._workers is not None and not self._workers.alive():
                self._ending.begin("the Spark driver died", Ended.RESTART)

    def _take_of_cluster(self, message: LeaveAdvised | TurnTaken) -> None:
        if self._part is None or self._supervisor is None:
            return
        if isinstance(message, LeaveAdvised):
            self._part.leave(message)
        else:
            self._supervisor.forgive(self._part.taken(message))

    def _configure(self, found: InForce) -> None:
        if self._supervisor is None:
            self._workers = self._ports.workers(found.project)
            self._works_for = found.project.target
            self._lacks.started(found.project.stream_jars)
            self._supervisor = Supervisor(self._workers, self._clock, self._tell, self._ports.draw)
            if self._ports.join is not None:
                self._part = self._ports.join(found.project)
            self._ports.ready()
            self._tell(AgentReady(subject=self._node.id, tasks=tuple(sorted(found.tasks))))
        elif found.project.target != self._works_for:
            # Catalog and jars are those with which the driver was started.
            self._ending.begin("the target changed", Ended.RESTART)
            return
        elif self._lacks.asked(found.project.stream_jars):
            self._ports.fetch_jars(found.project)
        assert self._workers is not None, "an agent with a supervisor has workers"
        tasks = [one.task for one in found.tasks.values()]
        self._workers.know(None if found.errors else tasks)
        self._supervisor.configure(found.tasks)

    def _report(self, state: str) -> None:
        now = self._clock.monotonic()
        jobs = list(self._jobs.values())
        facts = Facts(
            node=self._node,
            at=self._clock.now(),
            state=state,
            in_force=self._watch.in_force,
            unread=self._watch.unread,
            unused=self._watch.unused,
            jobs=jobs,
            backlogs=[job.waiting(now) for job in jobs],
            streams=[job.backlog.streams(now) for job in jobs],
            sharing=self._part.report() if self._part is not None else None,
            busy_seconds=self._workers.busy_seconds() if self._workers is not None else 0.0,
        )
        for wrong in self._outlets.put(node_report(facts)):
            self._tell(ReportFailed(subject=self._node.id, message=wrong))

    def _tell(self, event: Event) -> None:
        self._news = True
        self._ports.tell(event)
