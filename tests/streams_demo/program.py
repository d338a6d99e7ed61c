"""The process of Polynya that is killed and started again, and what it says."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster_demo.agents import Agent, Failed
from tests.oracle.packs.driver import ROOT, command, environment

#: Longest time that the demo waits for anything, in seconds: machines may be busy.
PATIENCE = 600.0

Said = dict[str, Any]


class Program:
    """`polynya run` on the project, start after start."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        """In a folder; `patience` seconds are the longest time that it waits for anything."""
        self._folder, self.patience = folder, patience
        self._starts: list[Agent] = []

    def start(self) -> None:
        """Start it; its output goes to a file of its own."""
        name = f"run-{len(self._starts) + 1}"
        output = self._folder / f"{name}.jsonl"
        with output.open("wb") as sink:
            process = subprocess.Popen(
                self._command("run"), env=environment(), cwd=ROOT, stdout=sink, stderr=sink,
                start_new_session=True,
            )  # fmt: skip
        self._starts.append(Agent(name, process, output))

    @property
    def pid(self) -> int:
        """Of the last start."""
        return self._starts[-1].process.pid

    def kill(self) -> None:
        """`kill -9`, the JVM, too."""
        self._starts[-1].kill()

    def stop(self) -> None:
        """Ask it to end, and wait for it. Raises Failed when it does not end well."""
        last = self._starts[-1]
        last.process.terminate()
        try:
            code = last.process.wait(self.patience)
        except subprocess.TimeoutExpired:
            raise Failed(f"{last.name} did not end") from None
        if code != 0:
            raise Failed(_ended(last))

    def process_the_rest(self) -> None:
        """`run --once`: land, copy and apply what is left. Raises Failed."""
        line = self._command("run", "--once", "--apply", "always")
        process = subprocess.Popen(
            line, env=environment(), cwd=ROOT, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        last = Agent("run --once", process, self._folder / "run-once.jsonl")
        self._starts.append(last)
        said, _ = process.communicate()
        last.output.write_text(said, "utf-8")
        if process.returncode != 0:
            raise Failed(_ended(last))

    def end(self) -> None:
        """Kill what still runs."""
        for one in self._starts:
            if one.runs:
                one.kill()

    def said(self) -> list[Said]:
        """Events of the last start."""
        return self._starts[-1].said()

    def all_said(self) -> list[Said]:
        """Events of all starts."""
        return [event for one in self._starts for event in one.said()]

    def count(self, kind: str) -> int:
        """Events of a kind, of all starts."""
        return sum(event["type"] == kind for event in self.all_said())

    def until(self, what: str, there: Callable[[], bool]) -> None:
        """Wait for something that it does. Raises Failed when it ends, or comes too late."""
        last, deadline = self._starts[-1], time.monotonic() + self.patience
        while not there():
            if not last.runs:
                raise Failed(_ended(last))
            if time.monotonic() > deadline:
                tail = last.output.read_text("utf-8", "replace")[-3000:]
                raise Failed(f"after {self.patience:.0f} s not yet: {what}\n{tail}")
            time.sleep(0.1)

    def _command(self, *verb: str) -> list[str]:
        return command(*verb, "--project", str(self._folder), "--json", "--quiet")


def _ended(one: Agent) -> str:
    tail = one.output.read_text("utf-8", "replace")[-3000:]
    return f"{one.name} ended with {one.process.returncode}:\n{tail}"
