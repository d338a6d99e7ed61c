"""What a node tells the others, and what it has heard of them: values only.

Shares are parts of one, 0 to 1. Times are in UTC, durations in seconds.
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
    """Who tells: a process of a node of a cluster."""

    cluster: str
    node: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class UnitHeard:
    """A unit that a node works on.

    Attributes:
        unit: its name.
        epoch: of its ownership, 0 without coordination.
        load: busy seconds per second, a moving average.
        lag_seconds: how long its oldest landed file that no view shows yet has been known.
        backlog_seconds: work that waits, in seconds.
        state: of its work there, such as `running` or `suspended`; empty when it was not told.
        reason: what its work waits for, after a failure or for somebody; empty when it does not.
    """

    unit: JobKey
    epoch: int
    load: float
    lag_seconds: float
    backlog_seconds: float
    state: str = ""
    reason: str = ""

    @property
    def is_ill(self) -> bool:
        """Whether its work waits for something, or for somebody."""
        return bool(self.reason)


@dataclass(frozen=True, slots=True)
class Report:
    """What a node has to tell of itself; the rest of a heartbeat is added when it is sent."""

    state: str
    units: tuple[UnitHeard, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a node told of itself, or one part of it.

    Attributes:
        sender: who told it.
        seq: grows by one with each message of a sender.
        at: the sender's clock, for people only.
        state: of the node: `starting`, `running`, `draining` or `stopped`.
        cpu: share of its processors that is busy, None when it does not know.
        memory: share of its memory that is in use, None when it does not know.
        units: those that it works on.
        part: number of this part, from 1.
        parts: in how many records the heartbeat was sent.
        left_out: units for which there was no room.
    """

    sender: Sender
    seq: int
    at: datetime
    state: str
    cpu: float | None
    memory: float | None
    units: tuple[UnitHeard, ...]
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
class Heard:
    """The newest of what one process told, and how many seconds ago that was heard."""

    heartbeat: Heartbeat
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of the others.

    Attributes:
        nodes: the other processes of the cluster, by incarnation.
        skipped: records that were passed over since the start, by why.
        trouble: why nothing can be told or heard at present, None when all is well.
    """

    nodes: Mapping[str, Heard] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    trouble: str | None = None

    def loads(self) -> dict[JobKey, float]:
        """The load of each unit, as its owner told it.

        While a unit moves two processes may name it: the higher epoch counts, then the newer word.
        """
        told: dict[JobKey, tuple[int, float, float]] = {}
        for heard in self.nodes.values():
            for one in heard.heartbeat.units:
                word = (one.epoch, -heard.age_seconds, one.load)
                told[one.unit] = max(told.get(one.unit, word), word)
        return {unit: load for unit, (_, _, load) in told.items()}
