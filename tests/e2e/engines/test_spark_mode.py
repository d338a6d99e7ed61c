"""A task with a Spark cluster of its own, beside one that works in the agent."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import running_agent
from tests.e2e.spark_cluster import spark_cluster
from tests.oracle.packs.read_back import READERS, internal_table
from tests.projects import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TASK = """\
apiVersion: polynya/v1
kind: storage
name: NAME
schema: shop
landing: {path: NAME, format: json}
apply: {max_pending_rows: 1, min_fraction: 0}
datasets:
  - {name: NAME, path: "*.json", keys: [id], sequence_by: [n], history: true}
"""


WANTED = [("current", 1, 2, "Anna"), ("current", 2, 1, "Bo"), ("prior", 1, 1, "Ann")]


def rows(folder: Path, name: str) -> list[tuple[str, int, int, str]]:
    """What is in Current and Prior of a dataset."""
    columns = ["hdr__partition", "id", "n", "name"]
    try:
        found = READERS["pyiceberg"](folder, *internal_table("shop", name), columns)
    except Exception:
        return []
    kept = [row for row in found if row["hdr__partition"] in {"current", "prior"}]
    return sorted(tuple(row[column] for column in columns) for row in kept)


def land(folder: Path, name: str, number: int, *records: dict[str, Any]) -> None:
    (folder / "landing" / name).mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(one)}\n" for one in records)
    (folder / "landing" / name / f"{number}.json").write_text(text, "utf-8")


def test_a_task_on_a_cluster_of_its_own_gives_what_the_agent_gives(tmp_path: Path) -> None:
    workers, folder = tmp_path / "workers", tmp_path / "shop"
    with spark_cluster(workers) as master:
        engine = f"engine: {{mode: spark, master: '{master}', memory: 600m}}\n"
        near, far = TASK.replace("NAME", "near"), TASK.replace("NAME", "far") + engine
        write_project(folder, near=near, far=far)
        for name in ("near", "far"):
            land(folder, name, 1, {"id": 1, "n": 1, "name": "Ann"}, {"id": 2, "n": 1, "name": "Bo"})
            land(folder, name, 2, {"id": 1, "n": 2, "name": "Anna"})
        with running_agent(folder, "--project", str(folder)) as agent:
            child = int(agent.says("job_run.started", "shop.far")["run"])
            deadline = time.monotonic() + 240
            while [rows(folder, name) for name in ("near", "far")] != [WANTED, WANTED]:
                assert time.monotonic() < deadline, agent.output.read_text("utf-8")[-4000:]
                time.sleep(0.5)

            agent.process.send_signal(signal.SIGTERM)

            assert agent.process.wait(90) == 0
            assert agent.says("agent.stopped")["cut_off"] == []
        assert agent.says("job_run.ended", "shop.far")["state"] == "succeeded"
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)

    assert {path.parent.name for path in workers.glob("*/app-*")} == {"one", "two"}
