"""Whether a unit of our plan may be claimed: a pure function from facts to a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from polynya.cluster.coordination.census import Verdict
from polynya.cluster.coordination.documents import Ownership


@dataclass(frozen=True, slots=True)
class Claim:
    """Take it, in this epoch."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave it for now."""

    reason: str


Decision: TypeAlias = Claim | Wait


def decide(
    record: Ownership | None,
    *,
    me: str,
    owner: Verdict,
    waited: float,
    hand_off: float,
    floor: int,
) -> Decision:
    """Decide about a unit that the leader wants this node to have.

    Args:
        record: who owns it, None when nobody ever did.
        me: our incarnation.
        owner: what the process in the record is.
        waited: seconds since this node saw this very record first.
        hand_off: how long an owner that lives is waited for.
        floor: the highest epoch that was seen of this unit anywhere, such as in its table.
    """
    if record is None:
        return Claim(floor + 1, "nobody had it before")
    epoch = max(record.epoch, floor) + 1
    if record.owner is None:
        return Claim(epoch, "its last owner released it")
    name = record.node or record.owner
    if record.owner == me:
        # Claimed by a write whose answer was lost, or kept since before our lease ran out.
        return Claim(epoch, "the record says that it is ours")
    if owner in {"gone", "dead"}:
        how = "left" if owner == "gone" else "did not renew its lease"
        return Claim(epoch, f"{name} {how}")
    if waited >= hand_off:
        # Safe: each commit of the former owner is refused from our first one on.
        return Claim(epoch, f"{name} did not release it within {hand_off:.0f} s")
    return Wait(f"{name} still has it")
