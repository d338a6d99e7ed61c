"""Events of nodes that share work: who has what and why, and what AWS says about their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from polynya.observe.events import ErrorEvent, Event, Level, line


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDecided(Event):
    """Something was decided about a unit of work, and why."""

    reason: str
    epoch: int | None = None
    node: str | None = None

    def figures(self) -> Mapping[str, Any]:
        """The reason, and the epoch and the node where there is one."""
        named = {"epoch": self.epoch, "node": self.node}
        return {
            "reason": self.reason,
            **{key: one for key, one in named.items() if one is not None},
        }

    def text(self) -> str:
        """See `Event`."""
        epoch = f" (epoch {self.epoch})" if self.epoch is not None else ""
        return line(self.type.rpartition(".")[2], self.subject, f"{self.reason}{epoch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitClaimed(UnitDecided):
    """This node has a unit from now on."""

    type: ClassVar[str] = "unit.claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRevoked(UnitDecided):
    """This node stops a unit, to hand it over."""

    type: ClassVar[str] = "unit.revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReleased(UnitDecided):
    """This node no longer has a unit; another one may take it at once."""

    type: ClassVar[str] = "unit.released"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLost(UnitDecided):
    """Another node has a unit that this node had."""

    type: ClassVar[str] = "unit.lost"

    @property
    def level(self) -> Level:
        """It was not handed over: this node was too slow, or taken for dead."""
        return Level.CAUTION


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRaised(UnitDecided):
    """This node still has a unit, in a higher epoch."""

    type: ClassVar[str] = "unit.raised"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlanned(UnitDecided):
    """The leader, which is this node, wants a unit on a node."""

    type: ClassVar[str] = "unit.planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAlarm(UnitDecided):
    """The records of a unit contradict each other."""

    type: ClassVar[str] = "unit.alarm"

    @property
    def level(self) -> Level:
        """Somebody has to look."""
        return Level.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitWishEnded(Event):
    """What a person asked of a unit was done on this node, or cannot be done."""

    type: ClassVar[str] = "unit.wish"
    kind: str
    by: str
    done: bool
    outcome: str

    @property
    def level(self) -> Level:
        """Who asked waits for it."""
        return Level.NOTE if self.done else Level.WARNING

    def text(self) -> str:
        """See `Event`."""
        how = "" if self.done else " not done"
        return line(self.kind, self.subject, f"asked by {self.by},{how} {self.outcome}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingTrouble(Event):
    """Something of the cluster does not work; said once while it lasts."""

    type: ClassVar[str] = "sharing.trouble"
    message: str

    @property
    def level(self) -> Level:
        """Work goes on, but may not move."""
        return Level.WARNING

    def text(self) -> str:
        """See `Event`."""
        return f"{self.subject}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingRecovered(Event):
    """Everything of the cluster works again."""

    type: ClassVar[str] = "sharing.recovered"

    def text(self) -> str:
        """See `Event`."""
        return line("sharing", self.subject, "everything works again")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChanged(Event):
    """Another process leads the cluster."""

    type: ClassVar[str] = "cluster.leader"
    leader: str | None

    def text(self) -> str:
        """See `Event`."""
        return line("leader", self.subject, self.leader or "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFrozen(Event):
    """Nothing moves from now on, or things move again."""

    type: ClassVar[str] = "cluster.frozen"
    frozen: bool
    reason: str

    def text(self) -> str:
        """See `Event`."""
        return line("frozen" if self.frozen else "thawed", self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAdvised(Event):
    """AWS said something about the end of this instance, and what the node does."""

    type: ClassVar[str] = "spot.advised"
    wish: str
    reason: str

    @property
    def level(self) -> Level:
        """The node will be gone."""
        return Level.CAUTION

    def text(self) -> str:
        """See `Event`."""
        return line(self.wish, self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotUnheard(ErrorEvent):
    """The instance metadata service cannot be asked: a notice would not be seen; said once."""

    type: ClassVar[str] = "spot.unheard"
    what: ClassVar[str] = "a Spot notice would not be seen"
