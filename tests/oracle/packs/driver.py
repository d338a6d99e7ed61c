"""How tests reach the engine: by the commands of the product, through one Protocol.

`CliDriver` starts a process for each command, as a user does. `tests/lab/commands.py` has a driver
that calls the same commands in this process, where one JVM serves many runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[3]
Rows = list[dict[str, Any]]


class Driver(Protocol):
    """The two things that a test needs of the engine."""

    def run_project(self, directory: Path, apply: str = "policy") -> RunOutcome:
        """Process everything landed, as `run --once --apply <apply>` does; raises on failure."""

    def query(self, directory: Path, statements: Sequence[str]) -> list[Rows]:
        """Rows of each statement, as `query --file --json` prints them; raises on failure."""


@dataclass(frozen=True)
class Printed:
    """Exit code of a command and what it printed."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class RunOutcome:
    """What a run printed; `events` is its NDJSON, empty for drivers without one."""

    events: tuple[dict[str, Any], ...] = ()


class CommandFailed(AssertionError):
    """A command ended with another exit code than 0; the message holds what it printed.

    `failed` has the message of each dataset (`schema.name`) that a run gave up on: the others of
    the same run are processed.
    """

    def __init__(self, text: str, failed: Mapping[str, str]) -> None:
        super().__init__(text)
        self.failed = failed


class CommandDriver(ABC):
    """Speaks to the engine in command lines and reads what they print."""

    @abstractmethod
    def call(self, *arguments: str) -> Printed:
        """Run `polynya` with these arguments."""

    def run_project(self, directory: Path, apply: str = "policy") -> RunOutcome:
        text = self._call("run", "--once", "--apply", apply, "--project", str(directory), "--json")
        return RunOutcome(tuple(json.loads(line) for line in text.splitlines() if line))

    def query(self, directory: Path, statements: Sequence[str]) -> list[Rows]:
        if not statements:
            return []
        script = directory / ".query.sql"
        script.write_text(";\n".join(statements) + ";\n", encoding="utf-8")
        text = self._call("query", "--file", str(script), "--json", "--project", str(directory))
        lines = [json.loads(line) for line in text.splitlines() if line]
        assert [line["statement"] for line in lines] == list(range(1, len(statements) + 1)), text
        return [line["rows"] for line in lines]

    def _call(self, *arguments: str) -> str:
        printed = self.call(*arguments)
        if printed.code != 0:
            raise CommandFailed(
                f"polynya {' '.join(arguments)}: exit {printed.code}\n"
                f"{printed.output[-2000:]}\n{printed.errors[-6000:]}",
                _failed(printed.output),
            )
        return printed.output


class CliDriver(CommandDriver):
    """Runs `python -m polynya …` in a process of its own, from the source tree."""

    def __init__(self, timeout_seconds: float = 900.0) -> None:
        self._timeout_seconds = timeout_seconds

    def call(self, *arguments: str) -> Printed:
        """See `CommandDriver`."""
        done = subprocess.run(
            command(*arguments),
            env=environment(),
            cwd=ROOT,
            text=True,
            encoding="utf-8",
            capture_output=True,
            timeout=self._timeout_seconds,
            check=False,
        )
        return Printed(done.returncode, done.stdout, done.stderr)


def _failed(output: str) -> dict[str, str]:
    """Datasets that a run reported as failed, with the message."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {line["subject"]: line["message"] for line in lines if line.get("type") == "unit.failed"}


def command(*arguments: str) -> list[str]:
    """Command line of one CLI call."""
    return [sys.executable, "-m", "polynya", *arguments]


def environment() -> dict[str, str]:
    """Environment of one CLI call: the package from the source tree first."""
    paths = [str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "NO_COLOR": "1"}
