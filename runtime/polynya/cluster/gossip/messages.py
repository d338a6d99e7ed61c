"""What nodes are told: reports, heartbeats and hints, and the picture of all nodes.

Shares are from 0 to 1, times in UTC, durations in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from polynya.cluster.unit import JobKey

HintKind: TypeAlias = Literal["released", "planned"]


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message: a process of a node of a cluster."""

    cluster: str
    node: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class UnitReport:
    """A unit that a node works on.

    Attributes:
        unit: its name.
        epoch: of its ownership, 0 without coordination.
        load: busy seconds per second, a moving average.
        lag_seconds: how long its oldest landed file that no view shows yet has been known.
        backlog_seconds: work that waits, in seconds.
        state: of its work there, such as `running` or `suspended`; empty if it was not sent.
        reason: what its work waits for, such as a pause after a failure or a decision; or empty.
    """

    unit: JobKey
    epoch: int
    load: float
    lag_seconds: float
    backlog_seconds: float
    state: str = ""
    reason: str = ""

    @property
    def waits(self) -> bool:
        """Whether its work waits for something, or for a decision."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node's report of itself; the rest of a heartbeat is added when it is sent."""

    state: str
    units: tuple[UnitReport, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A node's report of itself, or one part of it.

    Attributes:
        sender: the process that sent it.
        seq: grows by one with each message of a sender.
        at: the sender's clock, only for display.
        state: of the node: `starting`, `running`, `draining` or `stopped`.
        cpu: share of its processors that is busy, None when it does not know.
        memory: share of its memory that is in use, None when it does not know.
        units: those that it works on.
        part: number of this part, from 1.
        parts: in how many records the heartbeat was sent.
        left_out: the number of units that did not fit.
    """

    sender: Sender
    seq: int
    at: datetime
    state: str
    cpu: float | None
    memory: float | None
    units: tuple[UnitReport, ...]
    part: int = 1
    parts: int = 1
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Hint:
    """A reason to look at the store now: units were released, or plans changed.

    `to` are the incarnations that it concerns, all when empty.
    """

    kind: HintKind
    sender: Sender
    seq: int
    at: datetime
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LandedHint:
    """A reason to list landing folders now: a function outside the cluster saw objects land.

    `starts` are how the keys of the objects begin; an empty one: anywhere in the landing bucket.
    """

    sender: Sender
    seq: int
    at: datetime
    starts: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReceivedHeartbeat:
    """The newest report of one process, and how many seconds ago it was received."""

    heartbeat: Heartbeat
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of the others.

    Attributes:
        nodes: the other processes of the cluster, by incarnation.
        skipped: records that were passed over since the start, by why.
        trouble: why nothing can be sent or received at present, None when all is well.
        readers: processes of all clusters that share the stream, this one included.
    """

    nodes: Mapping[str, ReceivedHeartbeat] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    trouble: str | None = None
    readers: int = 1

    def loads(self) -> dict[JobKey, float]:
        """The load of each unit, as its owner reported it.

        Two processes may name a unit while it moves: the higher epoch counts, then the newest one.
        """
        newest: dict[JobKey, tuple[int, float, float]] = {}
        for peer in self.nodes.values():
            for unit in peer.heartbeat.units:
                report = (unit.epoch, -peer.age_seconds, unit.load)
                newest[unit.unit] = max(newest.get(unit.unit, report), report)
        return {unit: load for unit, (_, _, load) in newest.items()}
