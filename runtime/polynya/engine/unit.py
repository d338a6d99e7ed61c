"""A unit of work, and the messages between it and the scheduler.

A unit takes one step per time slice: it copies one batch, or applies once. Then it is another
unit's turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from polynya.model.errors import PolynyaError

#: A step that copies at least this many landed bytes, or an apply of as much work, is long: a
#: second or two on two cores.
LONG_STEP_BYTES: Final = 16 * 2**20


def never() -> bool:
    """Nobody waits."""
    return False


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """What a unit may do in its turn.

    Attributes:
        long: take a step that takes long. Without it such a step is only announced.
        at_once: copy everything that waits, however little and however soon after the last copy.
        is_wanted: whether another unit is waiting for this thread; only low-priority units ask.
        more_comes: more will land for the unit, so anything that can wait is left to a later turn.
        news: something has landed for the unit since its last turn began.
    """

    long: bool = True
    at_once: bool = True
    is_wanted: Callable[[], bool] = never
    more_comes: bool = False
    news: bool = False

    def must_wait_for(self, size_bytes: int) -> bool:
        """Whether a step over so many bytes is for a later turn, one that may take long."""
        return size_bytes >= LONG_STEP_BYTES and not self.long

    @property
    def more(self) -> StepResult:
        """A step was taken and the unit wants to go on: what follows will be of the same kind."""
        return StepResult(more=True, long=self.long)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a turn ended.

    Attributes:
        more: there is more to do now.
        long: the next step takes long.
        look_again: seconds after which the unit wants its next turn, None: whenever it is polled.
        found: units that are ready, also new ones.
        refused: why a part of the work cannot be done; the rest continues.
        failure: why the turn failed.
        over: the unit has no other turn until another unit finds it again.
        landed: there is something new for the units that follow.
    """

    more: bool = False
    long: bool = False
    look_again: float | None = None
    found: tuple[Unit, ...] = ()
    refused: PolynyaError | None = None
    failure: PolynyaError | None = None
    over: bool = False
    landed: bool = False

    def finding(self, unit: Unit) -> StepResult:
        """The same, with one more unit that is ready."""
        return replace(self, found=(*self.found, unit))

    @property
    def trouble(self) -> PolynyaError | None:
        """What somebody has to know of."""
        return self.failure or self.refused


#: Nothing is left to do for now.
IDLE: Final = StepResult()
#: Nothing is left to do until another unit asks again.
OVER: Final = StepResult(over=True)
#: Something was done that may have taken a while, and nothing is left: what landed meanwhile has
#: waited already.
AGAIN_SOON: Final = StepResult(look_again=1.0)
#: Nothing was done: the next step takes long, and the turn was for a short one.
TOO_LONG: Final = StepResult(more=True, long=True)


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """One piece of work that fails alone: a dataset, or a task that finds its datasets.

    A unit that `has_time` gets a turn only when no other unit wants one, and counts as long. Units
    that `follow` read what units that `land` have written: they get a turn when something has
    landed, and a run that ends keeps them until the landing units have ended.
    """

    name: str
    task: str
    step: Callable[[TimeSlice], StepResult]
    has_time: bool = False
    lands: bool = False
    follows: bool = False
