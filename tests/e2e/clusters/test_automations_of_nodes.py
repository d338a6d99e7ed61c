"""Automations in real agents: work is asked of owners, and moments outlast a killed node."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from polynya.automation.state import AutomationStore, RunLog
from polynya.store.object_store import LocalObjectStore
from tests.e2e.agents import running_agent
from tests.e2e.clusters.test_two_clusters import awaited, rows
from tests.projects import PROJECT, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NEAR = """\
apiVersion: polynya/v1
kind: storage
name: near
schema: shop
landing: {path: near, format: json}
datasets:
  - name: near
    path: "changes/*.json"
    initial_load: "load/*.json"
    keys: [id]
    sequence_by: [n]
"""
CHECKS = """apiVersion: polynya/v1
kind: automation
name: checks
triggers: [{schedule: "* * * * *", time_zone: UTC}]
actions:
  - {run: [near], apply: always}
  - maintain: ["shop.*"]
  - reload: near
  - validate: true
"""

#: Each reload of the other automation is an end of the task.
FOLLOWS = """apiVersion: polynya/v1
kind: automation
name: follows
triggers: [{after: [near]}]
actions: [{validate: true}]
"""


def test_a_leader_carries_out_automations_and_the_next_one_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    write_project(folder, project=f"{PROJECT}cluster: main\n", near=NEAR)
    for path, text in {
        "automations/checks.yml": CHECKS,
        "automations/follows.yml": FOLLOWS,
        "landing/near/load/1.json": '{"id": 1, "n": 1}',
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    store = AutomationStore(LocalObjectStore(folder / "warehouse"))

    def ended(by: str | None = None) -> list[RunLog]:
        return [
            run
            for run in store.runs("checks")
            if run.state == "success" and by in (None, run.by.rpartition(":")[2])
        ]

    options = ["--config", str(folder), "--coordination", str(tmp_path / "agreed")]
    options += ["--cluster", "main"]
    with running_agent(tmp_path, *options, "--work", str(tmp_path / "w1"), node="n1") as first:
        awaited(lambda: rows(folder, "near") == [1], first)
        try:
            awaited(lambda: bool(ended()), first)
        except AssertionError:
            raise AssertionError([*store.runs("checks")]) from None
        awaited(lambda: bool(list(store.runs("follows"))), first)
        run = ended()[0]
        told = [line for line in first.said() if line["type"] == "automation.ended"]
        os.killpg(first.process.pid, signal.SIGKILL)

    assert [(step.state, step.action) for step in run.steps] == [
        ("success", "polynya task run near --apply always --wait"),
        ("success", "polynya maintain shop.* --wait"),
        ("success", "polynya reload near --mode compare_and_apply_with_deleted_rows --wait"),
        ("success", "polynya validate"),
    ]
    assert run.id in {line["run"] for line in told}

    followed = list(store.runs("follows"))
    assert {one.why for one in followed} == {"near ended well"}
    before = {run.id for run in store.runs("checks")}
    with running_agent(tmp_path, *options, "--work", str(tmp_path / "w2"), node="n2") as second:
        number = str(second.process.pid)
        awaited(lambda: bool(ended(by=number)), second)
        awaited(lambda: len(list(store.runs("follows"))) > len(followed), second)
        os.killpg(second.process.pid, signal.SIGTERM)
        assert second.process.wait(100) == 0
    assert ended(by=number)[0].id not in before
    assert rows(folder, "near") == [1]
