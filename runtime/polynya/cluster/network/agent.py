"""The network agent: serves the clusters of its network until it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from threading import Event as Flag
from typing import Final

from polynya import __version__
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.network.prices import PriceWatch
from polynya.cluster.network.relay import Relay
from polynya.cluster.network.sign_of_life import AgentIdentity
from polynya.cluster.network.update_process import UpdateHeartbeat
from polynya.cluster.systemd import Notify
from polynya.observe.events import EventSink
from polynya.observe.metrics import Metric, MetricGroup, MetricsSink, Minute
from polynya.store.clock import Clock
from polynya.store.jobs import MachinePrices, NodeGroups
from polynya.store.object_store import ObjectStore

POLL_SECONDS: Final = 10.0
"""How often it looks for commands."""

_REPORT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class NetworkAgentPorts:
    """The outlets of the network agent.

    `alive` is called between two clusters; `ready` once, when all are reached; `report` once a
    minute, with all relays.
    """

    alive: Callable[[], None]
    ready: Callable[[], None]
    report: Callable[[Sequence[Relay]], None]


class NetworkAgent:
    """Turns of all relays."""

    def __init__(
        self,
        relays: Sequence[Relay],
        ports: NetworkAgentPorts,
        *,
        clock: Clock,
        poll_seconds: float,
        heartbeat: UpdateHeartbeat | None = None,
    ) -> None:
        self._relays, self._ports, self._clock = relays, ports, clock
        self._heartbeat = heartbeat or UpdateHeartbeat(None)
        self._poll_seconds = poll_seconds
        self._ready = False
        self._reported = float("-inf")

    def run(self, stop: Flag) -> None:
        """Serve until `stop` is set; then say so in each cluster."""
        while not stop.is_set():
            self.turn()
            stop.wait(self._poll_seconds)
        for relay in self._relays if self._heartbeat.may_serve else ():
            relay.leave()

    def turn(self) -> None:
        """Serve each cluster once; while it is on trial only look at each."""
        serves = self._heartbeat.may_serve
        for relay in self._relays:
            if serves:
                relay.turn(update=self._heartbeat.trouble)
            else:
                relay.watch()
            self._ports.alive()
        self._heartbeat.beat(connected=all(relay.reached for relay in self._relays))
        if not serves:
            return
        if not self._ready and all(relay.link.connected for relay in self._relays):
            self._ready = True
            self._ports.ready()
        if self._clock.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = self._clock.monotonic()
            with suppress(OSError):
                self._ports.report(self._relays)


METRIC: Final = "NetworkAgentConnected"
"""1 while it reaches a cluster, else 0: with the dimension `Cluster`, once a minute."""


@dataclass(frozen=True, slots=True)
class NetworkAgentSettings:
    """What a network agent is started with.

    `name` is its own, `clusters` those that it serves; `metrics` takes the figures of each minute.
    """

    name: str
    clusters: Sequence[str]
    poll_seconds: float
    metrics: MetricsSink | None


def make_network_agent(
    settings: NetworkAgentSettings,
    store: ObjectStore,
    groups: NodeGroups,
    prices: MachinePrices,
    *,
    clock: Clock,
    notify: Notify,
    tell: EventSink,
    heartbeat: UpdateHeartbeat | None = None,
) -> NetworkAgent:
    """Put it together; nothing is read or written yet. `heartbeat` goes to the keeper."""
    random = SystemRandom()
    me = AgentIdentity(settings.name, f"{random.getrandbits(64):016x}", __version__)
    relays = [
        Relay(
            cluster,
            DocumentStore(store, cluster, random),
            groups,
            me,
            clock=clock,
            tell=tell,
            prices=PriceWatch(prices, clock),
        )
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
        figure = MetricGroup({}, (Metric(METRIC, "Count", int(connected)),))
        state = "connected" if connected else "disconnected"
        return Minute(clock.now(), relay.cluster, settings.name, state, (figure,))

    ports = NetworkAgentPorts(
        alive=lambda: notify("WATCHDOG=1"), ready=lambda: notify("READY=1"), report=report
    )
    return NetworkAgent(
        relays, ports, clock=clock, poll_seconds=settings.poll_seconds, heartbeat=heartbeat
    )
