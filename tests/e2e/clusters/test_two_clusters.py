"""Two clusters on one project: each works on its own tasks, and one of them moves to the other."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agents import Agent, running_agent
from tests.oracle.packs.read_back import READERS, internal_table
from tests.projects import PROJECT, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]
TASK = """\
apiVersion: polynya/v1
kind: storage
name: NAME
schema: shop
landing: {path: NAME, format: json}
datasets:
  - {name: NAME, path: "*.json", mode: append_only}
"""


def rows(folder: Path, name: str) -> list[int]:
    """The rows of a table, duplicates and all."""
    try:
        found = READERS["pyiceberg"](folder, *internal_table("shop", name), ["id"])
    except Exception:
        return []
    return sorted(row["id"] for row in found if row["id"] is not None)


def works_on(agent: Agent) -> set[str]:
    """The datasets whose batches an agent has copied."""
    return {line["subject"] for line in agent.said() if line["type"] == "batch.copied"}


def awaited(condition: Callable[[], bool], *agents: Agent) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        said = [agent.output.read_text("utf-8")[-2000:] for agent in agents]
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def test_each_cluster_works_on_its_tasks_and_a_task_that_moves_loses_nothing(
    tmp_path: Path,
) -> None:
    folder, landed = tmp_path / "shop", {"near": 0, "far": 0}
    shared, far = f"{PROJECT}cluster: main\n", TASK.replace("NAME", "far")
    write_project(
        folder, project=shared, near=TASK.replace("NAME", "near"), far=f"{far}cluster: big\n"
    )

    def land(name: str) -> None:
        landed[name] += 1
        file = folder / "landing" / name / f"{landed[name]:04}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".tmp")
        partial.write_text(json.dumps({"id": landed[name]}), "utf-8")
        partial.rename(file)

    def is_there(name: str) -> bool:
        return rows(folder, name) == list(range(1, landed[name] + 1))

    land("near")
    land("far")
    options = ["--config", str(folder), "--coordination", str(tmp_path / "agreed"), "--only-named"]
    first = ["--cluster", "main", "--work", str(tmp_path / "w1")]
    second = ["--cluster", "big", "--work", str(tmp_path / "w2")]
    with (
        running_agent(tmp_path, *options, *first, node="n1") as main,
        running_agent(tmp_path, *options, *second, node="n2") as big,
    ):
        awaited(lambda: is_there("near") and is_there("far"), main, big)
        awaited(lambda: bool(works_on(main)) and bool(works_on(big)), main, big)
        assert (works_on(main), works_on(big)) == ({"shop.near"}, {"shop.far"})

        # Files land all the while; both may want it for a moment, and only one can commit.
        write_project(folder, project=shared, far=far)
        for _ in range(20):
            land("far")
            time.sleep(0.25)
        awaited(lambda: "shop.far" in works_on(main), main, big)
        awaited(lambda: is_there("far"), main, big)
        land("far")
        awaited(lambda: is_there("far"), main, big)

        for agent in (main, big):
            os.killpg(agent.process.pid, signal.SIGTERM)
            assert agent.process.wait(100) == 0
        accepted = [one for one in big.said() if one["type"] == "configuration.accepted"]
        assert accepted[0]["tasks"] == ["far"]
        assert (accepted[-1]["tasks"], accepted[-1]["elsewhere"]) == ([], ["far", "near"])
    assert is_there("far")
    assert is_there("near")
