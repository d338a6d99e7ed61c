"""The agent as its users run it: edits, a broken edit, a task that fails for ever, SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import running_agent
from tests.lab.commands import INTERPRETED_THERE
from tests.oracle.packs.driver import ROOT, command, environment
from tests.oracle.packs.read_back import READERS, internal_table
from tests.projects import write_project

pytestmark = pytest.mark.spark

TASK = """\
apiVersion: polynya/v1
kind: storage
name: NAME
schema: shop
landing: {path: NAME, format: json}
datasets:
  - {name: NAME, path: "*.json", keys: [id], sequence_by: [n]}
"""
ORDERS = '  - {name: orders, path: "*.json", keys: [id], sequence_by: [n], history: true}\n'


def status(folder: Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        command("agent", "status", "--json", "--project", str(folder)),
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_a_node_takes_up_edits_and_goes_on_whatever_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in INTERPRETED_THERE.items():
        monkeypatch.setenv(name, value)
    users, logins = TASK.replace("NAME", "users"), TASK.replace("NAME", "logins")
    write_project(tmp_path, users=users, logins=logins)
    tasks = tmp_path / "tasks"

    def land(name: str, number: int) -> None:
        record = json.dumps({"id": number, "n": number, "other": 1})
        (tmp_path / "landing" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "landing" / name / f"{number}.json").write_text(record, "utf-8")

    land("users", 1)
    land("logins", 1)
    with running_agent(tmp_path, "--project", str(tmp_path)) as agent:
        agent.says("batch.copied", "shop.users")
        agent.says("batch.copied", "shop.logins")

        # The rows that are there have other keys: this task fails for ever, while all else goes on.
        agent.does(
            lambda: (tasks / "logins.yml").write_text(logins.replace("[id]", "[other]"), "utf-8"),
            "job.start",
            "shop.logins",
        )
        agent.does(lambda: land("logins", 2), "unit.failed", "shop.logins")

        took = agent.does(
            lambda: (tasks / "users.yml").write_text(users + ORDERS, "utf-8"),
            "batch.copied", "shop.orders",
        )  # fmt: skip
        agent.does(
            lambda: (tasks / "users.yml").write_text(users.replace("keys", "keyz"), "utf-8"),
            "configuration.broken",
        )
        agent.does(lambda: land("users", 2), "batch.copied", "shop.users")

        suspended = agent.says("job.suspend", "shop.logins")
        assert "failed 5 times" in suspended["reason"]
        assert "POLYNYA-LAKE-010" in suspended["reason"]
        before = len(agent.said())
        land("users", 3)
        agent.says("batch.copied", "shop.users", after=before)
        agent.says("batch.copied", "shop.orders", after=before)
        code, report = status(tmp_path)
        assert code == 1
        assert {name: task["state"] for name, task in report["tasks"].items()} == {
            "logins": "suspended",
            "users": "running",
        }
        assert report["configuration"]["kept"] == ["tasks/users.yml"]
        assert report["configuration"]["errors"][0]["where"] == "tasks/users.yml:7:35"

        began = time.monotonic()
        # To the JVM, too: so do service managers.
        os.killpg(agent.process.pid, signal.SIGTERM)
        assert agent.process.wait(100) == 0
        print(f"edit to rows {took:.1f} s, SIGTERM to exit {time.monotonic() - began:.1f} s")
        assert agent.said()[-1]["cut_off"] == []

    for name in ("users", "orders"):
        rows = READERS["duckdb"](tmp_path, *internal_table("shop", name), ["hdr__partition", "id"])
        assert sorted(row["id"] for row in rows if row["id"] is not None) == [1, 2, 3]
