"""Runs as processes of this machine, for a session that the agent's own process cannot have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from polynya.model.errors import DependencyError
from polynya.store.job_runs import Label, Order, RunSeen, RunState
from polynya.store.node_folders import own

#: The process that a run ends with, by its number.
PARENT: Final = "POLYNYA_PARENT"
_LOGS: Final = "jobs"
#: Bytes at the end of a log in which the error is looked for.
_TAIL_BYTES: Final = 65_536


class ProcessRuns:
    """See `JobRuns`. A run that is cancelled ends after its step.

    Each is a process whose output goes to `jobs/SCOPE.log` in the work folder, and which ends when
    this one does.
    """

    def __init__(
        self, work: Path, command: Sequence[str] = (sys.executable, "-m", "polynya")
    ) -> None:
        self._work, self._command = work, tuple(command)
        self._processes: dict[str, tuple[Label, subprocess.Popen[bytes]]] = {}

    def submit(self, order: Order) -> str:
        """See `JobRuns`."""
        log = self._log(order.label)
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(log, "wb", opener=own) as sink:
                process = subprocess.Popen(
                    [*self._command, *order.arguments],
                    cwd=self._work,
                    env={**os.environ, PARENT: str(os.getpid())},
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    start_new_session=True,
                )
        except OSError as error:
            raise DependencyError(
                "POLYNYA-AGT-073",
                f"a process for the job cannot be started: {error.strerror}",
                where=order.title,
                state="nothing was started, no data was touched",
                fix="the machine is short of memory or processes; the agent tries again",
            ) from error
        self._forget(order.label.scope)
        self._processes[str(process.pid)] = order.label, process
        return str(process.pid)

    def look(self, run: str) -> RunSeen:
        """See `JobRuns`."""
        label, process = self._processes[run]
        code = process.poll()
        if code is None:
            return RunSeen(run, label, RunState.ACTIVE)
        if code == 0:
            return RunSeen(run, label, RunState.SUCCEEDED, exit_code=0)
        return RunSeen(run, label, RunState.FAILED, self._error(label, code), code)

    def recent(self, scope: str) -> Sequence[RunSeen]:
        """See `JobRuns`: those of this process; no other leaves one."""
        found = [run for run, (label, _) in self._processes.items() if label.scope == scope]
        return [self.look(run) for run in found]

    def cancel(self, run: str) -> None:
        """See `JobRuns`."""
        _, process = self._processes[run]
        with suppress(ProcessLookupError):
            process.terminate()

    def _forget(self, scope: str) -> None:
        """Forget what has ended; at most one of a scope has not."""
        for run, (label, process) in list(self._processes.items()):
            if label.scope == scope and process.poll() is not None:
                del self._processes[run]

    def _log(self, label: Label) -> Path:
        return self._work / _LOGS / f"{label.scope}.log"

    def _error(self, label: Label, code: int) -> str:
        """The last error that a process told of, else how it ended."""
        log = self._log(label)
        for line in reversed(_tail(log).splitlines()):
            with suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, dict) and said.get("type") == "error":
                    return f"{said.get('code')}: {said.get('message')}"[:500]
        return f"exit code {code}; its log is {log}"


def _tail(file: Path) -> str:
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        return log.read().decode("utf-8", "replace")
