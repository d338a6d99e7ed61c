"""Runs `polynya` as a user does: the command of the environment, in the folder of a project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.packs.driver import ROOT, Printed, environment

#: No command of the newcomer's takes so long; one that does hangs.
LONGEST_SECONDS = 1200.0


class CommandFailedError(AssertionError):
    """A command that had to work did not."""


@dataclass(frozen=True)
class Commands:
    """The commands of one project. `extra` is set in their environment."""

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    def line(self, *arguments: str) -> list[str]:
        """The command line: the console script that the package installs, where it did."""
        script = Path(sys.executable).with_name("polynya")
        start = [str(script)] if script.exists() else [sys.executable, "-m", "polynya"]
        return [*start, *arguments]

    def environment(self) -> dict[str, str]:
        """The variables of a command."""
        return {**environment(), **self.extra}

    def call(
        self,
        *arguments: str,
        within: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Printed:
        """Run a command to its end. `within` are words in front, of a program that starts it."""
        done = subprocess.run(
            [*within, *self.line(*arguments)],
            cwd=self.folder,
            env={**self.environment(), **(extra or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        texts = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return Printed(done.returncode, *texts)

    def must(self, *arguments: str) -> str:
        """Standard output of a command that has to end with 0."""
        printed = self.call(*arguments)
        if printed.code != 0:
            said = printed.output[-2000:] + printed.errors[-4000:]
            raise CommandFailedError(f"polynya {' '.join(arguments)}: exit {printed.code}\n{said}")
        return printed.output

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """What a command prints with `--json`."""
        return [json.loads(line) for line in self.must(*arguments, "--json").splitlines()]


def processors() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def commit() -> str:
    """The commit that is tried, in short."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"
