"""Processes, heartbeats and streams that tests of gossip begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from polynya.cluster.gossip.machine import Busy
from polynya.cluster.gossip.messages import (
    Heartbeat,
    NodeReport,
    Sender,
    UnitReport,
)
from polynya.cluster.gossip.stream import StreamGossip
from polynya.cluster.unit import JobKey
from polynya.store.streams import RecordStream
from polynya.testing.fakes import FakeClock

CLUSTER = "shop"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def process(name: str = "n1", cluster: str = CLUSTER) -> Sender:
    return Sender(cluster, name, f"{name}.1")


def unit(name: str = "orders", **parts: Any) -> UnitReport:
    known: dict[str, Any] = {
        "unit": JobKey("sales", f"shop.{name}"),
        "epoch": 3,
        "load": 0.25,
        "lag_seconds": 1.5,
        "backlog_seconds": 2.0,
        "state": "running",
    }
    return UnitReport(**{**known, **parts})


def heartbeat(seq: int = 1, *units: UnitReport, sender: Sender | None = None, **parts: Any) -> Any:
    known: dict[str, Any] = {
        "sender": sender or process(),
        "seq": seq,
        "at": AT,
        "state": "running",
        "cpu": 0.5,
        "memory": 0.75,
        "units": units,
    }
    return Heartbeat(**{**known, **parts})


def names(units: Iterable[UnitReport]) -> list[str]:
    return [one.unit.name.removeprefix("shop.") for one in units]


class Node:
    """A process that gossips in turns.

    `woken` counts reasons to look at the store, `landed` is what hints say of landed objects.
    """

    def __init__(
        self, name: str, stream: RecordStream, clock: FakeClock, cluster: str = CLUSTER
    ) -> None:
        self.me = process(name, cluster)
        self.woken = 0
        self.landed: list[frozenset[str]] = []
        draws = count(len(name) + sum(name.encode()))
        self.gossip = StreamGossip(
            self.me,
            stream,
            clock=clock,
            draw=lambda: next(draws) * 0.618 % 1,
            wake=self._wake,
            landed=self.landed.append,
            look=lambda: Busy(0.5, 0.75),
        )
        self.works()

    def works(self, *units: UnitReport, state: str = "running") -> None:
        self.gossip.publish(NodeReport(state, units))

    def hears(self) -> Mapping[str, Any]:
        """What it knows of each process, by node."""
        heard = self.gossip.picture().nodes.values()
        return {one.heartbeat.sender.node: one for one in heard}

    def _wake(self) -> None:
        self.woken += 1


def let_pass(seconds: float, clock: FakeClock, *nodes: Node) -> None:
    """Let time pass, and each node take the turns that it wants."""
    end = clock.monotonic() + seconds
    due = {node: clock.monotonic() for node in nodes}
    while (now := min(due.values())) <= end:
        clock.sleep(max(now - clock.monotonic(), 0.0))
        for node in nodes:
            if due[node] <= now:
                due[node] = now + max(node.gossip.turn(), 0.05)
    clock.sleep(max(end - clock.monotonic(), 0.0))
