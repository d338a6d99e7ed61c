"""What has to hold of a run, whatever strikes it. Shares no code with what it judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from polynya.cluster.control.requests import PendingRequest
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.unit import JobKey
from polynya.model.errors import PolynyaError
from tests.cluster.simulation.agent import CLUSTER, Agent
from tests.cluster.simulation.judge.records import TTL, Records, decoded
from tests.cluster.simulation.judge.requests import RequestJudge
from tests.cluster.simulation.parts.store import Objects, Write
from tests.cluster.simulation.parts.tables import Table
from tests.cluster.simulation.parts.world import World
from tests.cluster.simulation.work import Job

#: A node trusts its lease for 0.8 of its time; clocks drift, and a step begins a moment later.
TRUST = 0.8 * 1.05
#: Two leases.
RECOVERY = 60.0


class Violation(Exception):
    """Something that must not happen has happened."""


class Oracle:
    """Watches all changes and all steps; raises Violation at the first that is wrong."""

    def __init__(self, world: World, objects: Objects, tables: Mapping[JobKey, Table]) -> None:
        self.world, self.objects, self.tables = world, objects, tables
        self.records = Records(lambda: world.now, self.fail)
        self.counts: Counter[str] = Counter()
        self.requests = RequestJudge(lambda: world.now, self.fail, tables, self.counts)
        self.frozen_since: float | None = None
        self.orphans: list[tuple[float, JobKey]] = []
        self.crashes: list[float] = []
        self._turn_began: dict[str, float] = {}
        self._knows_since: dict[str, float] = {}
        self._agents: dict[str, Agent] = {}
        self._incarnations: dict[str, str] = {}
        self._by_hand = False
        objects.watchers.append(self._changed)

    def fail(self, what: str) -> None:
        """Give up."""
        raise Violation(f"at {self.world.now:.3f} s: {what}")

    def by_hand(self, path: str, data: bytes | None) -> None:
        """Change an object as a person or another version would."""
        self._by_hand = True
        self.objects.write("by hand", path, data)
        self._by_hand = False

    def began_turn(self, agent: Agent) -> None:
        """Of a member."""
        self._agents[agent.process.name] = agent
        self._turn_began[agent.process.name] = self.world.now
        self.counts["turns"] += 1

    def knows(self, agent: Agent, member_state: MemberState) -> None:
        """A turn is over."""
        self._knows_since[agent.process.name] = self._turn_began[agent.process.name]
        name = self._incarnations.setdefault(member_state.incarnation, agent.process.name)
        if name != agent.process.name:
            self.fail(f"{name} and {agent.process.name} have one incarnation")
        for unit, epoch in member_state.grants.items():
            given = self.records.owners.get(f"{unit.task}/{unit.name}", {}).get(epoch)
            if given != member_state.incarnation:
                self.fail(f"{member_state.incarnation} has a grant of {unit} in {epoch}: {given}'s")
        if agent.machine.elapsed() < member_state.grants_until:
            self._judge_lapse(member_state)

    def _judge_lapse(self, member_state: MemberState) -> None:
        """Who could be taken for dead reads its records again before it goes on."""
        me = member_state.incarnation
        renewed = self.records.leases.lapsed(f"{CLUSTER}/nodes/{me}", TTL)
        for unit in member_state.grants if renewed is not None else ():
            if self.records.lost_at.get((f"{unit.task}/{unit.name}", me), renewed) < renewed:
                self.fail(f"{me} came back after its lease, and grants {unit}, which it lost")

    def begins_step(self, agent: Agent, job: Job) -> None:
        """A job begins a batch: its node has to trust its lease."""
        assert agent.member_state is not None
        path = f"{CLUSTER}/nodes/{agent.member_state.incarnation}"
        silent = self.world.now - self.records.leases.sent.get(path, float("-inf"))
        if silent > TTL * TRUST:
            self.fail(f"{agent.process.name} works on {job.unit} {silent:.1f} s after a renewal")

    def begins_errand(self, agent: Agent, unit: JobKey, asked: PendingRequest) -> None:
        """An agent begins what is asked of a unit that it owns. In a freeze nobody does."""
        assert agent.member_state is not None
        process, me = agent.process.name, agent.member_state.incarnation
        since = self.records.claimed_by[f"{unit.task}/{unit.name}", me]
        self.requests.begins(process, unit, asked.nonce, since)
        if self._frozen_for(process, self._knows_since):
            self.fail(f"{process} begins what is asked of {unit} although the cluster is frozen")

    def ended_job(self, agent: Agent, job: Job) -> None:
        """A run is over."""
        self.counts["fenced"] += job.fenced

    def crashed(self, process: str) -> None:
        """A process is about to vanish, and all that it works on has nobody."""
        self.crashes.append(self.world.now)
        agent = self._agents.get(process)
        others = [one for one in self._agents.values() if one is not agent and not one.process.dead]
        # Where nobody is left nobody can claim.
        if agent is not None and others:
            self.orphans.extend((self.world.now, unit) for unit in agent.jobs)

    def stopped(self, agent: Agent, error: PolynyaError | None) -> None:
        """A process ended by itself."""
        self.counts[f"ended with {error.code}" if error else "drained"] += 1

    def _changed(self, change: Write) -> None:
        if self._by_hand:
            self.records.by_hand(change)
            return
        self.records.see(change)
        self.requests.see(change)
        kind = change.path.split("/")[1]
        if kind == "units":
            self._released(change)
        stays = self._frozen_for(change.process, self._turn_began) and not change.late
        if stays and (kind == "plans" or (kind == "units" and _other_owner(change))):
            self.fail(f"{change.path} changed although the cluster is frozen")

    def _frozen_for(self, process: str, began: Mapping[str, float]) -> bool:
        """Whether nothing may move. A turn that was at work when the freeze came may end."""
        frozen = self.frozen_since
        return frozen is not None and began.get(process, 0.0) > frozen + 0.001

    def _released(self, change: Write) -> None:
        """Who gives a unit up has stopped working on it."""
        agent = self._agents.get(change.process)
        if change.late or agent is None or agent.process.dead:
            return
        _, _, task, name = change.path.split("/")
        job = agent.jobs.get(JobKey(task, name))
        if b'"owner":null' in (change.after or b"").replace(b" ", b"") and job is not None:
            self.fail(f"{change.process} released {task}/{name} while it worked on it")

    def judge_calm(self) -> None:
        """Nobody was ever fenced, and a unit moved once at most: to a node that began later."""
        often = sorted(unit for unit, at in self.records.claimed_at.items() if len(at) > 2)
        if often or self.counts["fenced"]:
            self.fail(f"moved again in all calm: {often}; fenced {self.counts['fenced']} times")

    def judge_recovery(self, until: float) -> list[float]:
        """What a crash left was claimed within two leases; seconds of each, in which none else was.

        Where more than one process vanished in that time nothing is judged.
        """
        found = []
        for at, unit in self.orphans:
            if at + RECOVERY > until or sum(at < one < at + RECOVERY for one in self.crashes):
                continue
            claimed = self.records.claimed_at.get(f"{unit.task}/{unit.name}", [])
            took = next((one - at for one in claimed if one > at), RECOVERY + 1)
            if took > RECOVERY:
                self.fail(
                    f"nobody claimed {unit} in {RECOVERY:g} s after its node vanished at {at}"
                )
            found.append(took)
        return found

    def judge_tables(self) -> None:
        """Every row once, one owner in an epoch, epochs that grow."""
        for unit, table in self.tables.items():
            _judge_table(self, unit, table)


def _other_owner(change: Write) -> bool:
    before, after = decoded(change.before) or {}, decoded(change.after) or {}
    return before.get("owner") != after.get("owner")


def _judge_table(oracle: Oracle, unit: JobKey, table: Table) -> None:
    seen: Counter[int] = Counter()
    epoch, by_epoch = 0, dict[int, str]()
    for commit in table.commits:
        if commit.emptied:
            seen.clear()
        seen.update(commit.rows)
        if commit.state.epoch < epoch:
            oracle.fail(f"{unit}: epoch {commit.state.epoch} committed after {epoch}")
        epoch = commit.state.epoch
        given = oracle.records.owners.get(f"{unit.task}/{unit.name}", {}).get(epoch)
        if given != commit.state.owner:
            oracle.fail(f"{unit}: {commit.state.owner} committed in epoch {epoch}, {given}'s")
        process = by_epoch.setdefault(epoch, commit.process)
        if process != commit.process:
            oracle.fail(f"{unit}: {process} and {commit.process} committed in epoch {epoch}")
    doubled = sorted(row for row, times in seen.items() if times > 1)
    lost = sorted(set(range(table.state.position)) - set(seen))
    if doubled:
        oracle.fail(f"{unit}: rows {doubled[:10]} are there more than once")
    if lost:
        oracle.fail(f"{unit}: rows {lost[:10]} are lost")
