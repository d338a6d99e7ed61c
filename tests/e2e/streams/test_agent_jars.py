"""A running agent that gets its first landing from Kafka: it comes back with the jars for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.agents import running_agent
from tests.projects import CLICKS, USERS, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Nobody listens there, so the landing says that it has asked.
NOBODY = CLICKS.replace("broker:9092", '"127.0.0.1:9"').replace('[clicks, "orders-%"]', "[clicks]")


def test_a_landing_from_kafka_needs_no_restart_by_hand(tmp_path: Path) -> None:
    write_project(tmp_path, users=USERS)
    with running_agent(tmp_path, "--project", str(tmp_path)) as agent:
        agent.says("agent.ready")
        before, process = len(agent.said()), agent.process.pid

        (tmp_path / "tasks" / "clicks.yml").write_text(NOBODY, "utf-8")

        assert agent.says("agent.draining")["reason"] == "a landing needs more jars than Spark has"
        again = agent.says("agent.ready", after=before)
        # Until then it may have failed for want of them.
        failed = agent.says("unit.failed", "clicks", after=agent.said().index(again))
        assert failed["code"] == "POLYNYA-STR-005", json.dumps(failed)
        assert agent.process.pid == process
        assert agent.process.poll() is None
