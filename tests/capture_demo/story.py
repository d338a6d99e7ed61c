"""What the demo does, step by step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.capture_demo.bank import Bank, Server
from tests.capture_demo.project import CAPTURE
from tests.capture_demo.workload import Workload
from tests.cluster_demo.agents import Failed
from tests.oracle.packs.driver import ROOT, command, environment
from tests.streams_demo.program import Program

#: What the faults of the demo do to a capture: it begins again by itself.
_PASSING = {"POLYNYA-GTW-006", "POLYNYA-GTW-020", "POLYNYA-GTW-040", "POLYNYA-GTW-068"}
_WORKER = b"polynya.capture.worker"
_UNSEEN = "UPDATE tellers SET balance = -987654321 WHERE tid = 3"
Said = dict[str, Any]


@dataclass
class Story:
    """The demo as it goes on. `say` takes a line for people; `faults` are those that struck."""

    folder: Path
    bank: Bank
    server: Server
    program: Program
    workload: Workload
    say: Callable[[str], None]
    faults: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """The workload writes, Polynya starts, and the first rows have landed."""
        self._polynya("validate")
        self.workload.start()
        self.program.start()
        self.say("the workload writes; `polynya run` loads, captures and makes tables")
        self._until("the first rows have landed", lambda: self._landed() > 0)

    def kill_capture(self) -> None:
        """kill -9 of the process that captures; `polynya run` starts another."""
        known = self._landed()
        os.kill(capture_process(self.program), signal.SIGKILL)
        self._fault("kill -9 of the capture process")
        self._until("it lands again", lambda: self._landed() > known + 1)

    def kill_server(self, down_seconds: float = 2.0) -> None:
        """kill -9 of the server with all its sessions, and its start a little later."""
        known = self._landed()
        self.server.kill()
        self._fault(f"kill -9 of {self.bank.name}")
        time.sleep(down_seconds)
        self.server.start()
        self.say(f"{self.bank.name} is back")
        self._until("changes land again", lambda: self._landed() > known + 1)

    def wait_for_load(self) -> None:
        """All tables are loaded."""
        self._until("all tables are loaded", lambda: self._loaded() >= self.bank.tables)
        self.say("all tables are loaded")

    def finish(self) -> list[Said]:
        """The workload changes all tables and ends; what the comparison says of each table."""
        self._until("all changes of tables", lambda: self.workload.has_changed_all)
        self.workload.stop()
        counts = self.workload.counts
        self.say(
            f"the workload ends: {counts.steps:,} steps, {counts.changes} changes of tables,"
            f" {counts.refused} refused, {counts.lost} sessions lost"
        )
        self.say("polynya compare, while `polynya run` goes on")
        found = self._compare("compare.jsonl")
        if _is_well(found):
            self._plant()
        self.program.stop()
        return found

    def _plant(self) -> None:
        """Change a row that the capture does not see: the comparison has to name it."""
        self.bank.unseen(self.server, _UNSEEN)
        found = self._compare("planted.jsonl", "--table", "*.tellers")
        named = [(each["key"], each["fault"]) for one in found for each in one["differences"]]
        if named != [("3", "other values")]:
            raise Failed(f"a row was changed behind the capture's back, compare names {named}")
        self.say("a row that is changed behind the capture's back is named: tid = 3")

    def _compare(self, kept: str, *options: str) -> list[Said]:
        """What the comparison says of each table, kept in a file of the folder."""
        wait = ("--wait", str(self.program.patience))
        done = self._polynya("compare", CAPTURE, "--json", *wait, *options, well=(0, 1))
        (self.folder / kept).write_text(done.stdout + done.stderr, "utf-8")
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = [one for one in said if str(one.get("type", "")).startswith("table.")]
        if not found or (done.returncode != 0) == _is_well(found):
            raise Failed(f"compare ended with {done.returncode}: {done.stdout}{done.stderr}")
        return found

    def _polynya(
        self, *verb: str, well: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        """A command on the project. Raises Failed when it does not end well."""
        done = subprocess.run(
            command(*verb, "--project", str(self.folder)),
            env=environment(), cwd=ROOT, text=True, capture_output=True,
            timeout=3 * self.program.patience,
        )  # fmt: skip
        if done.returncode not in well:
            raise Failed(f"{verb[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def _until(self, what: str, there: Callable[[], bool]) -> None:
        def is_there() -> bool:
            failed = [
                one
                for one in self.program.said()
                if one["type"] == "unit.failed" and one["code"] not in _PASSING
            ]
            if failed:
                raise Failed(f"not yet: {what}: {failed[-1]['message']}")
            return there()

        self.program.until(what, is_there)

    def _landed(self) -> int:
        return self.program.count("capture.landed")

    def _loaded(self) -> int:
        return len(
            {one["subject"] for one in self.program.said() if one["type"] == "capture.loaded"}
        )

    def _fault(self, what: str) -> None:
        self.faults.append(what)
        self.say(what)


def capture_process(program: Program) -> int:
    """The number of the process that captures. Raises Failed when there is none."""
    parent = f"PPid:\t{program.pid}\n"
    for entry in Path("/proc").iterdir():
        try:
            is_child = entry.name.isdigit() and parent in (entry / "status").read_text()
            if is_child and _WORKER in (entry / "cmdline").read_bytes():
                return int(entry.name)
        except OSError:
            continue
    raise Failed("no process captures")


def _is_well(found: list[Said]) -> bool:
    return not any(one.get("differences") or one.get("failed") for one in found)
