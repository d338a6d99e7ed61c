"""The network agent: it serves the clusters of its network, one after the other, until it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event as Flag
from typing import Final

from polynya.cluster.network.relay import Relay
from polynya.cluster.network.updating.heartbeat import Heartbeat
from polynya.store.clock import Clock

POLL_SECONDS: Final = 10.0
"""How often it looks for commands."""

_REPORT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Ports:
    """What the agent tells to whom.

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
        ports: Ports,
        *,
        clock: Clock,
        poll_seconds: float,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self._relays, self._ports, self._clock = relays, ports, clock
        self._heartbeat = heartbeat or Heartbeat(None)
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
