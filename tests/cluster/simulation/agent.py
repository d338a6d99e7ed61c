"""A process of an agent: the real member, and around it what the agent does with its grants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from polynya.cluster.control.wishes import Asked, UnitWishes
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.standing import Me, Seen, Standing
from polynya.cluster.coordination.store import Register
from polynya.cluster.placement import NodeFacts, Proposal, Rules, UnitFacts, propose
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

    def knows(self, agent: Agent, standing: Standing) -> None:
        """A turn ended with this."""

    def begins_step(self, agent: Agent, job: Job) -> None:
        """A job begins a batch."""

    def begins_errand(self, agent: Agent, unit: JobKey, asked: Asked) -> None:
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
    nodes: Sequence[NodeFacts], units: Sequence[UnitFacts], current: Mapping[JobKey, str]
) -> Proposal:
    """The real placement with its usual rules."""
    return propose(nodes, units, current, Rules())


class Agent:
    """One process. `draining` is set from outside, as by SIGTERM."""

    def __init__(self, place: Place, machine: Machine, number: int) -> None:
        self.place, self.machine = place, machine
        self.process = Process(place.world, f"{machine.name}#{number}")
        machine.process = self.process
        place.faults.node_of[self.process.name] = machine.name
        self.jobs: dict[JobKey, Job] = {}
        self.standing: Standing | None = None
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
            register = Register(line, CLUSTER, Random(place.world.random.random()))
            self._errands = Errands(UnitWishes(register, self.machine.name, self._clock))
            member = place.member(
                line,
                CLUSTER,
                Me(self.machine.name, version="1"),
                proposing,
                clock=self._clock,
                random=Random(place.world.random.random()),
            )
            while self.standing is None or not self.standing.left:
                self._errands.read()
                place.watching.began_turn(self)
                standing = member.turn(self._seen())
                self._errands.confirm(standing.grants)
                self.take(standing)
                self._idle = True
                assert self.standing is not None
                self.process.wait(0.0 if self.standing.left else self.standing.next_turn_seconds)
                self._idle = False
        except PolynyaError as error:
            place.ended(self, error)
            self.process.exit()
        place.ended(self, None)
        self.process.exit()

    def _seen(self) -> Seen:
        fenced, self._fenced = self._fenced, {}
        heard = self._voice.heard() if self._voice is not None else {}
        return Seen(
            wanted=self.place.knows(self.machine),
            working=frozenset(self.jobs),
            draining=self.draining,
            loads={**heard, **{unit: self.place.loads.get(unit, 1.0) for unit in self.jobs}},
            fenced=fenced,
        )

    def take(self, standing: Standing) -> None:
        """Start and stop jobs as the member says."""
        self.standing = standing
        self.place.watching.knows(self, standing)
        for unit, job in self.jobs.items():
            gone = standing.grants.get(unit) != job.epoch or unit in standing.revoked
            gone = gone or unit not in self.place.knows(self.machine)
            if gone or self._makes_room(job):
                job.stopping = True
        for unit in standing.grants:
            self._start(unit)
        if self._voice is None:
            name = self.process.name
            self._voice = Voice(
                self.place.stream, self.machine, CLUSTER, standing.incarnation, name
            )
            self._voice.listen(self.nudge)
        self._voice.tell(standing, self.place.loads)

    def _makes_room(self, job: Job) -> bool:
        assert self._errands is not None and self.standing is not None
        return self._errands.takes_turns(job, held=self.standing.held)

    def _asked(self, unit: JobKey) -> Asked | None:
        """What a job does instead of its work. While the cluster is frozen nothing is begun."""
        assert self._errands is not None and self.standing is not None
        asked = None if self.standing.held else self._errands.due(unit)
        if asked is not None:
            self.place.watching.begins_errand(self, unit, asked)
        return asked

    def _start(self, unit: JobKey) -> None:
        standing, feed = self.standing, self.place.feeds.get(unit)
        assert standing is not None
        if unit in self.jobs or unit in self._fenced or feed is None or self.draining:
            return
        if unit not in self.place.knows(self.machine):
            return
        granted = unit in standing.grants and unit not in standing.revoked
        if not granted or self._clock.peek() >= standing.grants_until:
            return
        job = Job(
            unit,
            standing.grants[unit],
            standing.incarnation,
            self.process,
            feed,
            may_begin=self._may_begin,
            ended=self._ended,
            asked=self._asked(unit),
        )
        self.jobs[unit] = job
        self.process.start(job.run)

    def _may_begin(self, job: Job) -> bool:
        standing = self.standing
        assert standing is not None
        if self._clock.monotonic() >= standing.grants_until:
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
