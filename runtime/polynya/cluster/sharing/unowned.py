"""Work that waits in units which no node has, so that somebody counts it, and once: the leader.

A node counts what waits for its own units. Those of a node that died have no owner until others
claim them, and in a frozen cluster for as long as that lasts. What waited in them is what their
last owner told; nobody looks at the landing zone of a unit that nobody has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from polynya.cluster.coordination.standing import NodeSeen
from polynya.cluster.gossip.messages import Picture, UnitHeard
from polynya.cluster.unit import JobKey
from polynya.engine.work.turns.threads import THREADS


@dataclass(frozen=True, slots=True)
class Unowned:
    """Units that no node has. `seconds` is the work in them for one node, as its own is counted."""

    units: int
    seconds: float
    oldest_seconds: float

    def as_json(self) -> dict[str, float]:
        """The figures, rounded."""
        return {
            "units": self.units,
            "seconds": round(self.seconds, 3),
            "oldest_seconds": round(self.oldest_seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class _Last:
    seconds: float
    lag_seconds: float
    at: float


class LastFigures:
    """What was told of each unit last; `now` in monotonic seconds."""

    def __init__(self) -> None:
        self._last: dict[JobKey, _Last] = {}

    def told(self, units: Iterable[UnitHeard], now: float, *, age_seconds: float = 0.0) -> None:
        """Take note of what was told `age_seconds` ago."""
        at = now - age_seconds
        for one in units:
            known = self._last.get(one.unit)
            if known is None or known.at < at:
                self._last[one.unit] = _Last(one.backlog_seconds, one.lag_seconds, at)

    def keep(self, wanted: Collection[JobKey]) -> None:
        """Forget units that nobody wants."""
        self._last = {unit: last for unit, last in self._last.items() if unit in wanted}

    def waiting(self, units: Collection[JobKey], now: float) -> Unowned:
        """What waits in these units. What waited when it was told has waited longer since."""
        waiting = [
            last
            for unit in units
            if (last := self._last.get(unit)) is not None and last.lag_seconds > 0
        ]
        seconds = sum(last.seconds for last in waiting)
        return Unowned(
            units=len(units),
            seconds=seconds / min(THREADS, len(waiting) or 1),
            oldest_seconds=max((last.lag_seconds + now - last.at for last in waiting), default=0.0),
        )


def without_owner(
    wanted: Collection[JobKey],
    own: Collection[JobKey],
    picture: Picture,
    nodes: Mapping[str, NodeSeen],
    me: str,
) -> frozenset[JobKey] | None:
    """The units that no living node has; None when this node cannot know.

    It knows when every other living node told all that it has. A unit that changes hands is among
    them until its new owner tells of it, at its next heartbeat.
    """
    had = set(own)
    for incarnation, node in nodes.items():
        if node.dead or node.state == "gone" or incarnation == me:
            continue
        heard = picture.nodes.get(incarnation)
        if heard is None or heard.heartbeat.left_out:
            return None
        had |= {one.unit for one in heard.heartbeat.units}
    return frozenset(wanted) - had
