"""What an action cost, in the unit of what was expected of it, and how the two compare: pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from polynya.lake.maintenance.look.record import Done, Record
from polynya.model.config.maintenance.actions import ActionName

#: Costs are bytes that could be read in the same time. So many can in a second: those of an action
#: by itself (`worth.FIXED_BYTES`) take half of one. On a slower machine or store every action costs
#: more by the same factor, so that actions are to be compared with each other.
READ_BYTES_PER_SECOND: Final = 128 * 2**20


def spent(seconds: float) -> int:
    """The cost of an action that took so long, in bytes."""
    return int(seconds * READ_BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class CameTrue:
    """What was expected of an action when it was last taken, and what came true.

    Costs in bytes, gains in bytes per hour. The ratios are what came true by what was expected,
    None where nothing was. Of an action that is not `whole` the cost is that of a part.
    """

    action: ActionName
    at: datetime
    whole: bool
    expected_cost: int
    cost: int
    expected_gain: int
    gain: int

    @property
    def cost_ratio(self) -> float | None:
        """Above 1: it cost more than the rule reckoned with."""
        return _ratio(self.cost, self.expected_cost)

    @property
    def gain_ratio(self) -> float | None:
        """Below 1: it gained less than the rule reckoned with."""
        return _ratio(self.gain, self.expected_gain)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "action": self.action,
            "at": self.at.isoformat(),
            "whole": self.whole,
            "expected_cost": self.expected_cost,
            "cost": self.cost,
            "cost_ratio": self.cost_ratio,
            "expected_gain": self.expected_gain,
            "gain": self.gain,
            "gain_ratio": self.gain_ratio,
        }


def came_true(record: Record) -> list[CameTrue]:
    """Of each action that was taken, the last one first."""
    newest_first = sorted(record.last.items(), key=lambda one: one[1].at, reverse=True)
    return [_of(action, done) for action, done in newest_first]


def _of(action: ActionName, done: Done) -> CameTrue:
    return CameTrue(
        action,
        done.at,
        done.whole,
        expected_cost=done.expected_cost,
        cost=done.cost,
        expected_gain=done.expected_gain,
        gain=done.gain,
    )


def _ratio(found: int, expected: int) -> float | None:
    return round(found / expected, 2) if expected else None
