"""Three agents with a store, each behind a proxy of its own, and the faults that strike them.

They are of two versions: a node is of the other one with each start.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from polynya.testing.fake_imds import FakeImds, fake_imds
from tests.cluster_demo.agents import Agent, Agents, Failed
from tests.cluster_demo.servers import BUCKET, credentials, s3_client, s3_server
from tests.cluster_faults.faults import CRASHES, Kind, State, Struck, alone, drawn
from tests.cluster_faults.launcher import VERSION
from tests.cluster_faults.proxy import Proxy, proxied
from tests.cluster_faults.versions import Launch

NODES: Final = ("n1", "n2", "n3")
#: Longest wait for an agent that starts or ends, in seconds: machines may be busy.
PATIENCE: Final = 300.0
_DRAIN_SECONDS: Final = 60
_CLUSTER: Final = "faults"


@dataclass(frozen=True)
class Arm:
    """How agents are started: the lease in seconds, and the control arm without the fence."""

    lease: float = 30.0
    fenced: bool = True

    def program(self) -> list[str]:
        """The command line before the arguments of `polynya`."""
        fence = "on" if self.fenced else "off"
        return [sys.executable, "-m", "tests.cluster_faults.launcher", str(self.lease), fence]


@dataclass
class Node:
    """One node: its proxy, its metadata service, its process, and what it suffers."""

    name: str
    proxy: Proxy
    imds: FakeImds
    agent: Agent
    state: State = "starts"
    #: When what it suffers ends, in monotonic seconds.
    until: float = 0.0
    #: How many starts it has said to be ready for.
    starts: int = 1


@dataclass
class World:
    """See the module. `say` takes a line for people."""

    agents: Agents
    nodes: Mapping[str, Node]
    dice: random.Random
    lease: float
    endpoint: str
    say: Callable[[str], None]
    struck: list[Struck] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unplanned: Counter[str] = field(default_factory=Counter)

    def ready(self) -> None:
        """Wait until all nodes work and nothing is left of any fault."""
        self._until("all nodes work", lambda: all(one.state == "works" for one in self._seen()))

    def share(self) -> None:
        """Wait until each node has a unit, so that both versions have claimed one."""
        self._until("each node has a unit", lambda: {*self._owners().values()} == {*self.nodes})

    def suffer_alone(self, faults: int, units: int, pause: tuple[float, float]) -> None:
        """So many faults, each when nothing is left of the one before and all units have owners."""
        for number in range(faults):
            self.ready()
            time.sleep(self.dice.uniform(*pause))
            self._until("all units have owners", lambda: len(self._owners()) == units)
            nodes = set(self._owners().values())
            fault = alone(self.dice, number, nodes, lease=self.lease, now=datetime.now(UTC))
            self._strike(self.nodes[fault.node], fault)
            if fault.kind in CRASHES:
                self._until_others_have(units, fault.node)
        self.ready()

    def _until_others_have(self, units: int, node: str) -> None:
        """Wait for the owners of what a node had; then it may come back."""

        def there() -> bool:
            owners = self._owners()
            return len(owners) == units and node not in owners.values()

        self._until(f"others have the units of {node}", there)
        self.nodes[node].until = time.monotonic()

    def _owners(self) -> Mapping[str, str]:
        self._seen()
        return self.agents.owners()

    def suffer(self, faults: int, pause: tuple[float, float]) -> None:
        """So many faults, one after the other, with a pause before each. They overlap."""
        wanted = len(self.struck) + faults
        while len(self.struck) < wanted:
            time.sleep(self.dice.uniform(*pause))
            states = {one.name: one.state for one in self._seen()}
            owners = set(self.agents.owners().values())
            fault = drawn(self.dice, states, owners, lease=self.lease, now=datetime.now(UTC))
            if fault is not None:
                self._strike(self.nodes[fault.node], fault)

    def end(self) -> None:
        """All nodes end as they are told to."""
        for node in self.nodes.values():
            node.agent.terminate()
        for node in self.nodes.values():
            if code := node.agent.process.wait(PATIENCE):
                self.problems.append(f"{node.name} ended with {code} after SIGTERM")

    def records(self) -> dict[str, dict[str, Any]]:
        """The ownership record of each unit, by the name of its table."""
        client, prefix = s3_client(self.endpoint), f"coordination/{_CLUSTER}/units/"
        found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return {
            one["Key"].rpartition("/")[2]: json.loads(
                client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read()
            )
            for one in found
        }

    def _strike(self, node: Node, fault: Struck) -> None:
        self.struck.append(fault)
        self.say(f"{len(self.struck):4}  {fault.kind}: {node.name} ({fault.seconds:.0f} s)")
        node.until = time.monotonic() + fault.seconds
        if fault.kind is Kind.KILL:
            node.agent.kill()
            node.state = "down"
        elif fault.kind is Kind.STOP:
            node.agent.signal(signal.SIGSTOP)
            node.state = "stopped"
        elif fault.kind is Kind.CUT:
            node.proxy.cut = True
            node.state = "cut"
        elif fault.kind is Kind.ERRORS:
            node.proxy.rate = 0.3
            node.state = "cut"
        else:
            node.until += PATIENCE
            node.state = "leaves"
            if fault.kind is Kind.SPOT:
                node.imds.interrupts(datetime.now(UTC).isoformat(timespec="seconds"))
            else:
                node.agent.terminate()

    def _seen(self) -> list[Node]:
        """The nodes, after what is due was done."""
        for node in self.nodes.values():
            self._look(node, time.monotonic())
        return list(self.nodes.values())

    def _look(self, node: Node, now: float) -> None:
        if node.state in ("leaves", "works", "starts", "cut") and not node.agent.runs:
            self._ended(node, now)
        elif node.state == "leaves" and now > node.until:
            raise Failed(f"{node.name} was told to end and did not within {PATIENCE:.0f} s")
        elif node.state == "starts" and _readies(node.agent) > node.starts:
            node.starts, node.state = _readies(node.agent), "works"
        if now < node.until:
            return
        if node.state == "down":
            self._start(node)
        elif node.state == "stopped":
            node.agent.signal(signal.SIGCONT)
            node.state = "works"
        elif node.state == "cut":
            node.proxy.cut, node.proxy.rate, node.state = False, 0.0, "works"

    def _ended(self, node: Node, now: float) -> None:
        """A process ended that nobody killed: its service manager starts it again."""
        code = node.agent.process.returncode
        if node.state == "leaves":
            if code:
                self.problems.append(f"{node.name} ended with {code} when it was told to end")
        else:
            self.unplanned[f"exit code {code}"] += 1
            if "POLYNYA-BUG" in (tail := node.agent.output.read_text("utf-8", "replace")[-4000:]):
                self.problems.append(f"{node.name} ended with {code}: {tail}")
        node.imds.says.clear()
        node.proxy.cut, node.proxy.rate = False, 0.0
        node.state, node.until = "down", now + self.dice.uniform(0.5, 3.0)

    def _start(self, node: Node) -> None:
        """Start it again, in the other version."""
        before = next(one for one in reversed(self.launches) if one.node == node.name)
        launch = Launch(node.name, datetime.now(UTC), later=not before.later)
        self.launches.append(launch)
        node.agent = launched(self.agents, launch, node.proxy, node.imds)
        node.state = "starts"

    def _until(self, what: str, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not there():
            if time.monotonic() > deadline:
                states = {one.name: one.state for one in self.nodes.values()}
                raise Failed(f"after {PATIENCE:.0f} s not yet: {what}: {states}")
            time.sleep(0.2)


def launched(agents: Agents, launch: Launch, proxy: Proxy, imds: FakeImds) -> Agent:
    """Start an agent whose line to the store goes through its proxy."""
    variables = {"AWS_ENDPOINT_URL": proxy.address, VERSION: "later" if launch.later else ""}
    return agents.start(launch.node, "--imds", imds.address, variables=variables)


def _readies(agent: Agent) -> int:
    """How often its processes have said that they are ready."""
    return sum(one["type"] == "agent.ready" for one in agent.said())


@contextmanager
def world(folder: Path, arm: Arm, seed: int, say: Callable[[str], None]) -> Iterator[World]:
    """Three agents over a project that was pushed; they start, and are killed at the end."""
    config, coordination = f"s3://{BUCKET}/config", f"s3://{BUCKET}/coordination"
    with ExitStack() as stack:
        endpoint = stack.enter_context(s3_server())
        variables: dict[str, Any] = {
            **credentials(endpoint),
            "POLYNYA_COORDINATION": coordination,
            "POLYNYA_CLUSTER": _CLUSTER,
            # Three JVMs on one machine, each with small tables.
            "POLYNYA_DRIVER_MEMORY": "1g",
        }
        options = [
            "--config", config, "--stream", str(folder / "stream"),
            "--drain-seconds", str(_DRAIN_SECONDS),
        ]  # fmt: skip
        agents = Agents(folder, options, variables, program=arm.program())
        agents.polynya("config", "push", "--project", str(folder))
        stack.callback(agents.end)
        nodes, launches = {}, []
        for number, name in enumerate(NODES):
            proxy = stack.enter_context(proxied(endpoint, seed + number))
            imds = stack.enter_context(fake_imds())
            launches.append(Launch(name, datetime.now(UTC), later=number % 2 == 1))
            agent = launched(agents, launches[-1], proxy, imds)
            nodes[name] = Node(name, proxy, imds, agent, starts=0)
        dice = random.Random(seed)
        yield World(agents, nodes, dice, arm.lease, endpoint, say, launches=launches)
