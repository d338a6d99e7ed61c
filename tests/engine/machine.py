"""Threads with a queue in a time of their own, and steps for their units."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polynya.engine.context import EngineContext
from polynya.engine.scheduler import THREADS, QueueEntry, TaskGroup, UnitQueue
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice, Unit
from polynya.model.errors import PolynyaError
from polynya.testing.fakes import MemoryObjectStore


@dataclass
class Machine:
    """`THREADS` threads with a queue, in a time of their own."""

    queue: UnitQueue = field(default_factory=UnitQueue)
    now: float = 0.0
    began: list[tuple[float, str]] = field(default_factory=list)
    costs: dict[str, Callable[[TimeSlice], float]] = field(default_factory=dict)
    working: list[tuple[float, int, QueueEntry, StepResult]] = field(default_factory=list)

    def crew(self, *, goes_on: bool = True) -> TaskGroup:
        spark: Any = None
        context = EngineContext(spark, MemoryObjectStore())
        return TaskGroup(context, goes_on=goes_on, report=lambda _unit, _ended: None)

    def unit(
        self,
        name: str,
        step: Callable[[TimeSlice], StepResult],
        cost: Callable[[TimeSlice], float] = lambda _turn: 0.1,
        task: str = "task",
    ) -> Unit:
        self.costs[name] = cost
        return Unit(name, task, step)

    def add(self, *units: Unit, crew: TaskGroup | None = None) -> TaskGroup:
        crew = crew or self.crew()
        self.queue.add(crew, units, self.now)
        return crew

    def run(self, until: float) -> None:
        """Let time pass."""
        while self.now < until:
            self.queue.sweep()
            while len(self.working) < THREADS and (taken := self.queue.take(self.now)):
                place, turn = taken
                self.began.append((self.now, place.unit.name))
                ends = self.now + self.costs[place.unit.name](turn)
                ended = place.unit.step(turn)
                heapq.heappush(self.working, (ends, id(place), place, ended))
            wait = self.now + max(self.queue.seconds_to_next(self.now), 0.01)
            self.now = min([wait, until, *(ends for ends, *_ in self.working[:1])])
            while self.working and self.working[0][0] <= self.now:
                _, _, place, ended = heapq.heappop(self.working)
                self.queue.ended(place, ended, self.now)

    def turns_of(self, name: str) -> list[float]:
        return [at for at, who in self.began if who == name]

    def longest_wait(self, name: str) -> float:
        turns = self.turns_of(name)
        return max(after - before for before, after in itertools.pairwise(turns))


def load(turn: TimeSlice) -> StepResult:
    """A first load of days: its next step is always a long one."""
    return turn.more if turn.long else TOO_LONG


def ten_minutes(turn: TimeSlice) -> float:
    return 600.0 if turn.long else 0.1


def nothing(_turn: TimeSlice) -> StepResult:
    return IDLE


def failing(*failures: PolynyaError | None) -> Callable[[TimeSlice], StepResult]:
    left = list(failures)
    return lambda _turn: StepResult(failure=left.pop(0) if len(left) > 1 else left[0])
