"""The scheduler: units of work on a bounded number of threads, in a queue, round after round.

A load of hours takes many time slices, each up to minutes long. So that it does not block other
units, a unit announces a long step before it starts, and one thread is kept for short steps.
Maintenance has low priority: it gets a time slice when no other unit wants one, and one maintenance
runs at a time.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from polynya.engine.context import EngineContext
from polynya.engine.errors import as_polynya
from polynya.engine.unit import TOO_LONG, StepResult, TimeSlice, Unit
from polynya.lake.table.fence import epoch_found
from polynya.model.errors import (
    ConflictError,
    FencedError,
    PolynyaError,
    StaleStepError,
    TaskStoppedError,
)
from polynya.observe.cluster import UnitFenced
from polynya.observe.engine import UnitFailed, UnitRecovered
from polynya.observe.events import Event
from polynya.observe.trace import span
from polynya.store.clock import Clock

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

#: Steps at the same time; more would only wait for the same cores.
THREADS: Final = 4
#: Long steps at the same time: one thread is left for short ones.
LONG_STEPS: Final = THREADS - 1
#: Pause between two listings of the landing zone when nothing was found.
POLL_SECONDS: Final = 2.0
#: Longest pause before a unit that keeps failing is tried again.
LONGEST_PAUSE_SECONDS: Final = 300.0
#: A low-priority unit gets a time slice after waiting for this long, although others wait...
LONGEST_WAIT_SECONDS: Final = 60.0
#: ...and then it works for this long before it gives way.
LEAST_WORK_SECONDS: Final = 1.0
#: A unit that found nothing and reads what working groups land looks again after this long.
FOLLOW_SECONDS: Final = 0.5
#: A due unit counts as waiting for a thread if none has taken it after this long.
WAKE_UP_SECONDS: Final = 0.05
#: How often an idle thread checks whether the run should stop.
_STOP_CHECK_SECONDS: Final = 0.2
#: How often a step is repeated because another engine's maintenance committed in between.
_STALE_STEP_RETRIES: Final = 3


@dataclass(eq=False, slots=True)
class TaskGroup:
    """The units of one task, which end together.

    Attributes:
        context: what they run with. When its `stop` is set they end after their steps.
        goes_on: round follows round. Otherwise each unit ends when it has nothing left to do.
        report: receives how each round of a unit ended.
        on_end: called when the last unit has ended.
        follows: groups that land what these units read.
        is_stopped: a policy ended the task.
        units: number of units that have not ended.
    """

    context: EngineContext
    goes_on: bool
    report: Callable[[Unit, StepResult], None]
    on_end: Callable[[], None] = lambda: None
    follows: Sequence[TaskGroup] = ()
    is_stopped: bool = False
    units: int = 0

    @property
    def is_ending(self) -> bool:
        """Whether no unit of it begins another step."""
        return self.is_stopped or self.context.stop.is_set()

    @property
    def awaits_landing(self) -> bool:
        """Whether a group that it follows is at work."""
        return any(group.units for group in self.follows)


class Scheduler:
    """The threads, and the queue of their work."""

    def __init__(self, clock: Clock, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._clock = clock
        self._queue = UnitQueue(poll_seconds)
        self._changed = threading.Condition()
        self._open = True
        self._broken: BaseException | None = None
        self._threads_at_work = 0
        self._busy = BusyMeter(clock)

    @property
    def busy_seconds(self) -> float:
        """How long the threads have worked in total, all together."""
        return self._busy.seconds()

    def add(self, group: TaskGroup, units: Sequence[Unit]) -> None:
        """Let the units have their time slices from now on."""
        with self._changed:
            self._queue.add(group, units, self._clock.monotonic())
            self._changed.notify_all()

    def start(self) -> list[threading.Thread]:
        """Start the threads. They are daemons: a process that must end waits for none of them."""
        names = [f"turns-{number}" for number in range(1, THREADS + 1)]
        threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        self._threads_at_work = len(threads)
        for thread in threads:
            thread.start()
        return threads

    def finish(self) -> None:
        """Start the threads, and wait until no unit is left.

        Raises an error outside of the units, such as one while a result was reported. That and
        Ctrl-C end the run after the running steps; a second Ctrl-C ends it immediately.
        """
        self._open = False
        self.start()
        try:
            self._await_all()
        except KeyboardInterrupt as error:
            self._break(error)
            self._await_all()
        if self._broken is not None:
            raise self._broken

    def _await_all(self) -> None:
        # `Thread.join` takes a thread for ended once it was interrupted (Python 3.11 and 3.12).
        with self._changed:
            self._changed.wait_for(lambda: self._threads_at_work == 0)

    def _break(self, error: BaseException) -> None:
        """Let no unit begin another step."""
        with self._changed:
            self._broken = error
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            self._take_steps()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread
            self._break(error)
        with self._changed:
            self._threads_at_work -= 1
            self._changed.notify_all()

    def _take_steps(self) -> None:
        while (taken := self._take()) is not None:
            entry, time_slice = taken
            self._busy.begin()
            try:
                result = _step(entry.group.context, entry.unit, time_slice)
                _report_result(entry, result)
            finally:
                self._busy.end()
            with self._changed:
                self._queue.put_back(entry, result, self._clock.monotonic())
                self._changed.notify_all()

    def _take(self) -> tuple[QueueEntry, TimeSlice] | None:
        """The next unit and its time slice; None when there will be no more."""
        with self._changed:
            while True:
                for group in self._queue.sweep():
                    group.on_end()
                if self._broken is not None or not (self._queue or self._open):
                    return None
                now = self._clock.monotonic()
                if (taken := self._queue.take(now)) is not None:
                    entry, time_slice = taken
                    if entry.unit.low_priority:
                        time_slice = self._watching(time_slice, now)
                    return entry, time_slice
                self._changed.wait(min(_STOP_CHECK_SECONDS, self._queue.seconds_to_next(now)))

    def _watching(self, time_slice: TimeSlice, began: float) -> TimeSlice:
        """The time slice of a low-priority unit, which can check whether another unit waits."""
        # If others wait already, this unit has waited for long, and may do something now.
        least = LEAST_WORK_SECONDS if self._queue.is_wanted(began) else 0.0

        def is_wanted() -> bool:
            now = self._clock.monotonic()
            with self._changed:
                return now - began >= least and self._queue.is_wanted(now)

        return replace(time_slice, is_wanted=is_wanted)


def _step(context: EngineContext, unit: Unit, time_slice: TimeSlice) -> StepResult:
    try:
        result = _step_with_retries(unit, time_slice)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the edge of a unit
        if not context.hooks.is_alive():
            # No unit can take another step: the caller must start this process again.
            context.stop.set()
        failure = context.explained(as_polynya(error), in_tables=not unit.lands)
        return StepResult(failure=failure)
    context.has_worked = context.has_worked or not unit.lands
    return result


def _step_with_retries(unit: Unit, time_slice: TimeSlice) -> StepResult:
    """Take a step; if another engine committed in between, reopen the tables and repeat it."""
    for _ in range(_STALE_STEP_RETRIES):
        try:
            with span("step", dataset=unit.name):
                return unit.step(time_slice)
        except StaleStepError as error:
            log.info("%s repeats its step: %s", unit.name, error.message)
    with span("step", dataset=unit.name):
        return unit.step(time_slice)


def _report_result(entry: QueueEntry, result: StepResult) -> None:
    """Report how a step went; a lasting failure only once, and again when it is over."""
    context, unit, failure = entry.group.context, entry.unit, result.error
    matter = f"failed {unit.name}"
    if failure is None:
        # A step that was only announced does not show that the unit works again.
        reports = context.memory.last_reports
        if result is not TOO_LONG and reports.pop(matter, None) is not None:
            context.sink(UnitRecovered(subject=unit.name))
    elif isinstance(failure, ConflictError):
        context.memory.takeover_backoff.lost(failure, context.clock.monotonic())
    if failure is not None and context.is_news(matter, str(failure)):
        context.sink(_failure_event(entry, failure))
    if failure is not None or not result.more:
        entry.group.report(unit, result)


def _failure_event(entry: QueueEntry, failure: PolynyaError) -> Event:
    unit, epoch = entry.unit, entry.group.context.epoch
    if epoch is not None and isinstance(failure, FencedError):
        return UnitFenced(subject=unit.name, epoch=epoch, error=failure)
    return UnitFailed(subject=unit.name, error=failure, goes_on=entry.group.goes_on)


class UnitQueue:
    """The units that wait or work. `now` is always in monotonic seconds.

    The longest waiting unit goes first, and no unit runs twice at once. Units with a long next step
    have a queue of their own, which waits while `LONG_STEPS` of them are running. Low-priority
    units have one, too; they wait while any other unit is due, but no longer than
    `LONGEST_WAIT_SECONDS`.
    """

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._poll = poll_seconds
        self._entries: dict[Unit, QueueEntry] = {}
        self._groups: dict[TaskGroup, set[Unit]] = {}
        numbers = itertools.count()
        self._short, self._long = ReadyQueue(numbers), ReadyQueue(numbers)
        self._low_priority = ReadyQueue(numbers)
        self._long_steps = 0
        self._low_priority_runs = False

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, group: TaskGroup, units: Iterable[Unit], now: float) -> None:
        """Take in units that are new; a known one that waits for its next round is due now."""
        known = self._groups.setdefault(group, set())
        for unit in units:
            if unit not in known:
                known.add(unit)
                added = QueueEntry(group, unit, now, long=unit.low_priority)
                self._entries[unit] = added
                group.units += 1
                self._queue_of(added).add(added)
                continue
            entry = self._entries.get(unit)
            if entry is not None and not entry.pause and entry.due > now:
                self._move(entry, now)

    def take(self, now: float) -> tuple[QueueEntry, TimeSlice] | None:
        """The next unit, which is running from now on, and what it may do."""
        queue = self._next(now)
        if queue is None:
            return None
        entry = queue.take()
        entry.running = True
        self._long_steps += entry.long
        self._low_priority_runs = self._low_priority_runs or entry.unit.low_priority
        group = entry.group
        entry.more_comes = not group.goes_on and group.awaits_landing
        news, entry.news = entry.news, False
        time_slice = TimeSlice(
            long=entry.long, at_once=not group.goes_on, more_comes=entry.more_comes, news=news
        )
        return entry, time_slice

    def _next(self, now: float) -> ReadyQueue | None:
        """The queue whose first entry is next, None when no entry is due that may run."""
        full = self._long_steps >= LONG_STEPS
        queue = self._short
        if not full and self._long.due < self._short.due:
            queue = self._long
        low_due = self._low_priority.due
        low_may_run = low_due <= now and not full and not self._low_priority_runs
        if low_may_run and (queue.due > now or low_due <= now - LONGEST_WAIT_SECONDS):
            return self._low_priority
        return queue if queue.due <= now else None

    def is_wanted(self, now: float) -> bool:
        """Whether a unit is waiting that may get the thread of a low-priority unit."""
        return min(self._short.due, self._long.due) <= now - WAKE_UP_SECONDS

    def put_back(self, entry: QueueEntry, result: StepResult, now: float) -> None:
        """Take back a unit after its step, and decide when it is due again."""
        self.add(entry.group, result.ready_units, now)
        self._long_steps -= entry.long
        self._low_priority_runs = self._low_priority_runs and not entry.unit.low_priority
        entry.running, entry.long = False, result.long or entry.unit.low_priority
        failed = result.failure is not None
        entry.pause = longer_pause(entry.pause, self._poll) if failed else 0.0
        if result.landed:
            self._wake_followers(entry.group, now)
        again = result.more or (entry.news and not result.over)
        if again and result.failure is None:
            self._move(entry, now)
            return
        if isinstance(result.failure, TaskStoppedError) and entry.group.goes_on:
            entry.group.is_stopped = True
        if entry.group.goes_on and not result.over:
            wanted = self._poll if result.wait_seconds is None else result.wait_seconds
            self._move(entry, now + (entry.pause or min(self._poll, wanted)))
            return
        if entry.more_comes and result.failure is None and not result.over:
            # Other units may have landed something, and ended, after this one looked.
            wait = FOLLOW_SECONDS if entry.group.awaits_landing else 0.0
            self._move(entry, now + wait)
            return
        self._drop(entry)
        if entry.group.goes_on:
            self._groups[entry.group].discard(entry.unit)
        elif not entry.group.units:
            self._wake_followers(entry.group, now)

    def _wake_followers(self, landing: TaskGroup, now: float) -> None:
        """Let followers of a group that landed something or ended look now; failed ones wait."""
        for entry in self._entries.values():
            if entry.unit.follows and landing in entry.group.follows and not entry.pause:
                entry.news = True
                if not entry.running and entry.due > now:
                    self._move(entry, now)

    def sweep(self) -> list[TaskGroup]:
        """Drop idle units that must end; returns the groups without units."""
        if any(group.is_ending for group in self._groups):
            for entry in list(self._entries.values()):
                if entry.group.is_ending and not entry.running:
                    self._drop(entry)
        ended = [group for group in self._groups if not group.units]
        for group in ended:
            del self._groups[group]
        return ended

    def seconds_to_next(self, now: float) -> float:
        """Seconds until a unit that waits now is due."""
        dues = (queue.due for queue in (self._short, self._long, self._low_priority))
        return min((due for due in dues if due > now), default=math.inf) - now

    def _move(self, entry: QueueEntry, due: float) -> None:
        entry.due = due
        if not entry.running:
            self._queue_of(entry).add(entry)

    def _queue_of(self, entry: QueueEntry) -> ReadyQueue:
        if entry.unit.low_priority:
            return self._low_priority
        return self._long if entry.long else self._short

    def _drop(self, entry: QueueEntry) -> None:
        """Remove a unit for good."""
        entry.number = None
        entry.group.units -= 1
        del self._entries[entry.unit]


class ReadyQueue:
    """Waiting entries, the one that is due first in front. Adding one is cheap (a heap).

    An entry that is added again leaves a stale item behind, which no longer counts.
    """

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._heap: list[tuple[float, int, QueueEntry]] = []

    def add(self, entry: QueueEntry) -> None:
        """Put an entry where it belongs."""
        entry.number = next(self._numbers)
        heapq.heappush(self._heap, (entry.due, entry.number, entry))

    @property
    def due(self) -> float:
        """When the entry in front is due, infinity when the queue is empty."""
        while self._heap:
            due, number, entry = self._heap[0]
            if entry.number == number:
                return due
            heapq.heappop(self._heap)
        return math.inf

    def take(self) -> QueueEntry:
        """Remove the entry in front; `due` must have shown just now that there is one."""
        entry = heapq.heappop(self._heap)[2]
        entry.number = None
        return entry


@dataclass(eq=False, slots=True)
class QueueEntry:
    """A unit in the queue. Times in monotonic seconds.

    Attributes:
        group: the units of its task.
        unit: the unit itself.
        due: when it wants its time slice, so that it has waited since then.
        long: its next step is long.
        running: a thread has it.
        pause: seconds that it waited after its last failure, 0 when it did not fail.
        number: its number in a ready queue, None while it is in none.
        more_comes: what its time slice received.
        news: something has landed since its time slice began.
    """

    group: TaskGroup
    unit: Unit
    due: float
    long: bool = False
    running: bool = False
    pause: float = 0.0
    number: int | None = None
    more_comes: bool = False
    news: bool = False


def longer_pause(before: float, poll_seconds: float = POLL_SECONDS) -> float:
    """Seconds to wait after one more failure; `before` is the pause before that, 0 for none."""
    return min(LONGEST_PAUSE_SECONDS, 2 * (before or poll_seconds))


class BusyMeter:
    """Adds up the time of steps, including those that have not ended yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._offset = 0, 0.0

    def begin(self) -> None:
        """A thread begins to work."""
        with self._lock:
            self._running += 1
            self._offset -= self._clock.monotonic()

    def end(self) -> None:
        """A thread that began has ended."""
        with self._lock:
            self._running -= 1
            self._offset += self._clock.monotonic()

    def seconds(self) -> float:
        """Seconds of work until now; two threads do two in a second."""
        with self._lock:
            return self._offset + self._running * self._clock.monotonic()


def run_in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do the work for each item, several at a time; an error is raised when all are done.

    Of several errors it raises that of the table with the highest epoch, so that one new grant is
    enough, and otherwise the first.
    """
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
    failures = [error for future in futures if (error := future.exception()) is not None]
    if failures:
        raise max(failures, key=epoch_found)
    return [future.result() for future in futures]
