"""What the demo does, step by step, and the seconds that each step took."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polynya.testing.fake_imds import FakeImds
from tests.cluster_demo import project
from tests.cluster_demo.agents import Agent, Agents, Failed, after
from tests.cluster_demo.captured import Dataset
from tests.cluster_demo.judge import Verdict, judge

#: Longest time that the demo waits for anything, in seconds: machines may be busy.
PATIENCE = 600.0


@dataclass
class Story:
    """The demo as it goes on. `say` takes a line for people.

    Attributes:
        figures: seconds by what they are of.
        counts: faults, takeovers and the like.
    """

    folder: Path
    agents: Agents
    datasets: list[Dataset]
    imds: FakeImds
    feeder: project.Feeder
    say: Callable[[str], None]
    figures: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def units(self) -> set[str]:
        return {f"{project.SCHEMA}.{one.name}" for one in self.datasets}

    def begin(self) -> None:
        """Three agents share the units of the project."""
        began = time.monotonic()
        self.feeder.go_on()
        for name in ("n1", "n3"):
            self.agents.start(name, "--imds", "off")
        self.agents.start("n2", "--imds", self.imds.address)
        self._until("all units have a node", lambda: set(self.agents.owners()) >= self.units)
        self._until("three nodes share", lambda: len(set(self.agents.owners().values())) == 3)
        self._until("all tables are there", lambda: self._copied() >= self.units)
        self._took("three agents started until all units work", began)
        self.show()

    def crash(self) -> None:
        """kill -9 one that has units: the others take them when its lease has expired."""
        victim = self.agents.all[self.agents.owners()[min(self.units)]]
        if victim.name == "n2":
            victim = self.agents.all["n1"]
        theirs = {unit for unit, node in self.agents.owners().items() if node == victim.name}
        self.say(f"kill -9 {victim.name}, which has {_names(theirs)}")
        moment, began = datetime.now(UTC), time.monotonic()
        victim.kill()
        self.feeder.go_on()
        self.counts["faults"] += 1
        self._until("others claim them", lambda: self._claimed(moment) >= theirs)
        self._took("crash until others own all its units", began)
        self._until("they go on", lambda: self._begun(moment, theirs))
        self._took("crash until the first commit of a new owner", began)
        self.counts["takeovers"] += len(theirs)
        self.show()

    def stall(self, seconds: float = 40.0) -> None:
        """SIGSTOP for longer than a lease: who wakes up must not write over its successors."""
        owners = self.agents.owners()
        victim = self.agents.all[next(node for node in sorted(owners.values()) if node != "n2")]
        theirs = {unit for unit, node in owners.items() if node == victim.name}
        self.say(f"SIGSTOP {victim.name} for {seconds:.0f} s, which has {_names(theirs)}")
        moment, began = datetime.now(UTC), time.monotonic()
        victim.signal(signal.SIGSTOP)
        self.feeder.go_on()
        self.counts["faults"] += 1
        time.sleep(seconds)
        self._until("others claim them", lambda: self._claimed(moment) >= theirs)
        self._took("stop until others own all its units", began)
        self.counts["takeovers"] += len(theirs)
        victim.signal(signal.SIGCONT)
        began = time.monotonic()
        self._until("it knows", lambda: self._lost(victim, moment) >= theirs)
        self._took("woken up until it knows that it has lost them", began)
        self.show()

    def join(self) -> None:
        """A node joins, and a person moves a unit to it: the leader lets what moved rest."""
        self.feeder.go_on()
        began = time.monotonic()
        agent = self.agents.start("n4", "--imds", "off")
        self._until(
            "n4 is there", lambda: any(one["type"] == "agent.ready" for one in agent.said())
        )
        self._took("a fourth node started until it is ready", began)
        unit = self.datasets[-1]
        self.say(f"polynya cluster move {unit.task}/{unit.name} n4")
        began = time.monotonic()
        self.agents.polynya("cluster", "move", f"{unit.task}/{unit.name}", "n4")
        name = f"{project.SCHEMA}.{unit.name}"
        self._until("n4 has it", lambda: self.agents.owners().get(name) == "n4")
        self._took("a move asked for until the new node owns the unit", began)
        self.show()

    def interrupt(self) -> None:
        """AWS takes an instance back: it hands its units over and ends."""
        leaver = self.agents.all["n2"]
        theirs = {unit for unit, node in self.agents.owners().items() if node == leaver.name}
        self.say(f"Spot notice for {leaver.name}, which has {_names(theirs)}")
        moment, began = datetime.now(UTC), time.monotonic()
        self.feeder.go_on()
        self.imds.interrupts((datetime.now(UTC)).isoformat(timespec="seconds"))
        self.counts["faults"] += 1
        self._until("it ends", lambda: not leaver.runs, alive=False)
        self.figures["Spot notice until the process is gone"] = time.monotonic() - began
        released = [one["at"] for one in after(leaver.said(), moment, "unit.released")]
        self.counts["released"] += len(released)
        if released:
            last = datetime.fromisoformat(max(released))
            self.figures["Spot notice until all its units are released"] = (
                last - moment
            ).total_seconds()
        self._until("others claim them", lambda: self._claimed(moment) >= theirs)
        self.counts["takeovers"] += len(theirs)
        claims = [
            datetime.fromisoformat(one["at"])
            for one in after(self.agents.said(), moment, "unit.claimed")
        ]
        if released and claims:
            self.figures["last release until the last successor owns"] = max(
                (max(claims) - last).total_seconds(), 0.0
            )
        if leaver.process.returncode != 0:
            raise Failed(f"{leaver.name} ended with {leaver.process.returncode}")
        self.show()

    def edit(self, more: Dataset) -> None:
        """A task file gets one more dataset while all works."""
        began = time.monotonic()
        self.datasets.append(more)
        same = [one for one in self.datasets if one.task == more.task]
        project.write_task(self.folder, more.task, same)
        self.agents.polynya("config", "push", "--project", str(self.folder))
        project.Feeder(self.folder / "landing", [more], files=3).finish()
        self._until("its rows are there", lambda: self._copied() >= self.units)
        self._took("a dataset added by `config push` until its first rows", began)

    def finish(self) -> list[Verdict]:
        """All lands, all is copied, the nodes end, what is left is applied; then judge."""
        self.feeder.finish()
        wanted = {f"{project.SCHEMA}.{one.name}": len(one.events) for one in self.datasets}
        self.say("everything has landed; the nodes copy the rest")
        self._until("all is copied", lambda: self._idle(wanted))
        for agent in self.agents.all.values():
            agent.terminate()
        for agent in self.agents.all.values():
            agent.process.wait(120)
        said = self.agents.said()
        self.counts["fenced commits"] = sum(one["type"] == "unit.fenced" for one in said)
        self.counts["batches"] = sum(one["type"] == "batch.copied" for one in said)
        self.counts["rows"] = sum(len(one.events) for one in self.datasets)
        self.counts["alarms"] = sum(one["type"] == "unit.alarm" for one in said)
        folder = str(self.folder)
        self.agents.polynya("run", "--once", "--apply", "always", "--project", folder)
        return judge(self.folder, self.datasets)

    def show(self) -> None:
        """Who has what."""
        nodes: dict[str, list[str]] = {}
        for unit, node in sorted(self.agents.owners().items()):
            nodes.setdefault(node, []).append(unit.partition(".")[2])
        for name, agent in sorted(self.agents.all.items()):
            if agent.runs:
                self.say(f"   {name}: {', '.join(nodes.get(name, [])) or 'nothing yet'}")

    def _idle(self, wanted: dict[str, int]) -> bool:
        """Whether as many rows were read as have landed; what is read again counts again."""
        rows: Counter[str] = Counter()
        for event in self.agents.said():
            if event["type"] == "batch.copied":
                rows[event["subject"]] += event["rows_in"]
        return all(rows[unit] >= number for unit, number in wanted.items())

    def _copied(self) -> set[str]:
        return {one["subject"] for one in self.agents.said() if one["type"] == "batch.copied"}

    def _claimed(self, moment: datetime) -> set[str]:
        return {one["subject"] for one in after(self.agents.said(), moment, "unit.claimed")}

    def _lost(self, agent: Agent, moment: datetime) -> set[str]:
        return {one["subject"] for one in after(agent.said(), moment, "unit.lost")}

    def _begun(self, moment: datetime, units: set[str]) -> bool:
        claimed: dict[str, Any] = {}
        for one in after(self.agents.said(), moment, "unit.claimed"):
            claimed[one["subject"]] = one["at"]
        return any(
            one["at"] > claimed[one["subject"]]
            for one in after(self.agents.said(), moment, "batch.copied")
            if one["subject"] in units & claimed.keys()
        )

    def _took(self, what: str, began: float) -> None:
        self.figures[what] = time.monotonic() - began

    def _until(self, what: str, there: Callable[[], bool], *, alive: bool = True) -> None:
        deadline = time.monotonic() + PATIENCE
        running = [agent for agent in self.agents.all.values() if agent.runs]
        while not there():
            if alive:
                _refuse_ended(running)
            if time.monotonic() > deadline:
                last = [str(one)[:300] for one in self.agents.said()[-12:]]
                raise Failed(f"after {PATIENCE:.0f} s not yet: {what}\n" + "\n".join(last))
            time.sleep(0.2)


def _refuse_ended(agents: list[Agent]) -> None:
    for agent in agents:
        if not agent.runs:
            said = agent.output.read_text("utf-8", "replace")[-3000:]
            raise Failed(f"{agent.name} ended with {agent.process.returncode}:\n{said}")


def _names(units: set[str]) -> str:
    return ", ".join(sorted(unit.partition(".")[2] for unit in units)) or "nothing"
