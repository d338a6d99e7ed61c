"""Which fault strikes which node next: pure, from the states of the nodes and a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["works", "starts", "down", "stopped", "leaves", "cut"]


class Kind(StrEnum):
    """What may strike a node."""

    KILL = "kill -9"
    STOP = "SIGSTOP"
    END = "SIGTERM"
    SPOT = "Spot notice"
    CUT = "black-out of the store"
    ERRORS = "errors of the store"


#: How often each strikes. Starting an agent again costs most of the time.
_WEIGHTS: Final = {
    Kind.KILL: 2,
    Kind.STOP: 6,
    Kind.END: 1,
    Kind.SPOT: 1,
    Kind.CUT: 6,
    Kind.ERRORS: 4,
}


#: Part of the faults that strike a node with units, and that strike the last one that works.
_OWNERS, _LAST = 0.75, 0.15


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that struck a node. `seconds` later it is healed, or the node is started again."""

    kind: Kind
    node: str
    at: datetime
    seconds: float


#: What strikes alone, in turn: what has a figure of its own.
_ALONE: Final = (Kind.SPOT, Kind.KILL, Kind.END, Kind.STOP)
#: What takes a machine away without a word.
CRASHES: Final = (Kind.KILL, Kind.STOP)


def alone(
    dice: random.Random, number: int, owners: Set[str], *, lease: float, now: datetime
) -> Struck:
    """The next fault while all nodes work: the kinds take turns, and it strikes one of `owners`.

    A crash lasts for two leases, so that others have to take the units of the node.
    """
    kind = _ALONE[number % len(_ALONE)]
    return Struck(kind, dice.choice(sorted(owners)), now, 2 * lease if kind in CRASHES else 0.0)


def drawn(
    dice: random.Random,
    states: Mapping[str, State],
    owners: Set[str],
    *,
    lease: float,
    now: datetime,
) -> Struck | None:
    """The next fault; None when all that may be struck suffer already, or nearly all.

    One node at least is left alone by everything but errors. Of four faults three strike a node of
    `owners`, those that have units, if there is one: the others have nothing to lose.
    """
    works = sorted(name for name, state in states.items() if state == "works")
    if not works or (len(works) == 1 and dice.random() > _LAST):
        return None
    kinds = list(_WEIGHTS) if len(works) > 1 else [Kind.ERRORS]
    (kind,) = dice.choices(kinds, [_WEIGHTS[one] for one in kinds])
    low, high = _lasts(kind, lease)
    own = [name for name in works if name in owners]
    node = dice.choice(own if own and dice.random() < _OWNERS else works)
    return Struck(kind, node, now, dice.uniform(low, high))


def _lasts(kind: Kind, lease: float) -> tuple[float, float]:
    """Shortest and longest, in seconds: shorter and longer than a lease, where that matters."""
    if kind in (Kind.END, Kind.SPOT):
        return 0.0, 3.0
    if kind is Kind.ERRORS:
        return 3.0, 10.0
    return 0.3 * lease, 1.8 * lease
