"""Spark's JVM is killed, as a machine that is short of memory does it."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.killing import running
from tests.projects import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TASK = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - {name: users, path: "*.json", keys: [id], sequence_by: [n]}
"""


def jvm_of(group: int) -> int:
    """The Java process of a process group."""
    for folder in Path("/proc").iterdir():
        is_java = folder.name.isdigit() and (folder / "comm").read_text("utf-8") == "java\n"
        if is_java and os.getpgid(int(folder.name)) == group:
            return int(folder.name)
    raise AssertionError("there is no JVM")


def test_a_run_says_that_spark_is_gone_and_ends(tmp_path: Path) -> None:
    write_project(tmp_path, users=TASK)
    landing = tmp_path / "landing" / "users"
    landing.mkdir(parents=True)
    (landing / "1.json").write_text(json.dumps({"id": 1, "n": 1}), "utf-8")
    with running(tmp_path, "--json", "run") as run:
        deadline = time.monotonic() + 240
        while "batch.copied" not in run.text():
            assert time.monotonic() < deadline, run.text()
            time.sleep(0.1)
        os.kill(jvm_of(run.process.pid), signal.SIGKILL)
        (landing / "2.json").write_text(json.dumps({"id": 2, "n": 2}), "utf-8")
        assert run.wait(60) == 4, run.text()
        assert "POLYNYA-DEP-018" in run.text()
        assert "POLYNYA-BUG" not in run.text()

    with running(tmp_path) as again:
        assert again.wait() == 0, again.text()
