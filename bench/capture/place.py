"""A server, projects that capture databases of it, and Polynya as a process over them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from examples.servers.postgresql import PostgresServer

ROOT: Final = Path(__file__).resolve().parents[2]
PASSWORD: Final = "POLYNYA_BENCH_PASSWORD"  # noqa: S105 - the name of a variable
_FILES: Final = {
    "polynya.yml": (
        "apiVersion: polynya/v1\nkind: project\nname: bench\n"
        "targets:\n  local: {landing: landing, warehouse: warehouse}\n"
    ),
    "connections/source.yml": (
        "type: postgresql\nhost: 127.0.0.1\nport: PORT\ndatabase: NAME\nuser: USER\n"
        f"password: {{env: {PASSWORD}}}\ntls: {{mode: disable}}\n"
    ),
    "tasks/source_db.yml": (
        "apiVersion: polynya/v1\nkind: landing\nname: source_db\nconnection: source\n"
        'tables: {include: ["public.%"]}\nslot: bench_NAME\n'
        "publication: bench_NAME\nload: {parallel: 2}\nwrite: {roll: {age: 1s}}\n"
    ),
}
#: Only the part that measures the live view has it: the others capture, and nothing else.
STORAGE: Final = (
    "apiVersion: polynya/v1\nkind: storage\nname: live\nschema: live\n"
    "landing: {path: source_db, format: debezium}\nbatch: {freshness: 1s}\n"
)
Said = dict[str, Any]


class GaveUpError(Exception):
    """A part did not end in its time, or failed; the text says what is known."""


@dataclass
class Run:
    """A command of Polynya that keeps running; its events go to a file."""

    process: subprocess.Popen[bytes]
    output: Path
    deadline: float
    _read: int = 0
    _events: list[Said] = field(default_factory=list)

    def events(self, kind: str) -> list[Said]:
        """Its events of a kind so far, each with its moment in seconds as `second`."""
        text = self.output.read_bytes()
        end = text.rfind(b"\n") + 1
        for line in text[self._read : end].splitlines():
            # Not an event: the first line, or what a library has printed.
            with suppress(KeyError, TypeError, ValueError):
                event = json.loads(line)
                event["second"] = datetime.fromisoformat(event["at"]).timestamp()
                self._events.append(event)
        self._read = end
        return [one for one in self._events if one["type"] == kind]

    def landed(self) -> int:
        """Events that have landed."""
        return sum(one["events"] for one in self.events("capture.landed"))

    def wait(self, until: Any, what: str) -> None:
        """Wait until something holds, or the process has ended. Raises GaveUpError."""
        while not until():
            failed = self.events("unit.failed")
            if failed:
                raise GaveUpError(f"{what}: {failed[0]['message']}")
            if self.process.poll() not in {None, 0}:
                tail = self.output.read_text("utf-8", "replace")[-800:]
                raise GaveUpError(f"{what}: Polynya ended with {self.process.returncode}: {tail}")
            if self.process.poll() == 0:
                return
            if time.monotonic() > self.deadline:
                raise GaveUpError(f"{what}: not in time, {self.landed():,} events have landed")
            time.sleep(0.1)

    def end(self) -> None:
        """Ask it to end, and wait; a deaf one is killed."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Source:
    """A database with the project that captures it."""

    server: PostgresServer
    name: str
    folder: Path

    def sql(self, *statements: str) -> Any:
        """Run statements; the rows of the last."""
        return self.server.run(*statements, database=self.name)

    @contextmanager
    def polynya(self, *verb: str, seconds: float) -> Iterator[Run]:
        """A command of Polynya; it is ended after the block."""
        output = self.folder / f"{time.monotonic_ns()}.jsonl"
        command = [sys.executable, "-m", "polynya", *verb, "--project", str(self.folder), "--json"]
        variables = {**os.environ, PASSWORD: self.server.password}
        with output.open("wb") as sink:
            process = subprocess.Popen(
                command, cwd=ROOT, env=variables, stdout=sink, stderr=subprocess.STDOUT
            )
        run = Run(process, output, time.monotonic() + seconds)
        try:
            yield run
        finally:
            run.end()


def source_in(server: PostgresServer, folder: Path, name: str, *more: tuple[str, str]) -> Source:
    """A new database, and a project that captures it; `more` are further files of the project."""
    server.run(f"CREATE DATABASE {name} TEMPLATE template0")
    given = {"PORT": str(server.port), "NAME": name, "USER": server.user}
    for path, text in (*_FILES.items(), *more):
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # In one go: a value may be one of the words.
        filled = re.sub("|".join(given), lambda found: given[found[0]], text)
        file.write_text(filled, "utf-8")
    (folder / name / "landing").mkdir()
    return Source(server, name, folder / name)
