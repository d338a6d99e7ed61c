"""A unit of work, and the messages between it and the scheduler.

A unit takes one step per time slice: it copies one batch, or applies once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from polynya.model.errors import PolynyaError

#: A step that copies at least this many landed bytes, or an apply of as much work, is long: a
#: second or two on two cores.
LONG_STEP_BYTES: Final = 16 * 2**20


def never() -> bool:
    """No other unit waits."""
    return False


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """What a unit may do in one time slice.

    Attributes:
        long: take a step that takes long. Without it such a step is only announced.
        at_once: copy everything that waits, however little and however soon after the last copy.
        is_wanted: whether another unit is waiting for this thread; only low-priority units ask.
        more_comes: more will land for the unit, so anything that can wait is left for later.
        news: something has landed for the unit since its last time slice began.
    """

    long: bool = True
    at_once: bool = True
    is_wanted: Callable[[], bool] = never
    more_comes: bool = False
    news: bool = False

    def must_wait_for(self, size_bytes: int) -> bool:
        """Whether a step over this many bytes must wait for a time slice that allows long steps."""
        return size_bytes >= LONG_STEP_BYTES and not self.long

    @property
    def more(self) -> StepResult:
        """The result of a step that is followed by another one of the same length."""
        return StepResult(more=True, long=self.long)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a step ended.

    Attributes:
        more: there is more to do now.
        long: the next step takes long.
        wait_seconds: seconds until the unit wants its next step, None: whenever it is polled.
        ready_units: units that may have work now, including new ones.
        refused: why a part of the work cannot be done; the rest continues.
        failure: why the step failed.
        over: the unit has no other step until another unit reports it as ready.
        landed: there is something new for the units that follow.
    """

    more: bool = False
    long: bool = False
    wait_seconds: float | None = None
    ready_units: tuple[Unit, ...] = ()
    refused: PolynyaError | None = None
    failure: PolynyaError | None = None
    over: bool = False
    landed: bool = False

    def with_ready_unit(self, unit: Unit) -> StepResult:
        """The same result, with one more unit that is ready."""
        return replace(self, ready_units=(*self.ready_units, unit))

    @property
    def error(self) -> PolynyaError | None:
        """The error to report, if there is one."""
        return self.failure or self.refused


#: The stage after all units that write tables.
AFTER_TABLES: Final = 1_000
#: Nothing is left to do for now.
IDLE: Final = StepResult()
#: Nothing is left to do until another unit reports this one as ready.
OVER: Final = StepResult(over=True)
#: Something was done that may have taken a while, and nothing is left: files may have landed
#: meanwhile.
AGAIN_SOON: Final = StepResult(wait_seconds=1.0)
#: Nothing was done: the next step takes long, and the time slice was for a short one.
TOO_LONG: Final = StepResult(more=True, long=True)


@dataclass(frozen=True, eq=False, slots=True)
class Unit:
    """One piece of work that fails alone: a dataset, or a task that finds its datasets.

    Attributes:
        name: as events and messages call it.
        task: name of its task.
        step: takes one step.
        low_priority: it gets a time slice only when no other unit wants one, and counts as long.
        lands: it writes landed batches.
        follows: it reads landed batches: it gets a time slice when something has landed, and a run
            that ends keeps it until the landing units have ended.
        stage: a run that ends begins it when all units of lower stages have ended.
    """

    name: str
    task: str
    step: Callable[[TimeSlice], StepResult]
    low_priority: bool = False
    lands: bool = False
    follows: bool = False
    stage: int = 0


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The errors of a run, by unit; `waiting`: units with a temporary failure."""

    failures: dict[str, PolynyaError] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def take(self, unit: Unit, result: StepResult) -> None:
        """Record the result of a round of a unit."""
        self.waiting.discard(unit.name)
        if result.error is None:
            self.failures.pop(unit.name, None)
            return
        self.failures[unit.name] = result.error
        if unit.lands and result.failure is None and result.error.retryable:
            self.waiting.add(unit.name)

    def without_waiting(self) -> RunOutcome:
        """The outcome of a run that was stopped: a capture that waited has not failed."""
        left = {
            name: failure for name, failure in self.failures.items() if name not in self.waiting
        }
        return RunOutcome(left)
