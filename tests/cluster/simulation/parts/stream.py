"""The stream between the nodes: records that may be lost, doubled, late, old, garbage or lies.

What it carries is advice. A process that hears nonsense has to stay right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.cluster.simulation.parts.world import World


@dataclass(frozen=True, slots=True)
class StreamRates:
    """How often a record has which fault, as a share; `gone`: nothing arrives at all."""

    lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    replayed: float = 0.0
    garbage: float = 0.0
    gone: bool = False


@dataclass(slots=True)
class Stream:
    """Delivers what anybody puts to everybody who listens, within two seconds when all is well."""

    world: World
    rates: StreamRates
    heals: float
    counts: Counter[str]
    listeners: dict[str, Callable[[bytes], None]] = field(default_factory=dict)
    _told: list[bytes] = field(default_factory=list)

    def put(self, data: bytes) -> None:
        """Put a record."""
        self._told.append(data)
        for name in list(self.listeners):
            for delay in self._delays():
                self._deliver_after(delay, name, data)
            if self._strikes(self.rates.replayed, "record replayed"):
                self._deliver_after(1.0, name, self.world.random.choice(self._told))
            if self._strikes(self.rates.garbage, "record of garbage"):
                self._deliver_after(1.0, name, self._garbage(data))

    def _delays(self) -> list[float]:
        if self.world.now < self.heals and self.rates.gone:
            self.counts["record lost"] += 1
            return []
        if self._strikes(self.rates.lost, "record lost"):
            return []
        delay = 0.2 + 1.8 * self.world.random.random()
        if self._strikes(self.rates.late, "record late or overtaken"):
            delay += 60 * self.world.random.random()
        again = [delay + 5.0] if self._strikes(self.rates.doubled, "record doubled") else []
        return [delay, *again]

    def _strikes(self, rate: float, name: str) -> bool:
        if not rate or self.world.now >= self.heals or self.world.random.random() >= rate:
            return False
        self.counts[name] += 1
        return True

    def _garbage(self, data: bytes) -> bytes:
        """Damage to a record, or a lie in its form."""
        random, told = self.world.random, json.loads(data)
        place = random.randrange(len(data))
        lies = (
            {"v": 2},
            {"seq": 2**62},
            {"seq": -1},
            {"units": [{"task": "t", "name": "u0", "epoch": 10**6, "load": 1e9}]},
            {"incarnation": "nobody.0"},
            {"cluster": "../other"},
            {"type": "released", "to": []},
            {"type": "planned", "to": ["nobody.0"] * 60},
        )
        return random.choice(
            (
                data[:place],
                data[:place] + bytes([random.randrange(256)]) + data[place + 1 :],
                b"\xff\x00" * 10,
                json.dumps({**told, **random.choice(lies)}).encode(),
            )
        )

    def _deliver_after(self, seconds: float, name: str, data: bytes) -> None:
        def deliver() -> None:
            if name in self.listeners:
                self.listeners[name](data)

        self.world.after(seconds, deliver)
