"""A process of an agent: the real member, and around it what the agent does with its grants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from polynya.cluster.control.requests import PendingRequest, UnitRequests
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import MemberState, NodeFacts, NodeIdentity
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.placement import (
    PlacementNode,
    PlacementProposal,
    PlacementRules,
    PlacementUnit,
    propose,
)
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from tests.cluster.simulation.errands import Errands
from tests.cluster.simulation.parts.faults import StoreFaults
from tests.cluster.simulation.parts.machine import Machine, MachineClock
from tests.cluster.simulation.parts.store import Objects, StoreLine
from tests.cluster.simulation.parts.stream import Stream
from tests.cluster.simulation.parts.world import Process, World
from tests.cluster.simulation.voice import Voice
from tests.cluster.simulation.work import Feed, Job

CLUSTER = "c"


class Watching(Protocol):
    """What an oracle wants to know of an agent."""

    def began_turn(self, agent: Agent) -> None:
        """A turn begins."""

    def knows(self, agent: Agent, member_state: MemberState) -> None:
        """A turn ended with this."""

    def begins_step(self, agent: Agent, job: Job) -> None:
        """A job begins a batch."""

    def begins_errand(self, agent: Agent, unit: JobKey, asked: PendingRequest) -> None:
        """An agent begins what a person asked of a unit."""

    def ended_job(self, agent: Agent, job: Job) -> None:
        """A job is over."""


@dataclass(frozen=True, slots=True)
class Place:
    """What all agents of a run share."""

    world: World
    objects: Objects
    faults: StoreFaults
    stream: Stream
    feeds: Mapping[JobKey, Feed]
    loads: Mapping[JobKey, float]
    watching: Watching
    ended: Callable[[Agent, PolynyaError | None], None]
    member: Callable[..., Member]
    clock: Callable[[Machine, Process], MachineClock]
    knows: Callable[[Machine], frozenset[JobKey]]


def proposing(
    nodes: Sequence[PlacementNode], units: Sequence[PlacementUnit], current: Mapping[JobKey, str]
) -> PlacementProposal:
    """The real placement with its usual rules."""
    return propose(nodes, units, current, PlacementRules())


class Agent:
    """One process. `draining` is set from outside, as by SIGTERM."""

    def __init__(self, place: Place, machine: Machine, number: int) -> None:
        self.place, self.machine = place, machine
        self.process = Process(place.world, f"{machine.name}#{number}")
        machine.process = self.process
        place.faults.node_of[self.process.name] = machine.name
        self.jobs: dict[JobKey, Job] = {}
        self.member_state: MemberState | None = None
        self.draining = False
        self.began = place.world.now
        self._voice: Voice | None = None
        self._fenced: dict[JobKey, int] = {}
        self._idle = False
        self._errands: Errands | None = None
        self._clock = place.clock(machine, self.process)
        self._thread = self.process.start(self._live)
        self.process.on_death.append(lambda: place.stream.listeners.pop(self.process.name, None))

    def drain(self) -> None:
        """Be told to end."""
        self.draining = True
        self.nudge()

    def nudge(self) -> None:
        """Have the next turn now, unless one is at work."""
        stopped = self.process.dead or self.process.paused_until > self.place.world.now
        if self._idle and not stopped:
            self.process.wake(self._thread)

    def _live(self) -> None:
        place = self.place
        try:
            line = StoreLine(place.objects, self.process, place.faults)
            document_store = DocumentStore(line, CLUSTER, Random(place.world.random.random()))
            self._errands = Errands(UnitRequests(document_store, self.machine.name, self._clock))
            member = place.member(
                line,
                CLUSTER,
                NodeIdentity(self.machine.name, version="1"),
                proposing,
                clock=self._clock,
                random=Random(place.world.random.random()),
            )
            while self.member_state is None or not self.member_state.left:
                self._errands.read()
                place.watching.began_turn(self)
                member_state = member.turn(self._seen())
                self._errands.confirm(member_state.grants)
                self.take(member_state)
                self._idle = True
                assert self.member_state is not None
                self.process.wait(
                    0.0 if self.member_state.left else self.member_state.next_turn_seconds
                )
                self._idle = False
        except PolynyaError as error:
            place.ended(self, error)
            self.process.exit()
        place.ended(self, None)
        self.process.exit()

    def _seen(self) -> NodeFacts:
        fenced, self._fenced = self._fenced, {}
        heard = self._voice.heard() if self._voice is not None else {}
        return NodeFacts(
            wanted=self.place.knows(self.machine),
            working=frozenset(self.jobs),
            draining=self.draining,
            loads={**heard, **{unit: self.place.loads.get(unit, 1.0) for unit in self.jobs}},
            fenced=fenced,
        )

    def take(self, member_state: MemberState) -> None:
        """Start and stop jobs as the member says."""
        self.member_state = member_state
        self.place.watching.knows(self, member_state)
        for unit, job in self.jobs.items():
            gone = member_state.grants.get(unit) != job.epoch or unit in member_state.revoked
            gone = gone or unit not in self.place.knows(self.machine)
            if gone or self._makes_room(job):
                job.stopping = True
        for unit in member_state.grants:
            self._start(unit)
        if self._voice is None:
            name = self.process.name
            self._voice = Voice(
                self.place.stream, self.machine, CLUSTER, member_state.incarnation, name
            )
            self._voice.listen(self.nudge)
        self._voice.tell(member_state, self.place.loads)

    def _makes_room(self, job: Job) -> bool:
        assert self._errands is not None and self.member_state is not None
        return self._errands.takes_turns(job, held=self.member_state.held)

    def _asked(self, unit: JobKey) -> PendingRequest | None:
        """What a job does instead of its work. While the cluster is frozen nothing is begun."""
        assert self._errands is not None and self.member_state is not None
        asked = None if self.member_state.held else self._errands.due(unit)
        if asked is not None:
            self.place.watching.begins_errand(self, unit, asked)
        return asked

    def _start(self, unit: JobKey) -> None:
        member_state, feed = self.member_state, self.place.feeds.get(unit)
        assert member_state is not None
        if unit in self.jobs or unit in self._fenced or feed is None or self.draining:
            return
        if unit not in self.place.knows(self.machine):
            return
        granted = unit in member_state.grants and unit not in member_state.revoked
        if not granted or self._clock.peek() >= member_state.grants_until:
            return
        job = Job(
            unit,
            member_state.grants[unit],
            member_state.incarnation,
            self.process,
            feed,
            may_begin=self._may_begin,
            ended=self._ended,
            asked=self._asked(unit),
        )
        self.jobs[unit] = job
        self.process.start(job.run)

    def _may_begin(self, job: Job) -> bool:
        member_state = self.member_state
        assert member_state is not None
        if self._clock.monotonic() >= member_state.grants_until:
            return False
        self.place.watching.begins_step(self, job)
        return True

    def _ended(self, job: Job) -> None:
        del self.jobs[job.unit]
        if job.fenced:
            self._fenced[job.unit] = job.feed.table.state.epoch
        self.place.watching.ended_job(self, job)
        assert self._errands is not None
        self._errands.ended(job)
        over = job.stopping or job.carried_out is not None
        if job.fenced or over:
            self.nudge()
        if over and not job.fenced:
            self._start(job.unit)
        elif not job.fenced:
            self.process.wait(2 + 3 * self.place.world.random.random())
            self._start(job.unit)
