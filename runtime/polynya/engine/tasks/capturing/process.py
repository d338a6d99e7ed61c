"""The capture process of one task: started, listened to, and ended."""

from __future__ import annotations

import atexit
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from polynya.gateway.wire import WorkerSettings, request_line
from polynya.model.errors import DependencyError

log = logging.getLogger(__name__)

COMMAND: Final = (sys.executable, "-m", "polynya.gateway.worker")
#: What a process that is asked to end may take: it lands what it has.
END_SECONDS: Final = 20.0
#: An event is far smaller; what is longer is none.
_LONGEST_LINE: Final = 8 * 2**20

Said: TypeAlias = Mapping[str, Any]


class Process(Protocol):
    """What captures; `WorkerProcess` is the real one."""

    def take(self, patience: float) -> list[Said]:
        """What it has said since it was asked last, waiting so many seconds for the first."""
        ...

    def ask(self, tables: tuple[str, ...], *, reload: bool) -> None:
        """Let it take tables up again, or load them anew."""
        ...

    @property
    def code(self) -> int | None:
        """Its exit code when it has ended and all that it said was taken; None before."""
        ...

    def end(self) -> None:
        """Ask it to end, and wait until it has; by force if it takes too long."""
        ...


class WorkerProcess:
    """See `Process`. It also ends when this process does, however that is: its input ends then."""

    def __init__(
        self, settings: WorkerSettings, log_file: Path, command: Sequence[str] | None = None
    ) -> None:
        """Start it. Raises DependencyError, POLYNYA-GTW-067, when that is not possible."""
        self._said: list[Said] = []
        self._changed = threading.Condition()
        self._heard_all = False
        try:
            log_file.parent.mkdir(parents=True, exist_ok=True)
            with log_file.open("wb") as complaints:
                self._process = subprocess.Popen(
                    list(command or COMMAND),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    # A Ctrl-C is for the command, which ends its captures in order.
                    start_new_session=True,
                )
        except OSError as error:
            raise DependencyError(
                "POLYNYA-GTW-067",
                f"the capture process cannot be started: {error.strerror}",
                where=settings.task,
                state="nothing was captured; what had landed stays",
                fix="the machine is short of memory, processes or disk",
            ) from error
        atexit.register(self.end)
        self._send(settings.line())
        name = f"capture-{settings.task}"
        threading.Thread(target=self._listen, name=name, daemon=True).start()

    def take(self, patience: float) -> list[Said]:
        """See `Process`."""
        with self._changed:
            self._changed.wait_for(lambda: self._said or self._heard_all, patience)
            said, self._said = self._said, []
        return said

    def ask(self, tables: tuple[str, ...], *, reload: bool) -> None:
        """See `Process`."""
        self._send(request_line(tables, reload=reload))

    @property
    def code(self) -> int | None:
        """See `Process`."""
        with self._changed:
            if not self._heard_all or self._said:
                return None
        return self._process.wait()

    def end(self) -> None:
        """See `Process`."""
        atexit.unregister(self.end)
        assert self._process.stdin is not None, "it was started with a pipe"
        with suppress(OSError):
            self._process.stdin.close()
        for last in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(END_SECONDS)
                return
            except subprocess.TimeoutExpired:
                last()
        self._process.wait()

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None, "it was started with a pipe"
        # One that has ended says why, and that is heard.
        with suppress(OSError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        while line := self._process.stdout.readline(_LONGEST_LINE):
            said = _event(line)
            if said is not None:
                with self._changed:
                    self._said.append(said)
                    self._changed.notify_all()
        self._process.wait()
        with self._changed:
            self._heard_all = True
            self._changed.notify_all()


def _event(line: bytes) -> Said | None:
    """An event; None for a line that is none, such as what a library prints."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and isinstance(said.get("type"), str):
        return said
    log.warning("a capture process wrote %d bytes that are no event", len(line))
    return None
