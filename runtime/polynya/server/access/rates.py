"""Limits of how often an address or a person may ask: token buckets with a bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from polynya.store.clock import Clock


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests at once, which fill up again at so many a second."""

    at_once: float
    each_second: float


class RateLimits:
    """Buckets by name. Usable from many threads.

    The least recently used names are forgotten beyond `most`; a forgotten one begins full.
    """

    def __init__(self, rate: Rate, clock: Clock, most: int = 10_000) -> None:
        self._rate, self._clock, self._most = rate, clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str, cost: float = 1.0) -> float:
        """Take `cost` of a bucket: 0 if it was there, else the seconds until it will be."""
        rate, now = self._rate, self._clock.monotonic()
        with self._lock:
            left, at = self._buckets.pop(name, (rate.at_once, now))
            left = min(rate.at_once, left + (now - at) * rate.each_second)
            enough = left >= cost
            self._buckets[name] = (left - cost if enough else left), now
            while len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return 0.0 if enough else (cost - left) / rate.each_second

    def charge(self, name: str, cost: float) -> None:
        """Take what is there, up to `cost`: afterwards the name has to wait for it."""
        rate, now = self._rate, self._clock.monotonic()
        with self._lock:
            left, at = self._buckets.pop(name, (rate.at_once, now))
            left = min(rate.at_once, left + (now - at) * rate.each_second)
            self._buckets[name] = left - cost, now

    def __len__(self) -> int:
        return len(self._buckets)
