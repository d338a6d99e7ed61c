"""The agent of one node: keeps the tasks of the configuration in force running, reports, drains.

One thread owns all state. It takes messages, acts, and waits for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from queue import Empty
from typing import Any, Final

from polynya.cluster.accept import Acceptance, InForce
from polynya.cluster.messages import (
    ConfigurationRead,
    DrainAsked,
    Inbox,
    Message,
    Observed,
    RunEnded,
    Workers,
)
from polynya.cluster.report import Facts, Node, node_report
from polynya.cluster.supervisor import Supervisor
from polynya.cluster.watch import Watch
from polynya.model.config.target import ResolvedTarget
from polynya.model.reading.loader import LoadedProject
from polynya.observe.events import Event, EventSink
from polynya.observe.node import (
    AgentDraining,
    AgentReady,
    AgentStarted,
    AgentStopped,
    ReportFailed,
)
from polynya.store.clock import Clock


class Ended(Enum):
    """How an agent ended; after RESTART its process has to start again."""

    DRAINED = auto()
    CUT_OFF = auto()
    RESTART = auto()


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, in seconds, and how long a drain may take."""

    poll: float = 10.0
    report: float = 10.0
    drain: float = 90.0


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
    """

    read: Callable[[], None]
    workers: Callable[[LoadedProject], Workers]
    tell: EventSink
    reports: Iterable[Callable[[Mapping[str, Any]], str | None]]
    alive: Callable[[], None]
    ready: Callable[[], None]
    draining: Callable[[], None]
    draw: Callable[[], float]


@dataclass(slots=True)
class _Drain:
    reason: str
    then: Ended
    since: float


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
        self._drain: _Drain | None = None
        self._reported_at: float | None = None
        self._news = False
        self._wrong: dict[int, str] = {}

    def run(self) -> Ended:
        """Work until told to end."""
        self._tell(AgentStarted(subject=self._node.id))
        ended = None
        while ended is None:
            ended = self.turn(_PATIENCE)
        return ended

    def turn(self, patience: float) -> Ended | None:
        """Take what there is to take, waiting so many seconds for the first of it, then act."""
        for message in self._messages(patience):
            self._take(message)
        self._ports.alive()
        now = self._clock.monotonic()
        if self._drain is None:
            self._watch.look(now)
        if self._supervisor is not None:
            self._supervisor.act(draining=self._drain is not None)
        ended = self._ended(now)
        every = _NEWS if self._news else self._pace.report
        due = self._reported_at is None or now - self._reported_at >= every
        if due or ended is not None:
            self._reported_at, self._news = now, False
            self._report("stopped" if ended is not None else self._state)
        return ended

    @property
    def _state(self) -> str:
        if self._drain is not None:
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
            self._begin_drain(message.reason, Ended.DRAINED)
        elif isinstance(message, ConfigurationRead):
            if self._drain is None and (found := self._watch.taken(message.result)) is not None:
                self._configure(found)
        elif self._supervisor is not None:
            if isinstance(message, Observed):
                self._ports.tell(replace(message.event, task=message.job.task))
            self._supervisor.take(message)
            failed = isinstance(message, RunEnded) and message.error is not None
            if failed and self._workers is not None and not self._workers.alive():
                self._begin_drain("the Spark driver died", Ended.RESTART)

    def _configure(self, found: InForce) -> None:
        if self._supervisor is None:
            self._workers = self._ports.workers(found.project)
            self._works_for = found.project.target
            self._supervisor = Supervisor(self._workers, self._clock, self._tell, self._ports.draw)
            self._ports.ready()
            self._tell(AgentReady(subject=self._node.id, tasks=tuple(sorted(found.tasks))))
        elif found.project.target != self._works_for:
            # Catalog and jars are those with which the driver was started.
            self._begin_drain("the target changed", Ended.RESTART)
            return
        self._supervisor.configure(found.tasks)

    def _begin_drain(self, reason: str, then: Ended) -> None:
        if then is Ended.DRAINED:
            self._ports.draining()
        if self._drain is not None:
            # An agent that was told to end does not start again.
            self._drain.then = then if then is Ended.DRAINED else self._drain.then
            return
        self._drain = _Drain(reason, then, self._clock.monotonic())
        within = self._pace.drain
        self._tell(AgentDraining(subject=self._node.id, reason=reason, within_seconds=within))

    def _ended(self, now: float) -> Ended | None:
        drain, supervisor = self._drain, self._supervisor
        if drain is None:
            return None
        busy = supervisor is not None and not supervisor.idle
        if busy and now - drain.since < self._pace.drain:
            return None
        jobs = supervisor.jobs.values() if supervisor is not None else ()
        cut_off = tuple(sorted(job.key.name for job in jobs if job.running is not None))
        self._tell(
            AgentStopped(
                subject=self._node.id,
                reason=drain.reason,
                seconds=round(now - drain.since, 3),
                cut_off=cut_off,
            )
        )
        return Ended.CUT_OFF if cut_off and drain.then is Ended.DRAINED else drain.then

    def _report(self, state: str) -> None:
        now = self._clock.monotonic()
        jobs = [] if self._supervisor is None else list(self._supervisor.jobs.values())
        facts = Facts(
            node=self._node,
            at=self._clock.now(),
            state=state,
            in_force=self._watch.in_force,
            unread=self._watch.unread,
            unused=self._watch.unused,
            jobs=jobs,
            backlogs=[job.waiting(now) for job in jobs],
        )
        report = node_report(facts)
        for number, put in enumerate(self._ports.reports):
            wrong = put(report) or ""
            # What lasts is said once.
            if wrong and wrong != self._wrong.get(number):
                self._tell(ReportFailed(subject=self._node.id, message=wrong))
            self._wrong[number] = wrong

    def _tell(self, event: Event) -> None:
        self._news = True
        self._ports.tell(event)
