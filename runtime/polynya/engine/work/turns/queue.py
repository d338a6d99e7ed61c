"""Which unit gets the next turn: the one that has waited longest. No threads, no clock in here.

A load of hours is many turns, and each may take minutes. So that it stops nobody, a unit says
before a long step that it is one, and one thread is kept for short steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from polynya.engine.work.context import EngineContext
from polynya.engine.work.turns.threads import THREADS
from polynya.engine.work.turns.unit import Ended, Turn, Unit
from polynya.model.errors import PolynyaError, TaskStoppedError

#: Pause between two looks at the landing zone when nothing was found.
POLL_SECONDS: Final = 2.0
#: Longest pause, in seconds, before a unit that keeps failing is tried again.
LONGEST_PAUSE: Final = 300.0
#: Long steps at a time: one thread is left for short ones.
LONG_STEPS: Final = THREADS - 1


@dataclass(eq=False, slots=True)
class Crew:
    """Units that end together: those of a task.

    Attributes:
        context: what they run with. When its `stop` is set they end after their steps.
        goes_on: round follows round. Otherwise each unit ends when it has nothing left to do.
        report: told how each round of a unit ended.
        gone: called when the last unit has ended.
        over: a policy ended the task.
    """

    context: EngineContext
    goes_on: bool
    report: Callable[[Unit, Ended], None]
    gone: Callable[[], None] = lambda: None
    over: bool = False

    @property
    def ends(self) -> bool:
        """Whether no unit of it begins another step."""
        return self.over or self.context.stop.is_set()


@dataclass(eq=False, slots=True)
class Place:
    """A unit in the queue. Times in monotonic seconds.

    `due` is when it wants its turn, so that it has waited since then. `pause` is the seconds that
    it waited after its last failure, 0 when it did not fail.
    """

    crew: Crew
    unit: Unit
    due: float
    long: bool = False
    running: bool = False
    pause: float = 0.0


def next_place(places: Iterable[Place], now: float) -> Place | None:
    """The place whose unit gets the next free thread: of those that may run, the longest waiting.

    A unit is never run twice at once. One whose next step takes long waits while `LONG_STEPS` of
    them are under way.
    """
    places = list(places)
    room = sum(one.running and one.long for one in places) < LONG_STEPS
    ready = [one for one in places if not one.running and one.due <= now and (room or not one.long)]
    return min(ready, key=lambda one: one.due, default=None)


class Queue:
    """The units that wait or work. `now` is always in monotonic seconds."""

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._poll = poll_seconds
        self._places: dict[Unit, Place] = {}
        self._crews: dict[Crew, set[Unit]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, crew: Crew, units: Iterable[Unit], now: float) -> None:
        """Take in units that are new; a known one that waits for its next round is due now."""
        met = self._crews.setdefault(crew, set())
        for unit in units:
            if unit not in met:
                met.add(unit)
                self._places[unit] = Place(crew, unit, now)
            elif (place := self._places.get(unit)) is not None and not place.pause:
                place.due = min(place.due, now)

    def take(self, now: float) -> tuple[Place, Turn] | None:
        """The next unit, which is running from now on, and what it may do."""
        place = next_place(self._places.values(), now)
        if place is None:
            return None
        place.running = True
        return place, Turn(long=place.long, at_once=not place.crew.goes_on)

    def ended(self, place: Place, ended: Ended, now: float) -> None:
        """A unit gave its turn back."""
        self.add(place.crew, ended.found, now)
        place.running, place.long = False, ended.long
        place.pause = _pause(ended.failure, place.pause, self._poll)
        if ended.more and ended.failure is None:
            place.due = now
            return
        if isinstance(ended.failure, TaskStoppedError) and place.crew.goes_on:
            place.crew.over = True
        place.due = now + (place.pause or min(self._poll, ended.look_again or self._poll))
        if not place.crew.goes_on:
            del self._places[place.unit]

    def sweep(self) -> list[Crew]:
        """Drop the units that are to end and do not work; the crews of which none is left."""
        for unit in [one.unit for one in self._places.values() if one.crew.ends]:
            if not self._places[unit].running:
                del self._places[unit]
        left = {place.crew for place in self._places.values()}
        gone = [crew for crew in self._crews if crew not in left]
        for crew in gone:
            del self._crews[crew]
        return gone

    def seconds_to_next(self, now: float) -> float:
        """Seconds until a unit that waits now is due."""
        waiting = [one.due for one in self._places.values() if not one.running and one.due > now]
        return min(waiting, default=now + self._poll) - now


def _pause(failure: PolynyaError | None, before: float, poll_seconds: float) -> float:
    """Seconds that a unit waits because it failed, after the pause of the failure before."""
    if failure is None:
        return 0.0
    return min(LONGEST_PAUSE, 2 * (before or poll_seconds))
