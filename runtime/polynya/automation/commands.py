"""Actions as commands of `polynya` in a child process, which ends when this process does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final, Protocol

from polynya.model.config.automation import (
    Action,
    Automation,
    ExportAction,
    MaintainAction,
    ReloadAction,
    RunAction,
    ValidateAction,
    VerifyAction,
)
from polynya.model.config.fields import format_duration
from polynya.model.error_catalogue.automations import ACTION_NOT_IN_AGENT, ACTION_TIMED_OUT
from polynya.store.clock import Clock

#: Number of the process that a command ends with (`cli/stopping.py`).
PARENT: Final = "POLYNYA_PARENT"
_LOOK_SECONDS: Final = 0.2
_KILL_SECONDS: Final = 30.0
_TAIL_BYTES: Final = 65_536
_MOST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class ActionEnd:
    """How a command ended: its exit code, and of a failure the error that it reported."""

    success: bool
    code: str | None = None
    message: str | None = None
    stopped: bool = False


class Surroundings(Enum):
    """Where automations are looked at."""

    RUN = auto()
    """In a project that nothing else works on, or beside `polynya run`."""
    OPERATOR = auto()
    """By hand, where the environment names a cluster: an action asks the owners of tables."""
    CLUSTER = auto()
    """In an agent whose nodes share work: the same."""
    AGENT = auto()
    """In an agent that is alone: it takes no requests."""


_ASKING: Final = frozenset({Surroundings.OPERATOR, Surroundings.CLUSTER})


def skipped_why(action: Action, surroundings: Surroundings) -> str | None:
    """Why an action has nothing to do in an agent; None: it has."""
    if surroundings is Surroundings.AGENT and isinstance(action, RunAction | MaintainAction):
        return "the agent does this all the time; only nodes that share work take requests"
    if surroundings in _ASKING and isinstance(action, RunAction) and action.apply == "never":
        return "agents copy all the time"
    return None


def refused(action: Action, surroundings: Surroundings) -> ActionEnd | None:
    """Why an action cannot be carried out in an agent; None: it can."""
    reason = None
    if surroundings is Surroundings.AGENT and isinstance(action, ReloadAction):
        reason = "it would take the tables from the agent; nodes that share work can be asked"
    if reason is None:
        return None
    error = ACTION_NOT_IN_AGENT(reason=reason)
    return ActionEnd(success=False, code=error.code, message=error.message)


def idle_in_cluster(settings: Automation) -> Iterator[str]:
    """What an automation has and a cluster does not carry out, in words."""
    for number, action in enumerate(settings.actions, 1):
        end = refused(action, Surroundings.CLUSTER)
        why = skipped_why(action, Surroundings.CLUSTER)
        if end is not None:
            yield f"action {number} fails: {end.message}"
        elif why is not None:
            yield f"action {number} is skipped: {why}"


class Commands(Protocol):
    """Runs commands of `polynya`."""

    def run(
        self, arguments: Sequence[str], limit: timedelta, goes_on: Callable[[], bool]
    ) -> ActionEnd:
        """Run a command to its end, its time limit, or until `goes_on` says False."""
        ...


def arguments_of(
    action: Action,
    directory: Path,
    started: datetime,
    surroundings: Surroundings = Surroundings.RUN,
    archives: str | None = None,
) -> list[str]:
    """The command line of an action, after `polynya`.

    Args:
        action: of an automation.
        directory: the project folder.
        started: when the run began, which names an archive.
        surroundings: in a cluster, work on tables is asked of their owners and waited for.
        archives: where archives are written, the project folder by default.
    """
    waits = ["--wait"] if surroundings in _ASKING else []
    match action:
        case RunAction() if waits:
            return ["task", "run", *action.run, "--apply", action.apply, *waits]
        case RunAction():
            return ["run", *action.run, "--once", "--apply", action.apply]
        case ReloadAction():
            dataset = [] if action.dataset is None else ["--dataset", action.dataset]
            return ["reload", action.reload, *dataset, "--mode", action.mode, *waits]
        case MaintainAction():
            return ["maintain", *action.maintain, *waits]
        case VerifyAction():
            return ["verify"] if action.verify == "all" else ["verify", action.verify]
        case ValidateAction():
            return ["validate"]
        case ExportAction():
            name = action.export.replace("{time}", f"{started:%Y%m%dT%H%M%SZ}")
            return ["export", str(directory), f"{archives or directory}/{name}"]


class ChildCommands:
    """Runs commands as child processes of this one, in the project of this one.

    Args:
        directory: the project folder.
        target: its target.
        clock: of the time limits.
        command: how `polynya` is called.
        variables: of the environment, besides those of this process.
    """

    def __init__(
        self,
        directory: Path,
        target: str,
        clock: Clock,
        command: Sequence[str] = (sys.executable, "-m", "polynya"),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._tail = ("--project", str(directory), "--target", target, "--json")
        self._clock, self._command, self._variables = clock, tuple(command), dict(variables)

    def run(
        self, arguments: Sequence[str], limit: timedelta, goes_on: Callable[[], bool]
    ) -> ActionEnd:
        """Run a command to its end, its time limit, or until `goes_on` says False."""
        with tempfile.TemporaryFile() as sink:
            process = subprocess.Popen(
                [*self._command, *arguments, *self._tail],
                env={**os.environ, **self._variables, PARENT: str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
            started = self._clock.monotonic()
            try:
                while process.poll() is None:
                    if self._clock.monotonic() - started > limit.total_seconds():
                        self._end(process)
                        error = ACTION_TIMED_OUT(limit=format_duration(limit))
                        return ActionEnd(success=False, code=error.code, message=error.message)
                    if not goes_on():
                        self._end(process)
                        return ActionEnd(success=False, stopped=True)
                    self._clock.sleep(_LOOK_SECONDS)
            finally:
                if process.poll() is None:
                    self._end(process)
            if process.returncode == 0:
                return ActionEnd(success=True)
            code, message = _last_error(sink)
            message = message or f"exit code {process.returncode}"
            return ActionEnd(success=False, code=code, message=message)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a command to end, and kill it with its own children when it does not."""
        process.terminate()
        try:
            process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _last_error(sink: BinaryIO) -> tuple[str | None, str | None]:
    """Code and message of the last error that a command reported."""
    size = sink.seek(0, os.SEEK_END)
    sink.seek(max(0, size - _TAIL_BYTES))
    for line in reversed(sink.read().decode("utf-8", "replace").splitlines()):
        with suppress(ValueError):
            event = json.loads(line)
            if not isinstance(event, dict):
                continue
            if event.get("type") == "error":
                return str(event.get("code")), str(event.get("message"))[:_MOST_TEXT]
            if event.get("type") == "unit.outcome" and event.get("done") is False:
                # What the owner of a table said to a request.
                return None, str(event.get("text"))[:_MOST_TEXT]
    return None, None
