"""`polynya run` with Spark: a moment loads a task, its end starts a chain, a webhook is told."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from polynya.automation.state import AutomationStore, RunLog
from polynya.store.object_store import LocalObjectStore
from tests.oracle.packs.driver import command, environment
from tests.projects import USERS, write_project
from tests.server.operations.test_life import told
from tests.streams.rest.server import local_api

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ORDERS = """apiVersion: polynya/v1
kind: storage
name: orders
schema: shop
landing: {path: orders, format: json}
datasets:
  - {name: orders, keys: [id], sequence_by: [n]}
"""
HEAD = "apiVersion: polynya/v1\nkind: automation\n"
AUTOMATIONS = {
    "load": """name: load
triggers: [{schedule: "* * * * *", time_zone: UTC}]
actions: [{run: [orders], apply: always}]
""",
    # An archive of this name exists, so that the condition of the third action holds.
    "checks": """name: checks
triggers: [{after: [orders]}]
actions:
  - verify: shop.orders
  - export: taken.tar.gz
  - {validate: true, when: failure}
  - {verify: all}
  - {maintain: ["shop.orders"], when: always}
""",
}
ONCALL = """apiVersion: polynya/v1
kind: notification
channels: {hook: {type: webhook, url: "URL", secret: "${env:HOOK_SECRET}"}}
rules: {all: {at_most_every: 0s}}
"""


def test_a_run_loads_at_a_moment_and_the_end_starts_a_chain_with_a_condition(
    tmp_path: Path,
) -> None:
    folder = write_project(tmp_path, users=USERS, orders=ORDERS)
    for name, text in AUTOMATIONS.items():
        (folder / "automations").mkdir(exist_ok=True)
        (folder / "automations" / f"{name}.yml").write_text(HEAD + text)
    (folder / "taken.tar.gz").touch()
    land(folder, "users/1.json", {"userId": 1, "sequenceNum": 1, "name": "Ann", "operation": "I"})
    land(folder, "orders/1.json", {"id": 7, "n": 1, "state": "new"}, {"id": None, "n": 2})
    store = AutomationStore(LocalObjectStore(folder / "warehouse"))

    with local_api(lambda _: {}) as receiver:
        (folder / "notifications").mkdir()
        (folder / "notifications" / "oncall.yml").write_text(ONCALL.replace("URL", receiver.url))
        with (tmp_path / "run.log").open("wb") as sink:
            run = subprocess.Popen(
                command("run", "users", "--apply", "always", "--json", "--project", str(folder)),
                env={
                    **environment(),
                    "POLYNYA_LOCAL_APIS": "127.0.0.1",
                    "HOOK_SECRET": "of-the-hooks-0123456789",
                },
                stdout=sink,
                stderr=sink,
            )
        try:
            checks = until_ended(store, "checks", run, tmp_path / "run.log")
        finally:
            run.send_signal(signal.SIGTERM)
            code = run.wait(120)
        notices = told(receiver)

    loads = [one for one in store.runs("load") if one.state == "success"]
    assert loads, store.runs("load")
    assert [step.action for step in loads[-1].steps] == ["polynya run orders --once --apply always"]
    assert checks.why == "orders ended well"
    assert [step.state for step in checks.steps] == [
        "success", "failure", "success", "skipped", "success",
    ]  # fmt: skip
    assert (checks.state, checks.steps[1].code) == ("failure", checks.code)
    assert "quarantine opened" in notices
    assert code == 0, (tmp_path / "run.log").read_text()[-3000:]
    assert rows(folder, "SELECT id, state FROM shop.orders") == [{"id": 7, "state": "new"}]
    assert rows(folder, "SELECT name FROM shop.users") == [{"name": "Ann"}]


def land(folder: Path, path: str, *records: dict[str, Any]) -> None:
    file = folder / "landing" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def until_ended(
    store: AutomationStore, name: str, run: subprocess.Popen[bytes], log: Path
) -> RunLog:
    """The first run of an automation that has ended."""
    deadline = time.monotonic() + 420
    while not (ended := [one for one in store.runs(name) if one.ended is not None]):
        assert run.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.5)
    return ended[-1]


def rows(folder: Path, statement: str) -> list[dict[str, Any]]:
    line = command("query", statement, "--json", "--project", str(folder))
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=True)
    return [json.loads(row) for row in done.stdout.splitlines()]
