"""How tests reach the engine: the CLI by subprocess, or an in-process one behind one Protocol.

`POLYNYA_TEST_DRIVER=module:attribute` names a factory of another `Driver` (one JVM for many runs);
without it every call is a process of its own, as a user would start it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
Rows = list[dict[str, Any]]


class Driver(Protocol):
    """The two things that a test needs of the engine."""

    def run_project(self, directory: Path, apply: str = "policy") -> RunOutcome:
        """Process everything landed, as `run --once --apply <apply>` does; raises on failure."""

    def query(self, directory: Path, statements: Sequence[str]) -> list[Rows]:
        """Rows of each statement, as `query --file --json` prints them; raises on failure."""


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


class CliDriver:
    """Runs `python -m polynya …` in a process of its own, from the source tree."""

    def __init__(self, timeout_seconds: float = 900.0) -> None:
        self._timeout_seconds = timeout_seconds

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
        if done.returncode != 0:
            raise CommandFailed(
                f"polynya {' '.join(arguments)}: exit {done.returncode}\n"
                f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}",
                _failed(done.stdout),
            )
        return done.stdout


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


@lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver of this test run, made once so that an in-process one keeps its JVM."""
    named = os.environ.get("POLYNYA_TEST_DRIVER")
    if not named:
        return CliDriver()
    module, _, attribute = named.partition(":")
    made: Driver = getattr(importlib.import_module(module), attribute)()
    return made


def run_project(directory: Path, apply: str = "policy") -> RunOutcome:
    """Process everything that has landed in a project."""
    return driver().run_project(directory, apply)


def query(directory: Path, statements: Sequence[str]) -> list[Rows]:
    """Rows of each statement."""
    return driver().query(directory, statements)
