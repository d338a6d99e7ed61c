"""Processes of the network agent, as a keeper starts and watches them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from polynya.cluster.network.updating.decide import Process
from polynya.cluster.network.updating.heartbeat import Pulse
from polynya.store.clock import Clock

#: After SIGTERM; then it is killed. A turn that waits for AWS takes some seconds.
END_SECONDS: Final = 30.0
_STEP_SECONDS: Final = 0.1


class Started(Protocol):
    """A process that was started."""

    def poll(self) -> int | None:
        """Its exit code, None while it lives."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


#: Starts a version, whose code is in a folder (None: the one that is installed).
Start: TypeAlias = Callable[[Path | None, Mapping[str, str]], Started]


def starter(arguments: Sequence[str]) -> Start:
    """Starts `polynya` with these arguments in the Python that runs now."""

    def start(code: Path | None, more: Mapping[str, str]) -> Started:
        environment = {**os.environ, **more}
        # What systemd wants to hear comes from the keeper alone.
        environment.pop("NOTIFY_SOCKET", None)
        environment.pop("WATCHDOG_USEC", None)
        if code is not None:
            former = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join([str(code), *([former] if former else [])])
        return subprocess.Popen([sys.executable, "-m", "polynya", *arguments], env=environment)

    return start


class Child:
    """One process and its heartbeat. Times in monotonic seconds of the clock."""

    def __init__(self, version: str | None, code: Path | None, pulse: Pulse, start: Start) -> None:
        self.version, self.pulse = version, pulse
        self._process = start(code, pulse.environment)
        self._turns = (0, 0)
        self._quiet = 0.0

    @property
    def connected(self) -> bool:
        """Whether its last turn reached all clusters."""
        return self.pulse.read()[2]

    def watch(self, seconds: float, *, on_trial: bool) -> bool:
        """Look at its heartbeat; so many seconds count since the last look. True: there was one.

        Of one that is on trial only a turn counts in which it was connected.
        """
        turns, connected, _ = self.pulse.read()
        before, self._turns = self._turns, (turns, connected)
        beaten = connected > before[1] if on_trial else turns > before[0]
        self._quiet = 0.0 if beaten else self._quiet + seconds
        return beaten

    def known(self) -> Process:
        """What is known of it."""
        return Process(self.version, self._turns[1], self._quiet, self._process.poll())

    def end(self, clock: Clock) -> None:
        """Ask it to end, and end it after a while."""
        self._process.terminate()
        until = clock.monotonic() + END_SECONDS
        while self._process.poll() is None and clock.monotonic() < until:
            clock.sleep(_STEP_SECONDS)
        if self._process.poll() is None:
            self._process.kill()
            self._process.poll()

    def kill(self) -> None:
        """End it at once: it has nothing under way."""
        self._process.kill()
