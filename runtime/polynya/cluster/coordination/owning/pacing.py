"""How fast a node claims, so that all together stay below the limits of an object store. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from polynya.cluster.coordination.standing import SHORTEST, Pace

#: A turn makes about five requests besides its claims: for fewer claims than this none is hurried.
_WORTH_A_TURN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a node may claim.

    Attributes:
        per_second: claims that it gains.
        saved: claims that it keeps at most, hence those of one turn.
        hurries: whether its next turn comes soon when it may claim no more in this one.
    """

    per_second: float
    saved: float
    hurries: bool


def allowance(pace: Pace, nodes: int) -> Allowance:
    """The part of one of so many nodes.

    Units for all come at one moment: then every node has saved all that it may, and within one turn
    all of them use it up. So it is no more than what is gained from one turn to the next; what was
    saved before would come on top of what is gained since.
    """
    part = pace.claims_per_second / nodes
    hurries = part * pace.soon >= _WORTH_A_TURN
    between = pace.soon if hurries else SHORTEST * pace.turn
    return Allowance(
        per_second=min(pace.most / pace.turn, part),
        saved=max(1.0, min(float(pace.most), part * between)),
        hurries=hurries,
    )
