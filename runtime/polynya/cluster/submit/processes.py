"""Submitted work of a unit, and runs of it as processes on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from polynya.cluster.unit import JobKey
from polynya.engine.commands.unread import UnreadFiles
from polynya.model.error_catalogue.cluster import JOB_PROCESS_NOT_STARTED
from polynya.store.jobs import JobOrder, JobRuns, Label, RunSeen, RunState
from polynya.store.node_folders import own

#: Without new data a unit still runs after this many seconds: maintenance, retention.
IDLE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Submission:
    """The work of one unit for one owner.

    Attributes:
        job: the unit.
        runs: the service.
        service: its name in messages.
        arguments: of `polynya`.
        warehouse: where its tables are: with the unit's name it says what a run works on.
        owner: the process that submits; each process has its own.
        epoch: that was granted, None where nodes share nothing.
        number: of this start of the job in the process.
        every_seconds: pause between two runs.
        look_seconds: time between two looks at a run.
        landed: something that changes when files land; None where each run is wanted.
        unread: the unread files of its datasets; None where they are unknown.
        away: a service does the work, and more nodes make it no faster.
    """

    job: JobKey
    runs: JobRuns
    service: str
    arguments: tuple[str, ...]
    warehouse: str
    owner: str
    epoch: int | None
    number: int
    every_seconds: float
    look_seconds: float
    landed: Callable[[], str] | None = None
    unread: Callable[[], UnreadFiles] | None = None
    away: bool = False

    def label(self, ordinal: int) -> Label:
        """The label of the run with this ordinal: the same one whenever it is submitted again."""
        scope = _digest(self.warehouse, self.job.task, self.job.name)
        token = _digest(self.owner, str(self.number), str(ordinal), scope)
        return Label(scope[:12], self.epoch or 0, token[:16])

    def order(self, ordinal: int) -> JobOrder:
        """The order for the service."""
        return JobOrder(self.label(ordinal), f"{self.job.task}/{self.job.name}", self.arguments)


def arguments_of(
    job: JobKey, *, config: str, target: str, owner: str, epoch: int | None
) -> tuple[str, ...]:
    """The arguments by which `polynya` does the work of one unit."""
    granted = () if epoch is None else ("--epoch", str(epoch))
    where = ("--config", config, "--target", target)
    return ("run", job.task, "--unit", job.name, "--owner", owner, *granted, *where, "--json")


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


#: The process that a run ends with, by its number.
PARENT_VARIABLE: Final = "POLYNYA_PARENT"
_LOG_FOLDER: Final = "jobs"
#: Bytes at the end of a log in which the error is looked for.
_TAIL_BYTES: Final = 65_536


class ProcessRuns(JobRuns):
    """Runs as child processes, which end when this process does.

    The output goes to `jobs/SCOPE.log` in the work folder. A cancelled run ends after its step.
    """

    def __init__(
        self, work: Path, command: Sequence[str] = (sys.executable, "-m", "polynya")
    ) -> None:
        self._work, self._command = work, tuple(command)
        self._processes: dict[str, tuple[Label, subprocess.Popen[bytes]]] = {}

    @override
    def submit(self, order: JobOrder) -> str:
        log = self._log(order.label)
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(log, "wb", opener=own) as sink:
                process = subprocess.Popen(
                    [*self._command, *order.arguments],
                    cwd=self._work,
                    env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    start_new_session=True,
                )
        except OSError as error:
            raise JOB_PROCESS_NOT_STARTED(where=order.title, reason=error.strerror) from error
        self._forget(order.label.scope)
        self._processes[str(process.pid)] = order.label, process
        return str(process.pid)

    @override
    def look(self, run: str) -> RunSeen:
        label, process = self._processes[run]
        code = process.poll()
        if code is None:
            return RunSeen(run, label, RunState.ACTIVE)
        if code == 0:
            return RunSeen(run, label, RunState.SUCCEEDED, exit_code=0)
        return RunSeen(run, label, RunState.FAILED, self._error(label, code), code)

    @override
    def recent(self, scope: str) -> Sequence[RunSeen]:
        """Those of this process; no other leaves one."""
        found = [run for run, (label, _) in self._processes.items() if label.scope == scope]
        return [self.look(run) for run in found]

    @override
    def cancel(self, run: str) -> None:
        _, process = self._processes[run]
        with suppress(ProcessLookupError):
            process.terminate()

    def _forget(self, scope: str) -> None:
        """Forget what has ended; at most one of a scope has not."""
        for run, (label, process) in list(self._processes.items()):
            if label.scope == scope and process.poll() is not None:
                del self._processes[run]

    def _log(self, label: Label) -> Path:
        return self._work / _LOG_FOLDER / f"{label.scope}.log"

    def _error(self, label: Label, code: int) -> str:
        """The last error that a process reported, else how it ended."""
        log = self._log(label)
        for line in reversed(_tail(log).splitlines()):
            with suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("type") == "error":
                    return f"{event.get('code')}: {event.get('message')}"[:500]
        return f"exit code {code}; its log is {log}"


def _tail(file: Path) -> str:
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        return log.read().decode("utf-8", "replace")
