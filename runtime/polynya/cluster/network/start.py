"""Put a network agent together: the store, the groups, the service manager, its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

from polynya import __version__
from polynya.cluster.coordination.register import Register
from polynya.cluster.network.agent import NetworkAgent, Ports
from polynya.cluster.network.relay import Relay
from polynya.cluster.network.sign_of_life import Me
from polynya.cluster.network.updating.heartbeat import Heartbeat
from polynya.cluster.systemd import Notify
from polynya.observe.events import EventSink
from polynya.observe.figures import Figures, Metric, MetricsSink, Minute
from polynya.store.clock import Clock
from polynya.store.node_groups import NodeGroups
from polynya.store.object_store import ObjectStore

METRIC: Final = "NetworkAgentConnected"
"""1 while it reaches a cluster, else 0: with the dimension `Cluster`, once a minute."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a network agent is started with.

    `name` is its own, `clusters` those that it serves; `metrics` takes the figures of each minute.
    """

    name: str
    clusters: Sequence[str]
    poll_seconds: float
    metrics: MetricsSink | None


def make_network_agent(
    settings: Settings,
    store: ObjectStore,
    groups: NodeGroups,
    *,
    clock: Clock,
    notify: Notify,
    tell: EventSink,
    heartbeat: Heartbeat | None = None,
) -> NetworkAgent:
    """Put it together; nothing is read or written yet. `heartbeat` is for who keeps it."""
    random = SystemRandom()
    me = Me(settings.name, f"{random.getrandbits(64):016x}", __version__)
    relays = [
        Relay(cluster, Register(store, cluster, random), groups, me, clock=clock, tell=tell)
        for cluster in dict.fromkeys(settings.clusters)
    ]

    def report(relays: Sequence[Relay]) -> None:
        connected = [relay for relay in relays if relay.link.connected]
        notify(f"STATUS={len(connected)} of {len(relays)} clusters connected")
        for relay in relays:
            if settings.metrics is not None:
                settings.metrics(minute(relay))

    def minute(relay: Relay) -> Minute:
        connected = relay.link.connected
        figure = Figures({}, (Metric(METRIC, "Count", int(connected)),))
        state = "connected" if connected else "disconnected"
        return Minute(clock.now(), relay.cluster, settings.name, state, (figure,))

    ports = Ports(
        alive=lambda: notify("WATCHDOG=1"), ready=lambda: notify("READY=1"), report=report
    )
    return NetworkAgent(
        relays, ports, clock=clock, poll_seconds=settings.poll_seconds, heartbeat=heartbeat
    )
