"""Agents in processes of their own, and what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.oracle.packs.driver import ROOT, command, environment

Said = dict[str, Any]


class Failed(Exception):
    """The demo cannot go on; the message says why."""


@dataclass
class Agent:
    """One node: a process group, its output, its work folder."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path
    began: float = field(default_factory=time.monotonic)
    _read: int = 0
    _events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether its process does."""
        return self.process.poll() is None

    def said(self) -> list[Said]:
        """Its events so far."""
        with self.output.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        end = text.rfind(b"\n") + 1
        self._read += end
        for line in text[:end].splitlines():
            if line.startswith(b'{"type"'):
                event = json.loads(line)
                if "at" in event:
                    self._events.append({**event, "node": self.name})
        return list(self._events)

    def kill(self) -> None:
        """As a power cut would end it: the JVM, too."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> None:
        """Ask it to end, as a service manager does."""
        if self.runs:
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes."""
        os.killpg(self.process.pid, number)


class Agents:
    """All agents of the demo, those that ended included."""

    def __init__(
        self,
        folder: Path,
        options: list[str],
        variables: Mapping[str, str],
        *,
        program: Sequence[str] = (sys.executable, "-m", "polynya"),
    ) -> None:
        self._folder, self._options, self._program = folder, options, program
        self._variables = {**environment(), **variables}
        self.all: dict[str, Agent] = {}

    def start(
        self, name: str, *more: str, variables: Mapping[str, str] = MappingProxyType({})
    ) -> Agent:
        """Start a node, or start it again; its output goes on."""
        output = self._folder / f"{name}.jsonl"
        work = self._folder / "work" / name
        line = [
            *self._program, "agent", *self._options, "--node-id", name, "--work", str(work),
            "--poll-seconds", "2", *more,
        ]  # fmt: skip
        with output.open("ab") as sink:
            process = subprocess.Popen(
                line, env={**self._variables, **variables}, cwd=ROOT, stdout=sink, stderr=sink,
                start_new_session=True,
            )  # fmt: skip
        self.all[name] = Agent(name, process, output)
        return self.all[name]

    def polynya(self, *arguments: str) -> list[Said]:
        """The JSON lines of a command, whatever its exit code."""
        done = subprocess.run(
            command(*arguments, "--json", "--quiet"),
            env=self._variables, cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode not in (0, 1):
            raise Failed(f"polynya {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return lines

    def said(self) -> list[Said]:
        """Events of all agents in the order of their time."""
        events = [event for agent in self.all.values() for event in agent.said()]
        return sorted(events, key=lambda event: str(event["at"]))

    def owners(self) -> dict[str, str]:
        """The node that claimed each unit last, of those that still run."""
        found: dict[str, str] = {}
        for event in self.said():
            if event["type"] in ("unit.claimed", "unit.raised"):
                found[event["subject"]] = event["node"]
            elif event["type"] in ("unit.released", "unit.lost") and (
                found.get(event["subject"]) == event["node"]
            ):
                del found[event["subject"]]
        return {unit: node for unit, node in found.items() if self.all[node].runs}

    def end(self) -> None:
        """Kill what still runs."""
        for agent in self.all.values():
            if agent.runs:
                agent.kill()


def after(events: list[Said], moment: datetime, kind: str) -> Iterator[Said]:
    """Events of a kind after a moment."""
    for event in events:
        if event["type"] == kind and datetime.fromisoformat(event["at"]) > moment:
            yield event
