"""Starts `polynya run --once` in a process group of its own, and ends it as a power cut would.

Boundaries are hit from outside the product: a small Python program wraps the one function through
which every commit goes, then calls the CLI as usual.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.oracle.packs.driver import ROOT, command, environment

COMMIT = "polynya.lake.iceberg.commit.commit_row_delta"
KILLED = -signal.SIGKILL

# Wraps the commit before anything imports it; `sys.argv` holds hook, mode, number, folder,
# constants, CLI.
_WRAPPER = """
import dataclasses, importlib, json, os, signal, sys, time
from pathlib import Path
hook, mode, number, folder, constants, *arguments = sys.argv[1:]
for place, value in json.loads(constants).items():
    module_name, _, name = place.rpartition(".")
    setattr(importlib.import_module(module_name), name, value)
module_name, _, name = hook.rpartition(".")
module = importlib.import_module(module_name)
real, calls = getattr(module, name), []

def die():
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)

def meet():
    (Path(folder) / f"at-commit-{os.getpid()}").touch()
    deadline = time.monotonic() + 120
    while len(list(Path(folder).glob("at-commit-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)

def linger():
    (Path(folder) / "at-commit").touch()
    deadline = time.monotonic() + 120
    while not (Path(folder) / "go").exists() and time.monotonic() < deadline:
        time.sleep(0.01)

def wrapped(*args, **kwargs):
    calls.append(None)
    mine = len(calls) == int(number)
    if mine and mode == "before":
        die()
    if mode == "lossy":
        table, step = args
        kept = [file for file in step.add if file.partition != "changes"]
        args = table, dataclasses.replace(step, add=kept)
    if len(calls) == 1 and mode in ("meet", "unvalidated"):
        meet()
    if mine and mode == "linger":
        linger()
    result = real(*args, **kwargs)
    if mine and mode == "after":
        die()
    return result

setattr(module, name, wrapped)
for other in [m for name, m in list(sys.modules.items()) if name != "__main__"]:
    for attribute, value in list(vars(other).items()) if hasattr(other, "__dict__") else ():
        if value is real and other is not module:
            setattr(other, attribute, wrapped)
if mode == "unvalidated":
    module._validate = lambda *args, **kwargs: None
sys.argv = ["polynya", *arguments]
from polynya.cli.main import main
sys.exit(main())
"""


@dataclass(frozen=True)
class Running:
    """One run in its own process group; its output goes to a file."""

    process: subprocess.Popen[bytes]
    output: Path

    def wait(self, timeout_seconds: float = 600.0) -> int:
        """Exit code, negative for a signal."""
        return self.process.wait(timeout_seconds)

    def kill(self) -> None:
        """SIGKILL to Python and to its JVM at once, as losing the machine does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def text(self) -> str:
        """The end of what it printed."""
        return self.output.read_text("utf-8", "replace")[-6000:]


@contextmanager
def running(
    directory: Path,
    *verb: str,
    apply: str = "policy",
    mode: str = "",
    number: int = 0,
    hook: str = COMMIT,
    constants: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Running]:
    """Start one run, or another verb; with a mode, through the wrapper around `hook`.

    The wrapper gives `constants` of modules other values, too. Never outlives the block.
    """
    chosen = verb or ("run", "--once", "--apply", apply)
    arguments = [*chosen, "--project", str(directory)]
    line = command(*arguments)
    if mode:
        line = [sys.executable, "-c", _WRAPPER, hook, mode, str(number), str(directory)]
        line += [json.dumps(dict(constants)), *arguments]
    with started(directory, line) as run:
        yield run


@contextmanager
def started(directory: Path, line: list[str]) -> Iterator[Running]:
    """Start a command line whose output goes to a file in the folder. Never outlives the block."""
    output = directory / f"run-{time.monotonic_ns()}.log"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            line,
            env=environment(),
            cwd=ROOT,
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    run = Running(process, output)
    try:
        yield run
    finally:
        run.kill()


def run_to_end(directory: Path, *, apply: str = "policy", attempts: int = 5) -> None:
    """Run until a run ends well: what a supervisor does after a crash."""
    texts = []
    for _ in range(attempts):
        with running(directory, apply=apply) as run:
            if run.wait() == 0:
                return
            texts.append(run.text())
    raise AssertionError("no run ended well:\n" + "\n".join(texts))
