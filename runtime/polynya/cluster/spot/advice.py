"""What follows from what the instance metadata service said: a pure function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: A node is gone so many seconds after its notice was seen, at the latest: AWS gives two minutes,
#: and up to `EVERY_SECONDS` pass before it is seen.
NOTICE_SECONDS: Final = 90.0


class Wish(StrEnum):
    """What the node is to do."""

    DRAIN = "drain"
    LEAVE = "leave"
    """Give its work to others if there are any, and go on living."""


@dataclass(frozen=True, slots=True)
class Said:
    """The texts that the service had, None where it had none.

    Attributes:
        action: `spot/instance-action`.
        recommendation: `events/recommendations/rebalance`.
        lifecycle: `autoscaling/target-lifecycle-state`.
    """

    action: str | None = None
    recommendation: str | None = None
    lifecycle: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """A wish, why, and for DRAIN how many seconds it may take at most (None: as configured)."""

    wish: Wish
    reason: str
    within_seconds: float | None = None


def advise(said: Said) -> Advice | None:
    """What to do; None as long as there is nothing to do.

    A notice counts also when its text cannot be read: that there is one says enough.
    """
    if said.action is not None:
        action, at = _field(said.action, "action"), _field(said.action, "time")
        reason = f"Spot interruption notice: {action or 'the end of the instance'}"
        return Advice(Wish.DRAIN, f"{reason} at {at}" if at else reason, NOTICE_SECONDS)
    if said.lifecycle is not None and said.lifecycle.rpartition(":")[2] == "Terminated":
        return Advice(Wish.DRAIN, "the Auto Scaling group ends this instance")
    if said.recommendation is not None:
        at = _field(said.recommendation, "noticeTime")
        reason = "rebalance recommendation: an interruption is more likely"
        return Advice(Wish.LEAVE, f"{reason}, said at {at}" if at else reason)
    return None


def _field(text: str, name: str) -> str | None:
    """A short text of a JSON object; None when it is not there, whatever else is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = value.get(name) if isinstance(value, dict) else None
    return found[:40] if isinstance(found, str) and found[:40].isprintable() else None
