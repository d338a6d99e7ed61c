"""An EC2 Auto Scaling group and a Spot market, minute by minute.

What is modelled, and where AWS says it (EC2 Auto Scaling User Guide, CloudFormation reference):
- a Spot launch that fails is tried again, and never becomes an On-Demand launch;
- after a change of base or percentage, nodes whose kind is no longer wanted are replaced one at a
  time, the new one first ("launches new instances before terminating the previous ones");
- a node that the market takes back is replaced like any missing node;
- a node serves some minutes after its launch only;
- events of failed launches are best effort: a scenario may lose them; a failed launch is always
  among the group's activities.
Not modelled: several Spot pools (the market is all of them together), zones, quotas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from polynya_constructs.functions.spot_fallback.decision import Mix

BOOT_MINUTES = 3
"""From launch to service; the warm-up of the strategies is the same three minutes."""


@dataclass(slots=True)
class Node:
    """A running node; `launched` is the minute of its launch."""

    spot: bool
    launched: int

    def serves(self, minute: int) -> bool:
        """Tell whether it has booted."""
        return minute - self.launched >= BOOT_MINUTES


@dataclass(slots=True)
class Group:
    """One group: its desired and its actual nodes.

    `failures` are the minutes of failed launches; `replacing` is set while a node of a wanted
    kind boots beside the one that it is to replace.
    """

    desired: int
    mix: Mix
    nodes: list[Node] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    replacing: bool = False

    def alive(self, *, spot: bool) -> int:
        """Nodes of a kind that run or boot."""
        return sum(node.spot == spot for node in self.nodes)

    def serving(self, minute: int) -> int:
        """Nodes that work."""
        return sum(node.serves(minute) for node in self.nodes)

    def reclaim(self, room: int, random: Random) -> None:
        """The market takes back the Spot nodes that it has no room for."""
        spot = [node for node in self.nodes if node.spot]
        for node in random.sample(spot, max(len(spot) - room, 0)):
            self.nodes.remove(node)

    def step(self, minute: int, room: int) -> int:
        """One minute of the service; returns how many Spot nodes it ended to change the mix."""
        self.replacing = self.replacing and len(self.nodes) > self.desired
        while len(self.nodes) > self.desired + self.replacing:
            self._end_surplus()
        for _ in range(self.desired - len(self.nodes)):
            self._launch(minute, room, spot=self._lacks(spot=True))
        return self._replace_one(minute, room)

    def _wanted(self, *, spot: bool) -> int:
        share = self.mix.spot_share(self.desired)
        return share if spot else self.desired - share

    def _lacks(self, *, spot: bool) -> bool:
        """On-Demand is filled first: Spot lacks only what On-Demand does not."""
        if spot and self._lacks(spot=False):
            return False
        return self.alive(spot=spot) < self._wanted(spot=spot)

    def _launch(self, minute: int, room: int, *, spot: bool) -> bool:
        if spot and self.alive(spot=True) >= room:
            self.failures.append(minute)
            return False
        self.nodes.append(Node(spot, minute))
        return True

    def _replace_one(self, minute: int, room: int) -> int:
        if self.replacing:
            if not self.nodes[-1].serves(minute):
                return 0
            self.replacing = False
            return int(self._end_surplus())
        full = len(self.nodes) == self.desired
        for spot in (False, True):
            if full and self._lacks(spot=spot):
                self.replacing = self._launch(minute, room, spot=spot)
                break
        return 0

    def _end_surplus(self) -> bool:
        """End the oldest node of the type that has too many; returns whether that is Spot."""
        spot = self.alive(spot=True) > self._wanted(spot=True)
        if not spot and not self.alive(spot=False):
            spot = True
        oldest = min((n for n in self.nodes if n.spot == spot), key=lambda node: node.launched)
        self.nodes.remove(oldest)
        return spot
