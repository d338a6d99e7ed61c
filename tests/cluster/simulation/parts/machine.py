"""A machine: its clocks, which are wrong, and the processes that run on it one after the other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cluster.simulation.parts.world import Process, World

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def day(seconds: float) -> datetime:
    """The true time of the day, so many seconds after the beginning."""
    return _BEGINNING + timedelta(seconds=seconds)


class Machine:
    """One node. `drift` is by how much its clocks run fast, `skew` how far its wall clock is off.

    `asleep` counts the seconds of suspension, which only some clocks of a kernel count.
    """

    def __init__(self, world: World, name: str, *, drift: float = 0.0, skew: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.drift = drift
        self.skew = skew
        self.asleep = 0.0
        self.process: Process | None = None

    def suspend(self, seconds: float) -> None:
        """Close the lid: nothing runs, and the monotonic clock of the kernel stands still."""
        if self.process is not None:
            self.process.pause(seconds)
        self.asleep += seconds

    def elapsed(self) -> float:
        """The clock that counts suspension (CLOCK_BOOTTIME)."""
        return self.world.now * (1 + self.drift)

    def awake(self) -> float:
        """The clock that does not (CLOCK_MONOTONIC)."""
        return (self.world.now - self.asleep) * (1 + self.drift)

    def wall(self) -> datetime:
        """What this machine takes the time of the day for."""
        return day(self.elapsed() + self.skew)


class MachineClock:
    """The clock port for one process: to read it is a moment at which a fault may strike."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.machine, self._process = machine, process

    def now(self) -> datetime:
        """The wall clock."""
        self._process.call()
        return self.machine.wall()

    def monotonic(self) -> float:
        """Seconds that never go backwards and count suspension."""
        self._process.call()
        return self.peek()

    def peek(self) -> float:
        """The same, as no moment for a fault."""
        return self.machine.elapsed()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._process.call()
        self._process.wait(seconds / (1 + self.machine.drift))
