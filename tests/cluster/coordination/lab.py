"""A cluster in memory: members that take turns, on a clock that moves when told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import (
    MemberAction,
    MemberState,
    NodeFacts,
    NodeIdentity,
)
from polynya.cluster.coordination.store import unit_path
from polynya.cluster.placement import PlacementRules, propose
from polynya.cluster.unit import JobKey
from polynya.model.errors import DependencyError
from polynya.store.object_store import Content, ObjectInfo, ObjectStore
from polynya.testing.fakes import FakeClock, MemoryObjectStore

T = TypeVar("T")
CLUSTER = "main"


def units(count: int) -> frozenset[JobKey]:
    return frozenset(JobKey(f"t{number % 3}", f"shop.u{number}") for number in range(count))


def outage(path: str) -> DependencyError:
    return DependencyError("POLYNYA-AWS-003", "no answer", where=path)


class FaultyStore:
    """A store that counts requests, and fails those that `before` or `after` raise for.

    `before`: the request does not arrive. `after`: it does, and its answer is lost.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.requests: Counter[str] = Counter()
        self.before: Callable[[str, str], None] = lambda kind, path: None
        self.after: Callable[[str, str], None] = lambda kind, path: None

    def _do(self, kind: str, path: str, call: Callable[[], T]) -> T:
        self.requests[kind] += 1
        self.before(kind, path)
        result = call()
        self.after(kind, path)
        return result

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return iter(self._do("list", prefix, lambda: [*self.inner.list(prefix)]))

    def beginning(self, start: str, after: str = "") -> Iterator[ObjectInfo]:
        return iter(self._do("list", start, lambda: [*self.inner.beginning(start, after)]))

    def read(self, path: str, limit: int) -> Content:
        return self._do("read", path, lambda: self.inner.read(path, limit))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._do("put", path, lambda: self.inner.put_if_absent(path, data))

    def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
        return self._do("put", path, lambda: self.inner.put_if_unchanged(path, data, version))

    def delete(self, path: str) -> None:
        raise AssertionError(f"{path} is deleted without a condition")

    def delete_if_unchanged(self, path: str, version: str) -> bool:
        return self._do("delete", path, lambda: self.inner.delete_if_unchanged(path, version))

    def size(self, path: str) -> int:
        return self.inner.size(path)

    def open(self, path: str) -> Any:
        return self.inner.open(path)

    def get(self, path: str) -> bytes:
        return self.inner.get(path)

    def put(self, path: str, data: bytes) -> None:
        raise AssertionError(f"{path} is written without a condition")


class Node:
    """A member with jobs that start when granted, and stop before its next turn when not."""

    def __init__(self, lab: Lab, name: str, seed: int) -> None:
        self.lab, self.name = lab, name
        self.store = FaultyStore(lab.store)
        self.wanted: frozenset[JobKey] | None = lab.wanted
        self.jobs: set[JobKey] = set()
        self.draining = False
        self.stubborn = False
        self.fenced: dict[JobKey, int] = {}
        self.loads: dict[JobKey, float] = {}
        self.member_state: MemberState | None = None
        self.history: list[MemberAction] = []
        self.member = Member(
            self.store,
            CLUSTER,
            NodeIdentity(name),
            partial(propose, rules=PlacementRules()),
            clock=lab.clock,
            random=Random(seed),
        )

    def turn(self) -> MemberState:
        fenced, self.fenced = self.fenced, {}
        seen = NodeFacts(
            wanted=self.wanted,
            working=frozenset(self.jobs),
            draining=self.draining,
            leaving="Spot interruption notice" if self.draining else "",
            fenced=fenced,
            loads=self.loads,
        )
        member_state = self.member_state = self.member.turn(seen)
        self.history += member_state.actions
        if not self.stubborn:
            self.jobs &= member_state.grants.keys()
        if self.lab.clock.monotonic() < member_state.grants_until:
            self.jobs |= member_state.grants.keys()
        return member_state

    @property
    def granted(self) -> frozenset[JobKey]:
        """What it may work on now."""
        if (
            self.member_state is None
            or self.lab.clock.monotonic() >= self.member_state.grants_until
        ):
            return frozenset()
        return frozenset(self.member_state.grants)

    def did(self, what: str) -> list[MemberAction]:
        return [one for one in self.history if one.what == what]


class Lab:
    """Some nodes, their store and their clock."""

    def __init__(self, count: int = 0, wanted: int = 0, store: ObjectStore | None = None) -> None:
        self.store = store or MemoryObjectStore()
        self.clock = FakeClock()
        self.wanted = units(wanted)
        self.nodes: list[Node] = []
        self._seeds = 0
        for number in range(count):
            self.add(f"n{number}")

    def add(self, name: str) -> Node:
        self._seeds += 1
        node = Node(self, name, seed=self._seeds)
        self.nodes.append(node)
        return node

    def kill(self, node: Node) -> None:
        self.nodes.remove(node)

    def passes(self, seconds: float, *, turn: float = 5.0) -> None:
        """Time passes in which every node takes its turns."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            for node in self.nodes:
                node.turn()
            self.clock.advance(timedelta(seconds=turn))

    def owners(self) -> dict[JobKey, list[str]]:
        """The nodes that may work on each unit."""
        return {
            unit: [node.name for node in self.nodes if unit in node.granted]
            for unit in sorted(self.wanted)
        }

    def settled(self) -> bool:
        """Each unit is granted to exactly one node."""
        return all(len(names) == 1 for names in self.owners().values())

    def record(self, unit: JobKey) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.store.get(f"{CLUSTER}/{unit_path(unit)}"))
        return found

    def leaders(self) -> list[str]:
        return [node.name for node in self.nodes if node.member_state and node.member_state.leading]
