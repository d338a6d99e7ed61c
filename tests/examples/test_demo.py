"""`make demo` ends with 0 differences, and would not if there were one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user types it, with the package of this tree."""
    paths = [str(ROOT), str(ROOT / "runtime"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def test_the_demo_equals_its_source_and_notices_a_difference(tmp_path: Path) -> None:
    project, lake = tmp_path / "project", tmp_path / "lake"
    shutil.copytree(ROOT / "examples" / "bank", project)
    demo = f"{sys.executable} -m examples.demo --project {project} --lake {lake}"

    first = shell(demo)

    assert first.returncode == 0, first.stdout + first.stderr
    assert "   0 differences" in first.stdout.splitlines()
    shown = (ROOT / "README.md").read_text().split("It ends with:")[1].split("```")[1]
    assert shown.removeprefix("text\n") in first.stdout
    assert "98 rows hold NULL for the default" in first.stdout
    for rule in ("null_key", "bad_json"):
        assert rule in first.stdout
    commands = [line.strip() for line in first.stdout.split("Next, try\n")[1].splitlines()]
    assert len(commands) == 3

    listed = shell(commands[-1])

    assert listed.returncode == 0, listed.stderr
    assert "bad_json" in listed.stdout

    truth = project / "source_truth" / "lines.jsonl"
    rows = [json.loads(line) for line in truth.read_text().splitlines()]
    rows[7]["qty"] += 1
    truth.write_text("".join(json.dumps(row) + "\n" for row in rows))
    users = project / "landing" / "users" / "0004.json"
    users.write_text(users.read_text().replace("Leon", "Lima"))

    planted = shell(f"{demo} --keep")

    assert planted.returncode == 1, planted.stdout + planted.stderr
    assert "   1 difference" in planted.stdout.splitlines()
    assert "quantities by owner: 59 rows, 2 differences" in planted.stdout
    assert "balances by customer: 5 rows, 2 differences" in planted.stdout


def test_the_demo_deletes_no_folder_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()

    refused = shell(f"{sys.executable} -m examples.demo --lake {tmp_path}")

    assert refused.returncode == 1
    assert "left alone" in refused.stdout
    assert (tmp_path / "precious").exists()
