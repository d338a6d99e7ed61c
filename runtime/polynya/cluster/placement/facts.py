"""What placement knows of nodes and units, the rules it keeps, and what it proposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from polynya.cluster.unit import JobKey

NodeState: TypeAlias = Literal["ready", "draining"]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node whose session is alive. A node that is not named is dead.

    Attributes:
        incarnation: of its process; assignments name it.
        node: its id, which outlives the process; wishes of a person name it.
        state: a draining node gets nothing and keeps nothing.
        on_demand: AWS does not take it back, as it does a Spot node.
        capacity: how much it can do, next to the others; processors, say. Above 0.
        age_seconds: since its session began.
    """

    incarnation: str
    node: str
    state: NodeState = "ready"
    on_demand: bool = False
    capacity: float = 1.0
    age_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """A unit of work that the configuration wants.

    Attributes:
        unit: which one.
        load: busy seconds per second, smoothed (`load.py`).
        heavy: costs much to move, such as one with a large state.
        moved_seconds_ago: since it went from one node to another, whatever the cause. None: not
            that the leader knows. The first placement of a unit is no move.
        pinned_to: the node that a person wants it on.
        unknown_to: incarnations whose configuration does not have it; they do not get it. Empty
            in most cases. What not all nodes know is not moved for balance.
    """

    unit: JobKey
    load: float = 0.0
    heavy: bool = False
    moved_seconds_ago: float | None = None
    pinned_to: str | None = None
    unknown_to: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """How eager placement is. A unit that has no ready node is placed at once, whatever they say.

    Attributes:
        start: nothing is moved for balance before a node is this far above the mean load; all such
            measures are parts of the mean. Wider than the band: noise begins no round of moves.
        gap: or before one is this far below it. Idle capacity hurts less than a late unit.
        band: once moves have begun, nodes this far above the mean give.
        damping: the part of an excess that is moved, so that noise is not chased.
        most_moves: moves for balance in a round.
        most_share: the same as a part of all units; the greater of the two holds. Moves for
            another cause use it up, too.
        round_seconds: how long a round is, however often the leader plans.
        rest_seconds: a unit that moved is not moved for balance for so long.
        warm_up_seconds: a node so young is filled for balance gradually.
        idle_share: what a unit weighs beside its load, as a part of the mean load of units: an idle
            one is looked after, too.
        idle_load: the same in busy seconds per second; the greater of the two holds. Where all
            units idle, differences are not worth a move.
    """

    start: float = 0.20
    gap: float = 0.25
    band: float = 0.10
    damping: float = 0.8
    most_moves: int = 6
    most_share: float = 0.10
    round_seconds: float = 60.0
    rest_seconds: float = 300.0
    warm_up_seconds: float = 120.0
    idle_share: float = 0.05
    idle_load: float = 0.005


@dataclass(frozen=True, slots=True)
class Move:
    """A unit gets another node, and why. `source` is None when it had none."""

    unit: JobKey
    source: str | None
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """The incarnation that should have each unit, and the moves that lead there.

    A unit is missing from the assignment only when no node is ready that knows it.
    """

    assignment: Mapping[JobKey, str]
    moves: tuple[Move, ...]
