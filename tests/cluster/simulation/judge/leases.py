"""What the oracle remembers of each lease: its renewals."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(slots=True)
class Leases:
    """By the place of the lease: when its newest renewal was sent, and what it says.

    `state` None: there is none.
    """

    sent: dict[str, float] = field(default_factory=dict)
    state: dict[str, str | None] = field(default_factory=dict)
    _made: dict[str, list[float]] = field(default_factory=dict)

    def renewed(self, path: str, sent: float, made: float, state: str | None) -> None:
        """It was written, at `made`, by a request that was sent before."""
        self.sent[path] = max(sent, self.sent.get(path, 0.0))
        self._made.setdefault(path, []).append(made)
        self.state[path] = state

    def silence(self, path: str, since: float, now: float) -> float:
        """The longest time without a renewal that ended after `since`, in seconds."""
        moments = [*self._made.get(path, []), now]
        gaps = (after - before for before, after in pairwise(moments) if after > since)
        return max(gaps, default=float("inf"))

    def lapsed(self, path: str, most: float) -> float | None:
        """When its newest renewal was sent, if the one before was longer ago than `most`."""
        made = self._made.get(path, [])
        late = len(made) > 1 and self.sent[path] - made[-2] > most
        return self.sent[path] if late else None

    def gone(self, path: str) -> bool:
        """Whether it was given up, or there is none."""
        return self.state.get(path) in {None, "gone"}
