"""Simulated time, and processes whose threads run one at a time until they wait.

A thread of a process is a greenlet: the code that it runs is plain synchronous code, which stops
where it calls a store, a clock or a table. Nothing here reads the real clock or another source of
randomness, so one seed gives one history.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from random import Random
from typing import NoReturn

from greenlet import GreenletExit, getcurrent, greenlet


class World:
    """True time in seconds, and what happens when."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.steps = 0
        self.processes: list[Process] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.hub = getcurrent()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Do it at this moment; what is due at the same moment is done in the order of calls."""
        self._count += 1
        heappush(self._events, (max(moment, self.now), self._count, act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do it so many seconds from now."""
        self.at(self.now + seconds, act)

    def run(self, until: float) -> None:
        """Let time pass up to a moment."""
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, act = heappop(events)
            self.steps += 1
            act()
        self.now = max(self.now, until)

    def end(self) -> None:
        """Nothing happens any more. A thread that still waits would keep all that it knows."""
        self._events.clear()
        for process in self.processes:
            process.kill()


class Process:
    """One process of the operating system: its threads stop and die together.

    `interrupt` is asked at each call that leaves the process; it may pause or condemn it there.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        world.processes.append(self)
        self.dead = False
        self.condemned = False
        self.paused_until = 0.0
        self.interrupt: Callable[[Process], None] | None = None
        self.on_death: list[Callable[[], None]] = []
        self._turns: dict[greenlet, int] = {}

    def start(self, work: Callable[[], None]) -> greenlet:
        """A new thread, which begins as soon as this one waits."""

        def body() -> None:
            try:
                with suppress(GreenletExit):
                    work()
            finally:
                self._turns.pop(thread, None)

        thread = greenlet(body, parent=self.world.hub)
        self._turns[thread] = 0
        self._resume_at(thread, self.world.now)
        return thread

    def wait(self, seconds: float) -> None:
        """Let the others run; goes on after so many seconds, or when it is woken."""
        self.check_alive()
        self._resume_at(getcurrent(), self.world.now + seconds)
        self.world.hub.switch()

    def wait_for(self, hand_over: Callable[[Callable[[], None]], None]) -> None:
        """Let the others run until somebody calls what `hand_over` is given."""
        self.check_alive()
        hand_over(self._ticket(getcurrent()))
        self.world.hub.switch()

    def wake(self, thread: greenlet) -> None:
        """End the wait of a thread."""
        if thread in self._turns:
            self._resume_at(thread, self.world.now)

    def check_alive(self) -> None:
        """End this thread if its process is dead: what unwinds then sends nothing."""
        if self.dead:
            raise GreenletExit

    def call(self) -> None:
        """A call has just left the process: a fault may strike here."""
        self.check_alive()
        if self.interrupt is not None:
            self.interrupt(self)
        if self.paused_until > self.world.now:
            self.wait(self.paused_until - self.world.now)

    def pause(self, seconds: float) -> None:
        """No thread of it runs for so many seconds."""
        self.paused_until = max(self.paused_until, self.world.now + seconds)

    def exit(self) -> NoReturn:
        """End it, from one of its threads; as it goes, what it has sent is on its way."""
        self.condemned = True
        self.world.at(self.world.now, self.kill)
        self.world.hub.switch()
        raise AssertionError("a dead thread does not go on")

    def kill(self) -> None:
        """As `kill -9`, from outside: no line of it runs any more."""
        if self.dead:
            return
        assert getcurrent() is self.world.hub, "a thread ends its own process by `exit`"
        self.dead = True
        for thread in list(self._turns):
            thread.throw(GreenletExit)
        self._turns.clear()
        for tell in self.on_death:
            tell()

    def _resume_at(self, thread: greenlet, moment: float) -> None:
        self.world.at(moment, self._ticket(thread))

    def _ticket(self, thread: greenlet) -> Callable[[], None]:
        """What makes a thread go on; void when it was woken otherwise before."""
        turns, world = self._turns, self.world
        turns[thread] = turn = turns[thread] + 1

        def resume() -> None:
            if self.dead or self.condemned or turns.get(thread) != turn:
                return
            if world.now < self.paused_until:
                world.at(self.paused_until, resume)
            else:
                thread.switch()

        return resume
