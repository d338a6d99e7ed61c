"""Units of work on a bounded number of threads, each going its own round."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from polynya.engine.errors import as_polynya
from polynya.engine.work.context import EngineContext
from polynya.engine.work.turns.busy import BusyMeter
from polynya.engine.work.turns.queue import LEAST_WORK, POLL_SECONDS, Crew, Place, Queue
from polynya.engine.work.turns.threads import THREADS
from polynya.engine.work.turns.unit import TOO_LONG, Ended, Turn, Unit
from polynya.model.errors import ConflictError, FencedError, PolynyaError, StaleStepError
from polynya.observe.data import UnitFailed, UnitRecovered
from polynya.observe.events import Event
from polynya.observe.node import UnitFenced
from polynya.observe.trace import span
from polynya.store.clock import Clock

log = logging.getLogger(__name__)

#: How often a thread without work looks whether somebody asked to stop, in seconds.
_LOOK_SECONDS: Final = 0.2
#: A step that another engine's maintenance came between is taken again so often.
_AGAIN: Final = 3


class Rounds:
    """The threads, and the queue that they take their work from."""

    def __init__(self, clock: Clock, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._clock = clock
        self._queue = Queue(poll_seconds)
        self._changed = threading.Condition()
        self._open = True
        self._broken: BaseException | None = None
        self._at_work = 0
        self._busy = BusyMeter(clock)

    @property
    def busy_seconds(self) -> float:
        """How long the threads have worked in total, all together."""
        return self._busy.seconds()

    def add(self, crew: Crew, units: Sequence[Unit]) -> None:
        """Let the units have their turns from now on."""
        with self._changed:
            self._queue.add(crew, units, self._clock.monotonic())
            self._changed.notify_all()

    def start(self) -> list[threading.Thread]:
        """Start the threads. They are daemons: a process that is told to end waits for nobody."""
        names = [f"turns-{number}" for number in range(1, THREADS + 1)]
        threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        self._at_work = len(threads)
        for thread in threads:
            thread.start()
        return threads

    def finish(self) -> None:
        """Start the threads, and wait until no unit is left.

        Raises what went wrong outside of the units: nobody could be told how a turn went. It, and
        Ctrl-C, end the run after the steps that are under way; a second Ctrl-C ends it at once.
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
                _tell(place, ended)
            finally:
                self._busy.end()
            with self._changed:
                self._queue.ended(place, ended, self._clock.monotonic())
                self._changed.notify_all()

    def _take(self) -> tuple[Place, Turn] | None:
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
                self._changed.wait(min(_LOOK_SECONDS, self._queue.seconds_to_next(now)))

    def _watching(self, turn: Turn, began: float) -> Turn:
        """The turn of a unit that has time: it can ask whether another one waits."""
        # Who gets a turn although others wait has waited for long, and may do something in it.
        least = LEAST_WORK if self._queue.is_wanted(began) else 0.0

        def is_wanted() -> bool:
            now = self._clock.monotonic()
            with self._changed:
                return now - began >= least and self._queue.is_wanted(now)

        return replace(turn, is_wanted=is_wanted)


def _step(context: EngineContext, unit: Unit, turn: Turn) -> Ended:
    try:
        ended = _taken(unit, turn)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the edge of a unit
        if not context.is_alive():
            # No step can be taken any more, of no unit: who runs this starts it again.
            context.stop.set()
        return Ended(failure=context.explained(as_polynya(error), in_tables=not unit.lands))
    context.worked = context.worked or not unit.lands
    return ended


def _taken(unit: Unit, turn: Turn) -> Ended:
    """A step that another engine came between is taken again, with tables that are opened again."""
    for _ in range(_AGAIN):
        try:
            with span("step", dataset=unit.name):
                return unit.step(turn)
        except StaleStepError as error:
            log.info("%s is taken again: %s", unit.name, error.message)
    with span("step", dataset=unit.name):
        return unit.step(turn)


def _tell(place: Place, ended: Ended) -> None:
    """Say how a turn went; of a failure that lasts only once, and when it is over."""
    context, unit, failure = place.crew.context, place.unit, ended.trouble
    said = f"failed {unit.name}"
    if failure is None:
        _tell_recovery(place, ended, said)
    elif isinstance(failure, ConflictError):
        context.truce.lost(failure, context.clock.monotonic())
    if failure is not None and context.is_news(said, str(failure)):
        context.sink(_told(place, failure))
    if failure is not None or not ended.more:
        place.crew.report(unit, ended)


def _told(place: Place, failure: PolynyaError) -> Event:
    unit, epoch = place.unit, place.crew.context.epoch
    if epoch is not None and isinstance(failure, FencedError):
        return UnitFenced(subject=unit.name, epoch=epoch, error=failure)
    return UnitFailed(subject=unit.name, error=failure, goes_on=place.crew.goes_on)


def _tell_recovery(place: Place, ended: Ended, said: str) -> None:
    """Say that a unit which failed works again. A step that was only announced shows nothing."""
    context = place.crew.context
    if ended is not TOO_LONG and context.said.pop(said, None) is not None:
        context.sink(UnitRecovered(subject=place.unit.name))
