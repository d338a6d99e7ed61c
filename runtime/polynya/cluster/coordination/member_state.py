"""The input of a member's turn, and the member's state after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from polynya.cluster.coordination.documents import Freeze, NodeState
from polynya.cluster.unit import JobKey

T = TypeVar("T")

#: Turns are spread, so that many nodes do not ask at the same time: the next one is due after this
#: part of its time at the earliest.
SHORTEST: Final = 0.8


class Together(Protocol):
    """Does several independent requests, at the same time where it can; results in their order.

    None of the calls raises.
    """

    def __call__(self, calls: Sequence[Callable[[], T]], /) -> list[T]:
        """The results, in the order of the calls."""
        ...


def one_by_one(calls: Sequence[Callable[[], T]], /) -> list[T]:
    """The requests one after the other."""
    return [call() for call in calls]


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """This node. `capacity`: how much work it can do next to others, such as its processors.

    `machine` and `zone` are those of its instance, "" outside of EC2.
    """

    node: str
    on_demand: bool = False
    capacity: float = 1.0
    version: str = ""
    machine: str = ""
    zone: str = ""


@dataclass(frozen=True, slots=True)
class CoordinationPace:
    """Times of the protocol, in seconds, and its limits.

    Attributes:
        turn: between two turns, without a hint.
        renew: between two renewals of a lease.
        ttl: a lease that was not renewed for this long is dead.
        trust: part of `ttl` for which a node trusts its own lease since it sent the last renewal.
        hand_off: longest wait for an owner that lives to release a unit.
        balance: between two plans that only balance; what is urgent is planned at once.
        learn: a node whose units have differed from the leader's for so long says how.
        forget: leases and plans that are dead for so long are deleted.
        claims_per_second: of all nodes together, below the limits of an object store. A fifth more
            while they begin, which they do within one turn.
        most: requests of one kind in one turn, of a node that does not lead.
        soon: until the next turn when this one left something to do.
        audits: how many of its own units a node rereads in each turn.
    """

    turn: float = 5.0
    renew: float = 10.0
    ttl: float = 30.0
    trust: float = 0.8
    hand_off: float = 90.0
    balance: float = 30.0
    learn: float = 60.0
    forget: float = 3600.0
    claims_per_second: float = 2500.0
    most: int = 100
    soon: float = 1.0
    audits: int = 2


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The input of a turn: the facts of this node.

    Attributes:
        wanted: units of the configuration in force on this node, without those of stopped tasks;
            None while there is no configuration: then the node is not a member yet.
        working: units whose jobs run, also those that were told to stop.
        draining: the node must end; this never changes back.
        leaving: why it must, for people.
        loads: measured load of units; of others it is their mean.
        heavy: units that cost much to move.
        fenced: units whose run ended since the last turn because their table belongs to another
            epoch, with the epoch that was found there.
    """

    wanted: frozenset[JobKey] | None
    working: frozenset[JobKey] = frozenset()
    draining: bool = False
    leaving: str = ""
    loads: Mapping[JobKey, float] = field(default_factory=dict)
    heavy: frozenset[JobKey] = frozenset()
    fenced: Mapping[JobKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """What this member knows of one process of the cluster.

    Attributes:
        state: what its lease says, None when this member has not read it.
        dead: its lease was not renewed in time.
        drained_by: the author of its drain, None without one.
        silent_seconds: since this member saw its lease renewed.
        planned: units of its plan, None when this member does not lead.
    """

    incarnation: str
    node: str
    state: NodeState | None
    dead: bool
    silent_seconds: float
    on_demand: bool = False
    drained_by: str | None = None
    planned: int | None = None


MemberActionKind: TypeAlias = Literal[
    "claimed", "released", "lost", "raised", "revoked", "planned", "alarm"
]


@dataclass(frozen=True, slots=True)
class MemberAction:
    """Something that was done in this turn, and why.

    claimed: the unit is ours from now on, in `epoch`. released: it has no owner. revoked: it has to
    stop, then it is released. lost: it is another node's. raised: it is still ours, in a higher
    epoch. planned: as the leader we want it on `node`. alarm: the records contradict each other.
    """

    what: MemberActionKind
    unit: JobKey
    reason: str
    epoch: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member knows after a turn.

    Attributes:
        incarnation: this process, as others know it.
        grants: units that this node may work on, each with its epoch. Valid until `grants_until`,
            in monotonic seconds of the member's clock; without newer ones the node stops them then.
        revoked: units to stop; once they are no longer among `NodeFacts.working` they are released.
        state: what our lease says; None while the node is not a member.
        left: all is released and the lease says gone; the process may end.
        leader: the incarnation that leads, as far as known.
        leading: it is this one.
        frozen: nothing moves; the author of the freeze.
        held: nothing moves, because of that or because the store did not say in this turn.
        nodes: all processes with a lease.
        waiting: units of our plan that are not ours yet, each with what it waits for.
        actions: what was done in this turn.
        troubles: what went wrong in this turn, each with its error code.
        next_turn_seconds: when the next turn is due; sooner on a hint.
    """

    incarnation: str
    grants: Mapping[JobKey, int] = field(default_factory=dict)
    grants_until: float = 0.0
    revoked: frozenset[JobKey] = frozenset()
    state: NodeState | None = None
    left: bool = False
    leader: str | None = None
    leading: bool = False
    frozen: Freeze | None = None
    held: bool = False
    nodes: Mapping[str, ObservedNode] = field(default_factory=dict)
    waiting: Mapping[JobKey, str] = field(default_factory=dict)
    actions: tuple[MemberAction, ...] = ()
    troubles: tuple[str, ...] = ()
    next_turn_seconds: float = 5.0
