"""One run: machines, agents, tables and a person, and what strikes them, drawn from the seed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from polynya.cluster.control.requests import Requests
from polynya.cluster.coordination.documents import UnitRequest
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError, PolynyaError
from tests.cluster.simulation.agent import CLUSTER, Agent, Place
from tests.cluster.simulation.judge.oracle import Oracle
from tests.cluster.simulation.judge.records import FOREIGN, decoded
from tests.cluster.simulation.judge.requests import PERSON
from tests.cluster.simulation.parts.faults import StoreFaults
from tests.cluster.simulation.parts.machine import Machine, MachineClock, day
from tests.cluster.simulation.parts.source import Source
from tests.cluster.simulation.parts.store import Objects, StoreLine
from tests.cluster.simulation.parts.stream import Stream
from tests.cluster.simulation.parts.tables import CommitFaults, Fence, State, Table
from tests.cluster.simulation.parts.world import Process, World
from tests.cluster.simulation.plan import Plan
from tests.cluster.simulation.work import Feed

SINCE = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Under:
    """What is under test: the member, the clock of an agent, the fence of the tables."""

    member: Callable[..., Member] = Member
    clock: Callable[[Machine, Process], MachineClock] = MachineClock
    fence: Fence = Fence.STATE


@dataclass(slots=True)
class Drill:
    """The cluster of a run, and the hands that strike it. The public methods are the faults."""

    world: World
    plan: Plan
    under: Under
    counts: Counter[str] = field(default_factory=Counter)
    objects: Objects = field(init=False)
    feeds: dict[JobKey, Feed] = field(init=False)
    oracle: Oracle = field(init=False)
    place: Place = field(init=False)
    machines: list[Machine] = field(init=False)
    agents: dict[str, Agent] = field(default_factory=dict)
    _processes: int = 0
    _people: int = 0

    def __post_init__(self) -> None:
        world, plan, random = self.world, self.plan, self.world.random
        self.objects = Objects(world)
        commits = CommitFaults(random, plan.commits, plan.heals, self.counts)
        self.feeds = {
            unit: Feed(
                Table(unit.name, self.under.fence, State(plan.epochs.get(unit, 0))),
                Source(world, rows, plan.feeds),
                commits,
            )
            for unit, rows in plan.units.items()
        }
        tables = {unit: feed.table for unit, feed in self.feeds.items()}
        self.oracle = Oracle(world, self.objects, tables)
        faults = StoreFaults(random, plan.store, plan.heals, plan.blackouts, self.counts)
        self.place = Place(
            world,
            self.objects,
            faults,
            Stream(world, plan.stream, plan.heals, self.counts),
            self.feeds,
            plan.loads,
            self.oracle,
            self._ended,
            self.under.member,
            self.under.clock,
            self._knows,
        )
        self.machines = [
            Machine(world, f"n{number}", drift=one.drift, skew=one.skew)
            for number, one in enumerate(plan.machines)
        ]
        self.counts["late or never in a configuration"] += sum(
            one.since > 0 for nodes in plan.knows.values() for one in nodes
        )
        if "meddle" in plan.kinds:
            # Ownership as a version that this one does not know writes it: not to be touched.
            later = {"v": 2, "nonce": "x", "owner": None, "epoch": 7, "since": SINCE, "holders": []}
            self.oracle.by_hand(f"{CLUSTER}/units/t/later", json.dumps(later).encode())
            self.feeds[JobKey("t", "later")] = Feed(Table("later"), Source(world, 0, 1), commits)
        for machine, one in zip(self.machines, plan.machines, strict=True):
            world.at(one.starts, lambda machine=machine: self.start(machine))
        for strike in plan.strikes:
            world.at(strike.at, lambda strike=strike: self._strike(strike.what, strike.args))
        world.at(plan.heals, self.heal)

    def start(self, machine: Machine) -> None:
        """Start a process where none lives."""
        if machine.process is None or machine.process.dead:
            self._processes += 1
            self.agents[machine.name] = Agent(self.place, machine, self._processes)

    def _knows(self, machine: Machine) -> frozenset[JobKey]:
        """The units that the configuration of a machine has now."""
        knows, number, now = self.plan.knows, int(machine.name[1:]), self.world.now
        missing = {unit for unit, nodes in knows.items() if not nodes[number].at(now)}
        return frozenset(self.feeds.keys() - missing)

    def twin(self, node: int) -> None:
        """Start another process with the id of a node, as a copy of its machine does."""
        self.counts["second process with one node id"] += 1
        self.start(Machine(self.world, self.machines[node].name))

    def agent(self, node: int) -> Agent | None:
        """The living process of a machine."""
        agent = self.agents.get(self.machines[node].name)
        return None if agent is None or agent.process.dead else agent

    def crash(self, node: int, calls: int, back: float | None) -> None:
        """Kill a process at one of its next calls, and start another after `back` seconds."""

        def now(process: Process) -> None:
            self.counts["crash"] += 1
            self.oracle.crashed(process.name)
            process.exit()

        self._interrupt(node, calls, now)
        if back is not None:
            self.world.after(back, lambda: self.start(self.machines[node]))

    def stop(self, node: int, calls: int, seconds: float) -> None:
        """Stop a process at one of its next calls, as SIGSTOP does."""

        def now(process: Process) -> None:
            self.counts["pause"] += 1
            process.pause(min(seconds, max(0.0, self.plan.heals - self.world.now)))

        self._interrupt(node, calls, now)

    def suspend(self, node: int, seconds: float) -> None:
        """Suspend a machine."""
        self.counts["suspend"] += 1
        self.machines[node].suspend(min(seconds, max(0.0, self.plan.heals - self.world.now)))

    def turn_clock(self, node: int, seconds: float) -> None:
        """Set the time of the day of a machine."""
        self.counts["step of the wall clock"] += 1
        self.machines[node].skew += seconds

    def hang(self, unit: int, seconds: float) -> None:
        """Have the next step of a unit last long."""
        self._hang(self._unit(unit), min(seconds, max(0.0, self.plan.heals - self.world.now)))

    def stick(self, unit: int) -> None:
        """Have the next step of a unit never end, while a person wants the unit elsewhere."""
        key = self._unit(unit)
        for node in self.machines:
            agent = self.agents.get(node.name)
            if agent is not None and key not in agent.jobs:
                self._hang(key, 1000.0)
                self._request(f"moves/{key.task}/{key.name}", {"to": node.name})
                return

    def _unit(self, number: int) -> JobKey:
        return list(self.plan.units)[number % len(self.plan.units)]

    def _hang(self, key: JobKey, seconds: float) -> None:
        for agent in self.agents.values():
            job = agent.jobs.get(key)
            if job is not None and not agent.process.dead:
                self.counts["step that hangs"] += 1
                job.hangs = seconds

    def terminate(self, node: int, killed_after: float | None, back: float | None) -> None:
        """Tell a process to end, as SIGTERM or a Spot notice do."""
        agent = self.agent(node)
        if agent is None:
            return
        self.counts["drain"] += 1
        agent.drain()
        if killed_after is not None:
            self.world.after(killed_after, agent.process.kill)
        if back is not None:
            self.world.after(back, lambda: self.start(self.machines[node]))

    def freeze(self, seconds: float) -> None:
        """Have nothing move for a while."""
        self.counts["freeze"] += 1
        self._request("freeze", {})
        self.oracle.frozen_since = self.world.now

        def thaw() -> None:
            self.oracle.frozen_since = None
            self.oracle.by_hand(f"{CLUSTER}/freeze", None)

        self.world.at(min(self.plan.heals, self.world.now + seconds), thaw)

    def empty(self, node: int, seconds: float) -> None:
        """Request that a node has nothing."""
        self.counts["drain by hand"] += 1
        self._wish_for(f"drains/n{node}", {}, seconds)

    def move(self, unit: int, node: int, seconds: float) -> None:
        """Request that a unit is on a node."""
        self.counts["move by hand"] += 1
        key = self._unit(unit)
        self._wish_for(f"moves/{key.task}/{key.name}", {"to": f"n{node}"}, seconds)

    def ask(self, unit: int, kind: str, back: float | None) -> None:
        """Ask something of a unit, as the commands do; perhaps take it back after `back` seconds.

        The line of a person is no better than that of a node.
        """
        world, key = self.world, self._unit(unit)
        self._people += 1
        process = Process(world, f"{PERSON} {self._people}")
        line = StoreLine(self.objects, process, self.place.faults)
        document_store = DocumentStore(line, CLUSTER, Random(world.random.random()))
        requests = Requests(document_store, process.name, lambda: day(world.now))

        def live() -> None:
            try:
                requests.ask(key, UnitRequest(kind=kind, by="", since=day(world.now)))
                if back is not None:
                    process.wait(back)
                    requests.withdraw(key)
            except ConflictError:
                self.counts["second wish for one unit"] += 1
            except PolynyaError:
                self.counts["person without an answer"] += 1
            process.exit()

        process.start(live)

    def meddle(self, folder: str, draw: float) -> None:
        """Write an object as a later version does that knows more fields."""
        below = self.objects.below(f"{CLUSTER}/{folder}" if folder else CLUSTER)
        # Nobody writes a wish twice: its nonce is what it is known by.
        found = [one.path for one in below if not one.path.startswith(f"{CLUSTER}/wishes/")]
        if not found:
            return
        path = found[int(draw * len(found))]
        held = self.objects.read(path)
        assert held is not None
        fields = decoded(held[0])
        if fields is not None and "nonce" in fields:
            self.counts["field of a later version"] += 1
            fields |= {FOREIGN: self.world.now, "nonce": f"by hand {self.world.now}"}
            self.oracle.by_hand(path, json.dumps(fields).encode())

    def damage(self, folder: str, draw: float, data: bytes | None) -> None:
        """Destroy an object that can be made again, if there is one in that folder."""
        found = self.objects.below(f"{CLUSTER}/{folder}")
        if found:
            self.counts["object destroyed"] += 1
            self.oracle.by_hand(found[int(draw * len(found))].path, data)

    def heal(self) -> None:
        """No more faults; some of the dead come back, at least one node works."""
        random = self.world.random
        for agent in self.agents.values():
            agent.process.interrupt = None
        staying = [one for one in self.agents.values() if not one.process.dead and not one.draining]
        dead = [one for one in self.machines if one.process is None or one.process.dead]
        for machine in dead:
            if random.random() < 0.5:
                self.world.after(5 * random.random(), lambda machine=machine: self.start(machine))
                staying.append(self.agents.get(machine.name))
        if not staying:
            # All that live are on their way out.
            machine = random.choice(self.machines)
            if machine.process is not None and not machine.process.dead:
                machine.process.kill()
            self.start(machine)

    def _ended(self, agent: Agent, error: PolynyaError | None) -> None:
        """The machine starts a failed process again, but for one whose place a twin took."""
        self.oracle.stopped(agent, error)
        if error is not None and error.code != "POLYNYA-AGT-011":
            self.world.after(10.0, lambda: self.start(agent.machine))

    def _strike(self, what: str, args: tuple[object, ...]) -> None:
        getattr(self, what)(*args)

    def _interrupt(self, node: int, calls: int, act: Callable[[Process], None]) -> None:
        agent = self.agent(node)
        if agent is None:
            return
        left = calls

        def interrupt(process: Process) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                process.interrupt = None
                act(process)

        agent.process.interrupt = interrupt

    def _wish_for(self, path: str, fields: dict[str, object], seconds: float) -> None:
        self._request(path, fields)
        self.world.at(
            min(self.plan.heals, self.world.now + seconds),
            lambda: self.oracle.by_hand(f"{CLUSTER}/{path}", None),
        )

    def _request(self, path: str, fields: dict[str, object]) -> None:
        asked = {"by": "a person", "reason": "", "since": SINCE}
        body = {"v": 1, "nonce": f"by hand {self.world.now}", **asked, **fields}
        self.oracle.by_hand(f"{CLUSTER}/{path}", json.dumps(body).encode())

    @property
    def units_done(self) -> dict[JobKey, bool]:
        """Whether all that ever arrives is in the table of a unit that some node at work knows."""
        known = self._known()
        return {
            unit: feed.table.state.position >= feed.source.rows
            for unit, feed in self.feeds.items()
            if unit in known
        }

    @property
    def open_wishes(self) -> list[str]:
        """What is asked of units that some node at work knows."""
        known = {f"{unit.task}/{unit.name}" for unit in self._known()}
        return [unit for unit in self.oracle.requests.open if unit in known]

    def _known(self) -> frozenset[JobKey]:
        working = [one for one in self.agents.values() if not one.process.dead and not one.draining]
        return frozenset[JobKey]().union(*(self._knows(one.machine) for one in working))
