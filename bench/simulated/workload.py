"""A week of work for a cluster, minute by minute, and how a strategy keeps up with it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from bench.simulated.group import BOOT_MINUTES
from polynya_constructs.cluster.strategies import MINUTE, Signal, Step, Strategy
from polynya_constructs.functions.spot_fallback.decision import Mix

DAY = 24 * 60
WEEK = 7 * DAY

# The alarms that AWS makes for a target tracking policy: above the target for 3 minutes, below
# 90 % of it for 15. They are what the console shows, not a promise of the documentation.
_TRACKING_OUT, _TRACKING_IN, _TRACKING_MARGIN = 3, 15, 0.9


def a_week(seed: int) -> list[float]:
    """Seconds of one node's work that arrive in each minute.

    Office hours with up to 1.6 nodes of work, quiet nights, half the weekend, noise of a fifth,
    and two loads of three hours of work each that land within ten minutes.
    """
    random = Random(seed)
    loads = {(random.randrange(5) * DAY + random.randrange(8 * 60, 20 * 60)) for _ in range(2)}
    work = []
    for minute in range(WEEK):
        hour = minute % DAY / 60
        busy = max(math.sin(math.pi * (hour - 7) / 12), 0) if 7 <= hour <= 19 else 0.0
        weekend = 0.5 if minute // DAY >= 5 else 1.0
        seconds = 1.6 * MINUTE * busy * weekend * random.uniform(0.8, 1.2)
        if any(0 <= minute - load < 10 for load in loads):
            seconds += 3 * 3600 / 10
        work.append(seconds)
    return work


@dataclass(frozen=True, slots=True)
class Service:
    """How a week went.

    Attributes:
        delays: seconds that the oldest waiting work had waited, a value a minute in order of size.
        spot_minutes: instance-minutes of Spot.
        on_demand_minutes: instance-minutes of On-Demand.
    """

    delays: Sequence[float]
    spot_minutes: int
    on_demand_minutes: int

    def delay(self, quantile: float) -> float:
        """The delay in seconds that a part of the minutes stays below."""
        return self.delays[min(int(len(self.delays) * quantile), len(self.delays) - 1)]


@dataclass(slots=True)
class _Queue:
    """Work in order of arrival; `waiting` are pairs of the minute and the seconds of work."""

    waiting: deque[tuple[int, float]] = field(default_factory=deque)
    seconds: float = 0.0

    def add(self, minute: int, seconds: float) -> None:
        if seconds > 0:
            self.waiting.append((minute, seconds))
            self.seconds += seconds

    def work_off(self, seconds: float) -> None:
        while self.waiting and seconds > 1e-9:
            minute, first = self.waiting.popleft()
            done = min(first, seconds)
            seconds -= done
            self.seconds -= done
            if first - done > 1e-9:
                self.waiting.appendleft((minute, first - done))

    def age(self, minute: int) -> float:
        return (minute - self.waiting[0][0]) * MINUTE if self.waiting else 0.0


def serve(
    strategy: Strategy,
    work: Sequence[float],
    *,
    minimum: int,
    maximum: int,
    scheduled: Callable[[int], int] = lambda _minute: 0,
) -> Service:
    """Let a cluster that scales by `strategy` do the work; Spot never fails here.

    `scheduled` are the nodes that a schedule keeps at least, minute by minute.
    """
    queue, launched, history = _Queue(), [-BOOT_MINUTES] * max(minimum, 1), _History()
    mix = Mix(strategy.on_demand_base, strategy.on_demand_percentage)
    delays, spot, on_demand = [], 0, 0
    for minute, arrived in enumerate(work):
        nodes = sum(minute - start >= BOOT_MINUTES for start in launched)
        queue.add(minute, arrived)
        queue.work_off(nodes * MINUTE)
        delays.append(queue.age(minute))
        history.note(queue, nodes, arrived, minute)
        wanted = _wanted(strategy, history, nodes, len(launched), minute)
        wanted = max(minimum, scheduled(minute), min(maximum, wanted))
        launched = launched[:wanted] + [minute] * (wanted - len(launched))
        spot += mix.spot_share(wanted)
        on_demand += wanted - mix.spot_share(wanted)
    return Service(sorted(delays), spot, on_demand)


@dataclass(slots=True)
class _History:
    """The last values of each signal, and when each step added nodes."""

    values: dict[Signal, deque[float]] = field(
        default_factory=lambda: {signal: deque(maxlen=15) for signal in Signal}
    )
    added: dict[Step, int] = field(default_factory=dict)

    def note(self, queue: _Queue, nodes: int, arrived: float, minute: int) -> None:
        self.values[Signal.BACKLOG_PER_NODE].append(queue.seconds / max(nodes, 1))
        trickle = nodes < 2 and arrived > 0
        idleness = DAY * MINUTE if trickle else queue.seconds / max(nodes, 1)
        self.values[Signal.IDLENESS].append(idleness)
        self.values[Signal.OLDEST_UNMERGED_AGE].append(queue.age(minute))
        self.values[Signal.ARRIVALS_WITHOUT_NODES].append(arrived if not nodes else 0.0)

    def beyond(self, step: Step) -> bool:
        """Whether the alarm of a step is on."""
        last = list(self.values[step.signal])[-step.periods :]
        hits = sum(v > step.threshold if step.change > 0 else v < step.threshold for v in last)
        return len(last) == step.periods and hits >= step.datapoints


def _wanted(strategy: Strategy, history: _History, nodes: int, size: int, minute: int) -> int:
    """The size that the policies ask for: the largest of those that add, else what one removes."""
    answers = [_step(step, history, size, minute, strategy) for step in strategy.steps]
    answers.append(_track(strategy, history, nodes, size))
    return max(answers) if max(answers) > size else min(answers)


def _step(step: Step, history: _History, size: int, minute: int, strategy: Strategy) -> int:
    """A step that added waits for the warm-up of its nodes; one that removes does not."""
    warming = minute - history.added.get(step, -WEEK) < strategy.warmup_seconds // MINUTE
    if not history.beyond(step) or (step.change > 0 and warming):
        return size
    if step.change < 0:
        return size + step.change
    history.added[step] = minute
    double = step.change_beyond_double is not None
    beyond_double = double and history.values[step.signal][-1] > 2 * step.threshold
    return size + ((step.change_beyond_double or 0) if beyond_double else step.change)


def _track(strategy: Strategy, history: _History, nodes: int, size: int) -> int:
    """In proportion when adding, never counting nodes that boot twice; one at a time removing."""
    if strategy.tracking is None:
        return size
    target, last = strategy.tracking.target_seconds, list(history.values[Signal.BACKLOG_PER_NODE])
    if len(last) >= _TRACKING_OUT and min(last[-_TRACKING_OUT:]) > target:
        return max(size, math.ceil(max(nodes, 1) * last[-1] / target))
    low = [value < _TRACKING_MARGIN * target for value in last[-_TRACKING_IN:]]
    if nodes == size and len(low) == _TRACKING_IN and all(low):
        return size - 1
    return size
