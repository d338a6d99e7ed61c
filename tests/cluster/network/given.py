"""Groups of machines as AWS keeps them, in memory, and a network that can be cut."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.documents import AgentReport, ClusterCommand
from polynya.cluster.network.prices import PriceWatch
from polynya.cluster.network.relay import CommandQueue, Relay, give
from polynya.cluster.network.sign_of_life import AgentIdentity
from polynya.model.errors import DependencyError, OperationError
from polynya.observe.events import Event
from polynya.store.jobs import Bounds, GroupFacts, Refresh
from polynya.testing.fakes import FakeClock, MemoryObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER = "polynya-dev-main"


class Wire:
    """The network: cut, or losing the answers to what was done."""

    def __init__(self) -> None:
        self.cut = self.answers_lost = False

    def carry(self, call: Callable[[], Any]) -> Any:
        if self.cut:
            raise DependencyError("POLYNYA-AWS-003", "no answer")
        done = call()
        if self.answers_lost:
            raise DependencyError("POLYNYA-AWS-003", "the answer was lost")
        return done


class Groups:
    """One group; `asked` is everything that was done to it. Nodes come and go by `settle`."""

    def __init__(self, wire: Wire, facts: GroupFacts | None) -> None:
        self.wire, self.now, self.asked = wire, facts, list[str]()
        self.refuses: str | None = None
        self._refreshes = 0

    def settle(self) -> None:
        """Machines have come, gone and been replaced as the group wants."""
        assert self.now is not None
        refresh = self.now.refresh
        if refresh is not None and refresh.state == "running":
            refresh = replace(refresh, state="done", percent=100)
        self.now = replace(
            self.now, in_service=self.now.bounds.desired, ending=0, starting=0, refresh=refresh
        )

    def facts(self, group: str) -> GroupFacts | None:
        assert group == CLUSTER
        return self.wire.carry(lambda: self.now)

    def remember(self, group: str, bounds: Bounds) -> None:
        self._do(f"remember {bounds.minimum}-{bounds.maximum}", stopped=bounds)

    def forget(self, group: str) -> None:
        self._do("forget", stopped=None)

    def hold(self, group: str) -> None:
        self._do("hold", held=True)

    def release(self, group: str) -> None:
        self._do("release", held=False)

    def bound(self, group: str, bounds: Bounds) -> None:
        self._do(f"bound {bounds.minimum}-{bounds.maximum}", bounds=bounds)

    def want(self, group: str, desired: int) -> None:
        assert self.now is not None
        self._do(f"want {desired}", bounds=replace(self.now.bounds, desired=desired))

    def roll(self, group: str) -> None:
        self._refreshes += 1
        refresh = Refresh(f"r{self._refreshes}", "running", "InProgress", 0, NOW)
        self._do("roll", refresh=refresh)

    def _do(self, what: str, **changes: Any) -> None:
        def done() -> None:
            if self.refuses is not None:
                raise OperationError("POLYNYA-AGT-060", "refused", why=self.refuses)
            assert self.now is not None
            self.asked.append(what)
            self.now = replace(self.now, **changes)

        self.wire.carry(done)


class Prices:
    """The prices of AWS; `asked` has each question, `down` why none is answered."""

    def __init__(self) -> None:
        self.hourly = {("m7g.large", "eu-1a"): 0.03, ("m7g.large", "eu-1b"): 0.04}
        self.asked: list[frozenset[str]] = []
        self.down: DependencyError | None = None

    def spot(self, types: Collection[str]) -> Mapping[tuple[str, str], float]:
        self.asked.append(frozenset(types))
        if self.down is not None:
            raise self.down
        return {place: price for place, price in self.hourly.items() if place[0] in types}

    def on_demand(self, types: Collection[str]) -> Mapping[str, float]:
        if self.down is not None:
            raise self.down
        return dict.fromkeys(types, 0.08)


class Store(MemoryObjectStore):
    """An object store at the other end of a wire."""

    wire: Wire | None = None

    def _over(self, call: Callable[[], Any]) -> Any:
        return call() if self.wire is None else self.wire.carry(call)

    def list(self, prefix: str = "") -> Iterator[Any]:
        return iter(self._over(lambda: list(super(Store, self).list(prefix))))

    def beginning(self, start: str, after: str = "") -> Iterator[Any]:
        return iter(self._over(lambda: list(super(Store, self).beginning(start, after))))

    def read(self, path: str, limit: int) -> Any:
        return self._over(lambda: super(Store, self).read(path, limit))

    def put_if_absent(self, path: str, data: bytes) -> Any:
        return self._over(lambda: super(Store, self).put_if_absent(path, data))

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> Any:
        return self._over(lambda: super(Store, self).put_if_unchanged(path, data, version))

    def delete_if_unchanged(self, path: str, version: str) -> Any:
        return self._over(lambda: super(Store, self).delete_if_unchanged(path, version))


class Network:
    """A cluster, its group, people who ask, and a network agent at the other end of a wire."""

    def __init__(self, *, minimum: int = 1, maximum: int = 4, desired: int = 2) -> None:
        self.clock, self.wire, self.aws = FakeClock(NOW), Wire(), Wire()
        facts = GroupFacts(Bounds(minimum, maximum, desired), in_service=desired)
        self.groups = Groups(self.aws, facts)
        self.store, self.far = MemoryObjectStore(), Store()
        self.far.objects, self.far._writes = self.store.objects, self.store._writes
        self.far.wire = self.wire
        self.people = DocumentStore(self.store, CLUSTER, Random(1))
        self.events: list[Event] = []
        self.prices = Prices()
        self.boot()

    def boot(self) -> None:
        """Another process of the network agent, which knows nothing of the one before."""
        self.relay = Relay(
            CLUSTER,
            DocumentStore(self.far, CLUSTER, Random(2)),
            self.groups,
            AgentIdentity("gateway", "token", "1"),
            clock=self.clock,
            tell=self.events.append,
            prices=PriceWatch(self.prices, self.clock, beside=lambda work: work()),
        )

    def cut(self) -> None:
        """No packet leaves the network agent."""
        self.wire.cut = self.aws.cut = True

    def heal(self) -> None:
        self.wire.cut = self.aws.cut = False

    def give(self, kind: str, nodes: int | None = None, reason: str = "") -> str:
        self.clock.advance(timedelta(milliseconds=1))
        command = ClusterCommand(
            kind=kind, nodes=nodes, by="kim", reason=reason, since=self.clock.now()
        )
        return give(self.people, command)

    def turns(self, number: int = 1, seconds: float = 10.0) -> None:
        for _ in range(number):
            self.relay.turn()
            self.clock.advance(timedelta(seconds=seconds))

    def command(self, name: str) -> ClusterCommand:
        queue = CommandQueue(self.people)
        queue.refresh()
        found = queue.get(name)
        assert found is not None
        return found

    def became(self, name: str) -> tuple[str, str]:
        command = self.command(name)
        return command.state, command.outcome

    def sign(self) -> AgentReport:
        found = self.people.read(AgentReport, "network-agent")
        assert found is not None
        return found.document

    def told(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.type == kind]
