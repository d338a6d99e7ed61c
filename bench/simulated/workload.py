"""A week of work for a cluster, minute by minute, and how a strategy keeps up with it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from polynya_constructs.cluster.strategies import (
    MINUTE,
    REMOVAL_COOLDOWN_SECONDS,
    Signal,
    Step,
    Strategy,
)
from polynya_constructs.functions.spot_fallback.decision import Mix

DAY = 24 * 60
WEEK = 7 * DAY

BOOT_MINUTES: Final = 6
"""Until a node is in service: the middle of the four to eight minutes of docs/deploy.md."""

AGENTS_LATE: Final = 2
"""Minutes until the figures of agents are there, through their log and its metrics."""

ARRIVALS_LATE: Final = 3
"""Minutes until CloudWatch shows that something landed, or that nothing took its event."""

# The alarm that AWS makes for a target tracking policy: above the target for 3 minutes. It is what
# the console shows, not a promise of the documentation.
_TRACKING_OUT = 3


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
    silent: Callable[[int], bool] = lambda _minute: False,
    missing_is_zero: bool = False,
    events: bool = True,
    held_back: int = 0,
    counted: bool = True,
) -> Service:
    """Let a cluster that scales by `strategy` do the work; Spot never fails here.

    Args:
        strategy: how it scales.
        work: seconds of one node's work that arrive, minute by minute.
        minimum: nodes at least.
        maximum: nodes at most.
        scheduled: the nodes that a schedule keeps at least, minute by minute.
        silent: the minutes in which nodes publish nothing.
        missing_is_zero: a missing value counts as 0, as it does in plain metric math.
        events: S3's events arrive, and wake an empty group before any alarm does.
        held_back: minutes that work spends in a stream before it lands; it counts as waiting.
        counted: an alarm counts what is in the stream, and wakes an empty group.
    """
    queue, launched = _Queue(), [-BOOT_MINUTES] * max(minimum, 1)
    history = _History(missing_is_zero)
    mix = Mix(strategy.on_demand_base, strategy.on_demand_percentage)
    delays, spot, on_demand = [], 0, 0
    for minute, sent in enumerate(work):
        nodes = sum(minute - start >= BOOT_MINUTES for start in launched)
        arrived = work[minute - held_back] if minute >= held_back else 0.0
        queue.add(minute - held_back, arrived)
        before = queue.seconds
        queue.work_off(nodes * MINUTE)
        done = before - queue.seconds
        delays.append(queue.age(minute))
        seen = arrived + (sent if held_back and counted else 0.0)
        history.note(queue, nodes, len(launched), seen, minute, done=done, heard=not silent(minute))
        wanted = _wanted(strategy, history, launched, minute)
        if events and strategy.starts_from_zero and arrived > 0 and not launched:
            wanted = max(wanted, 1)
        wanted = max(minimum, scheduled(minute), min(maximum, wanted))
        launched = launched[:wanted] + [minute] * (wanted - len(launched))
        spot += mix.spot_share(wanted)
        on_demand += wanted - mix.spot_share(wanted)
    return Service(sorted(delays), spot, on_demand)


_Figures: TypeAlias = tuple[Mapping[Signal, float | None], tuple[float, float] | None]


def _of(missing: float | None) -> tuple[float, float] | None:
    return None if missing is None else (missing, missing)


@dataclass(slots=True)
class _History:
    """The last known values of each signal, None where there is none.

    `others` has the backlog a node, in seconds, and the part of the time in which it would be
    busy, of a group with one node less.
    """

    missing_is_zero: bool
    values: dict[Signal, deque[float | None]] = field(
        default_factory=lambda: {signal: deque(maxlen=15) for signal in Signal}
    )
    arrivals: deque[tuple[float, int]] = field(
        default_factory=lambda: deque([(0.0, 1)] * ARRIVALS_LATE, maxlen=ARRIVALS_LATE + 15)
    )
    others: deque[tuple[float, float] | None] = field(default_factory=lambda: deque(maxlen=60))
    size: int = 0
    changed: int = 0
    _coming: deque[_Figures] = field(default_factory=deque)

    def note(
        self,
        queue: _Queue,
        nodes: int,
        size: int,
        arrived: float,
        minute: int,
        *,
        done: float,
        heard: bool,
    ) -> None:
        self.arrivals.append((arrived, size))
        backlog = queue.seconds / max(nodes, 1)
        trickle = nodes < 2 and self.arrivals[-1 - ARRIVALS_LATE][0] > 0
        missing = 0.0 if self.missing_is_zero else None
        heard = heard and nodes > 0  # only nodes publish
        idleness = DAY * MINUTE if trickle else backlog
        figures = {
            Signal.BACKLOG_PER_NODE: backlog,
            Signal.IDLENESS: idleness,
            Signal.OLDEST_UNMERGED_AGE: queue.age(minute),
        }
        others = None
        if nodes > 1:
            others = queue.seconds / (nodes - 1), done / MINUTE / (nodes - 1)
        self._coming.append(
            (figures, others) if heard else (dict.fromkeys(figures, missing), _of(missing))
        )
        if len(self._coming) > AGENTS_LATE:
            known, others = self._coming.popleft()
            for signal, value in known.items():
                self.values[signal].append(value)
            self.others.append(others)

    def last(self, signal: Signal, periods: int) -> Sequence[float | None]:
        """The newest values; of arrivals the newest minutes are not there yet, and filled with 0.

        Arrivals count for minutes in which the group wanted no node.
        """
        if signal is not Signal.UNHANDLED_ARRIVALS:
            return list(self.values[signal])[-periods:]
        known = [0.0 if size else arrived for arrived, size in self.arrivals]
        return [*known[:-ARRIVALS_LATE], *[0.0] * ARRIVALS_LATE][-periods:]

    def beyond(self, step: Step) -> bool:
        """Whether the alarm of a step is on; a value that is not there is not beyond."""
        last = self.last(step.signal, step.periods)
        hits = sum(
            value > step.threshold if step.change > 0 else value < step.threshold
            for value in last
            if value is not None
        )
        return len(last) == step.periods and hits >= step.datapoints


def _wanted(strategy: Strategy, history: _History, launched: Sequence[int], minute: int) -> int:
    """The size that the policies ask for: the largest of those that add, else what one removes.

    What adds takes nodes that boot or warm up for none. A removal waits until all are warm, and
    for its cooldown after a change of size.
    """
    size, ready = len(launched), minute - BOOT_MINUTES - strategy.warmup_seconds // MINUTE
    warm = sum(start <= ready for start in launched)
    answers = [_step(step, history, size, warm) for step in strategy.steps]
    answers.append(_track(strategy, history, size, warm))
    if size != history.size:
        history.size, history.changed = size, minute
    if max(answers) > size:
        return max(answers)
    cools = (minute - history.changed) * MINUTE < REMOVAL_COOLDOWN_SECONDS
    return size if warm < size or cools else min(answers)


def _step(step: Step, history: _History, size: int, warm: int) -> int:
    if not history.beyond(step):
        return size
    if step.change < 0:
        return size + step.change
    if step.signal is Signal.UNHANDLED_ARRIVALS:
        return max(size, 1)
    newest = history.values[step.signal][-1] or 0.0
    beyond_double = step.change_beyond_double is not None and newest > 2 * step.threshold
    change = (step.change_beyond_double or 0) if beyond_double else step.change
    return max(size, warm + change)


def _track(strategy: Strategy, history: _History, size: int, warm: int) -> int:
    """In proportion when adding; one at a time removing, when the others can do its work."""
    if strategy.tracking is None:
        return size
    target, last = strategy.tracking.target_seconds, list(history.values[Signal.BACKLOG_PER_NODE])
    newest = [value for value in last[-_TRACKING_OUT:] if value is not None]
    if len(newest) == _TRACKING_OUT and min(newest) > target:
        return max(size, math.ceil(max(warm, 1) * newest[-1] / target))
    minutes = list(history.others)[-strategy.tracking.busy_minutes :]
    spare = [
        others is not None
        and others[0] < target / 2
        and others[1] < strategy.tracking.busy_percent / 100
        for others in minutes
    ]
    return size - 1 if len(spare) == strategy.tracking.busy_minutes and all(spare) else size
