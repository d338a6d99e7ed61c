"""The network agent: it serves the clusters of its network, one after the other, until it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event as Flag
from typing import Final

from polynya.cluster.network.relay import Relay
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
        self, relays: Sequence[Relay], ports: Ports, *, clock: Clock, poll_seconds: float
    ) -> None:
        self._relays, self._ports, self._clock = relays, ports, clock
        self._poll_seconds = poll_seconds
        self._ready = False
        self._reported = float("-inf")

    def run(self, stop: Flag) -> None:
        """Serve until `stop` is set; then say so in each cluster."""
        while not stop.is_set():
            self.turn()
            stop.wait(self._poll_seconds)
        for relay in self._relays:
            relay.leave()

    def turn(self) -> None:
        """Serve each cluster once."""
        for relay in self._relays:
            relay.turn()
            self._ports.alive()
        if not self._ready and all(relay.link.connected for relay in self._relays):
            self._ready = True
            self._ports.ready()
        if self._clock.monotonic() - self._reported >= _REPORT_SECONDS:
            self._reported = self._clock.monotonic()
            with suppress(OSError):
                self._ports.report(self._relays)
