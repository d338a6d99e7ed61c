"""The Makefile says what it can do, and does its set-up only once."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PHONY = re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make as a user does, apart from this test run's own make flags."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT, env={**clean, **environment}, capture_output=True, text=True,
    )  # fmt: skip


def test_help_lists_every_target() -> None:
    shown = make("help")

    assert shown.returncode == 0
    listed = set(re.findall(r"^  make (\S+)", shown.stdout, re.MULTILINE))
    assert set(PHONY) - {"dev"} == listed
    assert {"install", "demo", "test", "lint", "type", "bench", "docs", "clean"} <= listed


def test_plain_make_is_help() -> None:
    assert make().stdout == make("help").stdout


def test_a_machine_without_a_suitable_python_gets_a_clear_error() -> None:
    done = subprocess.run(
        ["scripts/find-python"],
        cwd=ROOT, env={**os.environ, "PYTHON": "/bin/false"}, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 4
    assert done.stdout == ""
    assert "Python 3.11" in done.stderr
    assert "fix:" in done.stderr


@pytest.mark.parametrize("script", sorted([*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]))
def test_scripts_stop_at_the_first_error(script: Path) -> None:
    text = script.read_text()

    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in text
    assert os.access(script, os.X_OK)
