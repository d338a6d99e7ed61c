"""The workflow of pull requests: pinned actions, no rights, the command that everyone runs."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]


def test_the_workflow_holds_no_rights_and_runs_what_everyone_runs() -> None:
    (file,) = (ROOT / ".github" / "workflows").iterdir()
    workflow = YAML(typ="safe").load(file.read_text())

    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name)] == []
    assert {step["run"] for step in steps if "run" in step} == {
        ".ci/run", "make unit PYTHON=python${{ matrix.python }}", "make docs", "make synth",
    }  # fmt: skip
