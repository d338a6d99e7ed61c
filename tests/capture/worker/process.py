"""The capture process as a test starts it: settings in, events out, killed when it is time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from polynya.capture.wire import WorkerSettings

_PATIENCE = 240
_ROOT = Path(__file__).parents[3]


class CaptureProcess:
    """One process, and what it has told."""

    def __init__(self, settings: WorkerSettings, log: Path, *deadly: str) -> None:
        """Start it.

        Args:
            settings: what it is told.
            log: what it says of itself is added there.
            deadly: where it dies, as `deadly.py` takes it; nothing: it does not.
        """
        module = "tests.capture.worker.deadly" if deadly else "polynya.capture.worker"
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *deadly],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=_ROOT,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(settings.line())
        self.process.stdin.flush()
        self.told: list[dict[str, Any]] = []
        self._told_all = False
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.told.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._told_all = True
            self._changed.notify_all()

    def of(self, type_: str) -> list[dict[str, Any]]:
        """Events of a type so far."""
        return [event for event in self.told if event["type"] == type_]

    def wait_for(self, type_: str, count: int = 1) -> None:
        """Until so many events of a type were told. Fails when the process ends before."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: len(self.of(type_)) >= count or self._told_all, _PATIENCE
            )
        assert done, f"no {type_} in time"
        assert len(self.of(type_)) >= count, self.told[-3:]

    def kill(self) -> None:
        """As the system does when memory is short: nothing is finished."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.ended()

    def died(self) -> bool:
        """Whether it ended by a kill; waits for its end."""
        return self.ended() == -signal.SIGKILL

    def ended(self) -> int:
        """Its exit code, when it has ended by itself. Fails when it goes on."""
        try:
            code = self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            # What is told every few seconds says nothing of what it waits for.
            told = [event for event in self.told if event["type"] != "lag"]
            raise AssertionError(f"it did not end in time; it told {told[-3:]}") from None
        self._listener.join()
        return code
