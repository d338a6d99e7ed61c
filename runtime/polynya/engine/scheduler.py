"""The scheduler: units of work on a bounded number of threads, in a queue, round after round.

A load of hours takes many time slices, each up to minutes long. So that it stops nobody, a unit
announces a long step before it starts, and one thread is kept for short steps. Maintenance has low
priority: it gets a time slice when no other unit wants one, and one maintenance runs at a time.
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

#: Datasets that are copied or applied at the same time; more only wait for the same cores.
THREADS = 4


def run_in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do the work for each item, several at a time; an error is raised when all are done.

    Of several errors it raises that of the table with the highest epoch, so that one new grant is
    enough, and otherwise the first.
    """
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
    failed = [error for future in futures if (error := future.exception()) is not None]
    if failed:
        raise max(failed, key=epoch_found)
    return [future.result() for future in futures]


class BusyMeter:
    """Adds up the time of turns, also of those that have not ended yet."""

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


#: Pause between two looks at the landing zone when nothing was found.
POLL_SECONDS: Final = 2.0
#: Longest pause, in seconds, before a unit that keeps failing is tried again.
LONGEST_PAUSE_SECONDS: Final = 300.0
#: Long steps at a time: one thread is left for short ones.
LONG_STEPS: Final = THREADS - 1
#: A low-priority unit gets a turn after waiting for this many seconds, although others wait...
LONGEST_WAIT_SECONDS: Final = 60.0
#: ...and then it works for this many seconds before it gives way.
LEAST_WORK_SECONDS: Final = 1.0
#: A unit that found nothing, and follows working crews, looks again after this many seconds.
FOLLOW_SECONDS: Final = 0.5
#: A due unit counts as waiting for a thread if none has taken it after this many seconds.
WAKE_UP_SECONDS: Final = 0.05


@dataclass(eq=False, slots=True)
class TaskGroup:
    """Units that end together: those of a task.

    Attributes:
        context: what they run with. When its `stop` is set they end after their steps.
        goes_on: round follows round. Otherwise each unit ends when it has nothing left to do.
        report: receives how each round of a unit ended.
        follows: crews that land what these units read.
        gone: called when the last unit has ended.
        over: a policy ended the task.
        units: the number of units that have not ended.
    """

    context: EngineContext
    goes_on: bool
    report: Callable[[Unit, StepResult], None]
    gone: Callable[[], None] = lambda: None
    follows: Sequence[TaskGroup] = ()
    over: bool = False
    units: int = 0

    @property
    def ends(self) -> bool:
        """Whether no unit of it begins another step."""
        return self.over or self.context.stop.is_set()

    @property
    def more_comes(self) -> bool:
        """Whether a crew that it follows is at work."""
        return any(one.units for one in self.follows)


@dataclass(eq=False, slots=True)
class QueueEntry:
    """A unit in the queue. Times in monotonic seconds.

    `due` is when it wants its turn, so that it has waited since then. `pause` is the seconds that
    it waited after its last failure, 0 when it did not fail. `entry` is the number of its entry in
    a line, None while it stands in none. `more_comes` is what its turn received. `news`: something
    has landed since that began.
    """

    crew: TaskGroup
    unit: Unit
    due: float
    long: bool = False
    running: bool = False
    pause: float = 0.0
    entry: int | None = None
    more_comes: bool = False
    news: bool = False


class ReadyQueue:
    """Waiting places, the one that is due first in front. Adding one is cheap (a heap).

    A place that is added again leaves a stale entry behind, which no longer counts.
    """

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._entries: list[tuple[float, int, QueueEntry]] = []

    def add(self, place: QueueEntry) -> None:
        """Put a place where it belongs."""
        place.entry = next(self._numbers)
        heapq.heappush(self._entries, (place.due, place.entry, place))

    @property
    def due(self) -> float:
        """When the place in front is due, infinity when nobody waits."""
        while self._entries:
            due, number, place = self._entries[0]
            if place.entry == number:
                return due
            heapq.heappop(self._entries)
        return math.inf

    def take(self) -> QueueEntry:
        """Remove the place in front; `due` must have shown just now that there is one."""
        place = heapq.heappop(self._entries)[2]
        place.entry = None
        return place


class UnitQueue:
    """The units that wait or work. `now` is always in monotonic seconds.

    The longest waiting unit goes first, and no unit runs twice at once. Units with a long next step
    have a line of their own, which waits while `LONG_STEPS` of them are running. Low-priority units
    have one, too; they wait while any other unit is due, but no longer than `LONGEST_WAIT_SECONDS`.
    """

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._poll = poll_seconds
        self._places: dict[Unit, QueueEntry] = {}
        self._crews: dict[TaskGroup, set[Unit]] = {}
        numbers = itertools.count()
        self._short, self._long, self._idle = (
            ReadyQueue(numbers),
            ReadyQueue(numbers),
            ReadyQueue(numbers),
        )
        self._long_steps = 0
        self._at_leisure = False

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, crew: TaskGroup, units: Iterable[Unit], now: float) -> None:
        """Take in units that are new; a known one that waits for its next round is due now."""
        met = self._crews.setdefault(crew, set())
        for unit in units:
            if unit not in met:
                met.add(unit)
                self._places[unit] = QueueEntry(crew, unit, now, long=unit.has_time)
                crew.units += 1
                self._line_of(self._places[unit]).add(self._places[unit])
                continue
            place = self._places.get(unit)
            if place is not None and not place.pause and place.due > now:
                self._move(place, now)

    def take(self, now: float) -> tuple[QueueEntry, TimeSlice] | None:
        """The next unit, which is running from now on, and what it may do."""
        line = self._next(now)
        if line is None:
            return None
        place = line.take()
        place.running = True
        self._long_steps += place.long
        self._at_leisure = self._at_leisure or place.unit.has_time
        crew = place.crew
        place.more_comes = not crew.goes_on and crew.more_comes
        news, place.news = place.news, False
        turn = TimeSlice(
            long=place.long, at_once=not crew.goes_on, more_comes=place.more_comes, news=news
        )
        return place, turn

    def _next(self, now: float) -> ReadyQueue | None:
        """The line whose first place is next, None when nobody is due that may be."""
        full = self._long_steps >= LONG_STEPS
        line = self._short if full else min(self._short, self._long, key=lambda one: one.due)
        idle = self._idle.due
        has_time = idle <= now and not full and not self._at_leisure
        if has_time and (line.due > now or idle <= now - LONGEST_WAIT_SECONDS):
            return self._idle
        return line if line.due <= now else None

    def is_wanted(self, now: float) -> bool:
        """Whether a unit is waiting that may get the thread of a low-priority unit."""
        return min(self._short.due, self._long.due) <= now - WAKE_UP_SECONDS

    def ended(self, place: QueueEntry, ended: StepResult, now: float) -> None:
        """A unit gave its turn back."""
        self.add(place.crew, ended.found, now)
        self._long_steps -= place.long
        self._at_leisure = self._at_leisure and not place.unit.has_time
        place.running, place.long = False, ended.long or place.unit.has_time
        failed = ended.failure is not None
        place.pause = longer_pause(place.pause, self._poll) if failed else 0.0
        if ended.landed:
            self._wake(place.crew, now)
        again = ended.more or (place.news and not ended.over)
        if again and ended.failure is None:
            self._move(place, now)
            return
        if isinstance(ended.failure, TaskStoppedError) and place.crew.goes_on:
            place.crew.over = True
        if place.crew.goes_on and not ended.over:
            wait = place.pause or min(self._poll, ended.look_again or self._poll)
            self._move(place, now + wait)
            return
        if place.more_comes and ended.failure is None and not ended.over:
            # Others may have landed something, and ended, after it looked.
            wait = FOLLOW_SECONDS if place.crew.more_comes else 0.0
            self._move(place, now + wait)
            return
        self._drop(place)
        if place.crew.goes_on:
            self._crews[place.crew].discard(place.unit)
        elif not place.crew.units:
            self._wake(place.crew, now)

    def _wake(self, landing: TaskGroup, now: float) -> None:
        """Let followers of a crew that landed something or ended look now; failed ones wait."""
        for place in self._places.values():
            if place.unit.follows and landing in place.crew.follows and not place.pause:
                place.news = True
                if not place.running and place.due > now:
                    self._move(place, now)

    def sweep(self) -> list[TaskGroup]:
        """Drop idle units that must end; returns the crews without units."""
        if any(crew.ends for crew in self._crews):
            for place in list(self._places.values()):
                if place.crew.ends and not place.running:
                    self._drop(place)
        gone = [crew for crew in self._crews if not crew.units]
        for crew in gone:
            del self._crews[crew]
        return gone

    def seconds_to_next(self, now: float) -> float:
        """Seconds until a unit that waits now is due."""
        dues = (line.due for line in (self._short, self._long, self._idle))
        return min((due for due in dues if due > now), default=math.inf) - now

    def _move(self, place: QueueEntry, due: float) -> None:
        """Let a place be due at a time."""
        place.due = due
        if not place.running:
            self._line_of(place).add(place)

    def _line_of(self, place: QueueEntry) -> ReadyQueue:
        """Where a place stands."""
        if place.unit.has_time:
            return self._idle
        return self._long if place.long else self._short

    def _drop(self, place: QueueEntry) -> None:
        """Remove a unit for good."""
        place.entry = None
        place.crew.units -= 1
        del self._places[place.unit]


def longer_pause(before: float, poll_seconds: float = POLL_SECONDS) -> float:
    """Seconds to wait after one more failure; `before` is the pause before that, 0 for none."""
    return min(LONGEST_PAUSE_SECONDS, 2 * (before or poll_seconds))


log = logging.getLogger(__name__)

#: How often an idle thread checks whether the run should stop, in seconds.
_STOP_CHECK_SECONDS: Final = 0.2
#: A step that another engine's maintenance came between is taken again so often.
_STALE_STEP_RETRIES: Final = 3


class Scheduler:
    """The threads, and the queue of their work."""

    def __init__(self, clock: Clock, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._clock = clock
        self._queue = UnitQueue(poll_seconds)
        self._changed = threading.Condition()
        self._open = True
        self._broken: BaseException | None = None
        self._at_work = 0
        self._busy = BusyMeter(clock)

    @property
    def busy_seconds(self) -> float:
        """How long the threads have worked in total, all together."""
        return self._busy.seconds()

    def add(self, crew: TaskGroup, units: Sequence[Unit]) -> None:
        """Let the units have their turns from now on."""
        with self._changed:
            self._queue.add(crew, units, self._clock.monotonic())
            self._changed.notify_all()

    def start(self) -> list[threading.Thread]:
        """Start the threads. They are daemons: a process that must end waits for none of them."""
        names = [f"turns-{number}" for number in range(1, THREADS + 1)]
        threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        self._at_work = len(threads)
        for thread in threads:
            thread.start()
        return threads

    def finish(self) -> None:
        """Start the threads, and wait until no unit is left.

        Raises an error outside of the units, such as one while a turn was reported. That and Ctrl-C
        end the run after the running steps; a second Ctrl-C ends it at once.
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
            self._changed.wait_for(lambda: self._at_work == 0)

    def _work(self) -> None:
        try:
            self._turns()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread
            self._break(error)
        with self._changed:
            self._at_work -= 1
            self._changed.notify_all()

    def _break(self, error: BaseException) -> None:
        """Let no unit begin another step."""
        with self._changed:
            self._broken = error
            self._changed.notify_all()

    def _turns(self) -> None:
        while (taken := self._take()) is not None:
            place, turn = taken
            self._busy.begin()
            try:
                ended = _step(place.crew.context, place.unit, turn)
                _report_result(place, ended)
            finally:
                self._busy.end()
            with self._changed:
                self._queue.ended(place, ended, self._clock.monotonic())
                self._changed.notify_all()

    def _take(self) -> tuple[QueueEntry, TimeSlice] | None:
        """The next unit and its turn; None when there will be no more."""
        with self._changed:
            while True:
                for crew in self._queue.sweep():
                    crew.gone()
                if self._broken is not None or not (self._queue or self._open):
                    return None
                now = self._clock.monotonic()
                if (taken := self._queue.take(now)) is not None:
                    place, turn = taken
                    return place, self._watching(turn, now) if place.unit.has_time else turn
                self._changed.wait(min(_STOP_CHECK_SECONDS, self._queue.seconds_to_next(now)))

    def _watching(self, turn: TimeSlice, began: float) -> TimeSlice:
        """The turn of a low-priority unit, which can ask whether another one waits."""
        # Who gets a turn although others wait has waited for long, and may do something in it.
        least = LEAST_WORK_SECONDS if self._queue.is_wanted(began) else 0.0

        def is_wanted() -> bool:
            now = self._clock.monotonic()
            with self._changed:
                return now - began >= least and self._queue.is_wanted(now)

        return replace(turn, is_wanted=is_wanted)


def _step(context: EngineContext, unit: Unit, turn: TimeSlice) -> StepResult:
    try:
        ended = _step_with_retries(unit, turn)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the edge of a unit
        if not context.is_alive():
            # No unit can take another step: the caller must start this process again.
            context.stop.set()
        return StepResult(failure=context.explained(as_polynya(error), in_tables=not unit.lands))
    context.worked = context.worked or not unit.lands
    return ended


def _step_with_retries(unit: Unit, turn: TimeSlice) -> StepResult:
    """Take a step; if another engine committed in between, reopen the tables and repeat it."""
    for _ in range(_STALE_STEP_RETRIES):
        try:
            with span("step", dataset=unit.name):
                return unit.step(turn)
        except StaleStepError as error:
            log.info("%s is taken again: %s", unit.name, error.message)
    with span("step", dataset=unit.name):
        return unit.step(turn)


def _report_result(place: QueueEntry, ended: StepResult) -> None:
    """Report how a turn went; a lasting failure only once, and again when it is over."""
    context, unit, failure = place.crew.context, place.unit, ended.trouble
    said = f"failed {unit.name}"
    if failure is None:
        _report_recovery(place, ended, said)
    elif isinstance(failure, ConflictError):
        context.truce.lost(failure, context.clock.monotonic())
    if failure is not None and context.is_news(said, str(failure)):
        context.sink(_failure_event(place, failure))
    if failure is not None or not ended.more:
        place.crew.report(unit, ended)


def _failure_event(place: QueueEntry, failure: PolynyaError) -> Event:
    unit, epoch = place.unit, place.crew.context.epoch
    if epoch is not None and isinstance(failure, FencedError):
        return UnitFenced(subject=unit.name, epoch=epoch, error=failure)
    return UnitFailed(subject=unit.name, error=failure, goes_on=place.crew.goes_on)


def _report_recovery(place: QueueEntry, ended: StepResult, said: str) -> None:
    """Report that a failed unit works again. A step that was only announced does not show that."""
    context = place.crew.context
    if ended is not TOO_LONG and context.said.pop(said, None) is not None:
        context.sink(UnitRecovered(subject=place.unit.name))
