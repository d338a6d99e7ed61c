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

    def group(self, *, goes_on: bool = True) -> TaskGroup:
        spark: Any = None
        context = EngineContext(spark, MemoryObjectStore())
        return TaskGroup(context, goes_on=goes_on, report=lambda _unit, _ended: None)

    def unit(
        self,
        name: str,
        step: Callable[[TimeSlice], StepResult],
        cost: Callable[[TimeSlice], float] = lambda _time_slice: 0.1,
        task: str = "task",
    ) -> Unit:
        self.costs[name] = cost
        return Unit(name, task, step)

    def add(self, *units: Unit, group: TaskGroup | None = None) -> TaskGroup:
        group = group or self.group()
        self.queue.add(group, units, self.now)
        return group

    def run(self, until: float) -> None:
        """Let time pass."""
        while self.now < until:
            self.queue.sweep()
            while len(self.working) < THREADS and (taken := self.queue.take(self.now)):
                entry, time_slice = taken
                self.began.append((self.now, entry.unit.name))
                ends = self.now + self.costs[entry.unit.name](time_slice)
                result = entry.unit.step(time_slice)
                heapq.heappush(self.working, (ends, id(entry), entry, result))
            wait = self.now + max(self.queue.seconds_to_next(self.now), 0.01)
            self.now = min([wait, until, *(ends for ends, *_ in self.working[:1])])
            while self.working and self.working[0][0] <= self.now:
                _, _, entry, result = heapq.heappop(self.working)
                self.queue.put_back(entry, result, self.now)

    def steps_of(self, name: str) -> list[float]:
        return [at for at, who in self.began if who == name]

    def longest_wait(self, name: str) -> float:
        turns = self.steps_of(name)
        return max(after - before for before, after in itertools.pairwise(turns))


def load(time_slice: TimeSlice) -> StepResult:
    """A first load of days: its next step is always a long one."""
    return time_slice.more if time_slice.long else TOO_LONG


def ten_minutes(time_slice: TimeSlice) -> float:
    return 600.0 if time_slice.long else 0.1


def nothing(_time_slice: TimeSlice) -> StepResult:
    return IDLE


def failing(*failures: PolynyaError | None) -> Callable[[TimeSlice], StepResult]:
    left = list(failures)
    return lambda _time_slice: StepResult(failure=left.pop(0) if len(left) > 1 else left[0])
