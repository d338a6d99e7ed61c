"""An agent in a process of its own, and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.oracle.packs.driver import ROOT, command, environment


class Agent:
    """A running agent and what it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process, self.output = process, output

    def said(self) -> list[dict[str, Any]]:
        lines = self.output.read_text("utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def says(self, kind: str, subject: str | None = None, *, after: int = 0) -> dict[str, Any]:
        """The first such event behind the first `after` lines, awaited."""
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            for line in self.said()[after:]:
                if line["type"] == kind and subject in (None, line["subject"]):
                    return line
            assert self.process.poll() is None, self.output.read_text("utf-8")[-4000:]
            time.sleep(0.05)
        raise AssertionError(f"no {kind} {subject}:\n{self.output.read_text('utf-8')[-4000:]}")

    def does(self, edit: Callable[[], object], kind: str, subject: str | None = None) -> float:
        """Seconds from an edit to its effect."""
        after, began = len(self.said()), time.monotonic()
        edit()
        self.says(kind, subject, after=after)
        return time.monotonic() - began


@contextmanager
def running_agent(folder: Path, *options: str, node: str = "n1") -> Iterator[Agent]:
    """An agent with what it says in a folder; its processes never outlive the block."""
    line = command("agent", "--poll-seconds", "1", "--node-id", node, *options)
    output = folder / ("agent.jsonl" if node == "n1" else f"agent-{node}.jsonl")
    with output.open("wb") as sink:
        process = subprocess.Popen(
            line, env=environment(), cwd=ROOT, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        yield Agent(process, output)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
