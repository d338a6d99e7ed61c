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


@pytest.mark.parametrize("target", ["check", "test"])
def test_both_ways_to_check_a_change_run_the_same_tools(target: str) -> None:
    commands = make("--dry-run", target, "JOBS=3").stdout

    for tool in ("ruff check", "ruff format --check", "mypy", "lint-imports", "cli.reference"):
        assert tool in commands, tool
    assert "pytest -n 3 " in commands


def test_what_is_checked_before_a_commit_starts_neither_a_jvm_nor_the_stacks() -> None:
    assert '-m "not spark and not slow and not synth"' in make("--dry-run", "check").stdout
    assert '-m "not slow"' in make("--dry-run", "test").stdout


def test_a_stage_is_deployed_after_its_package_and_only_if_that_is_found() -> None:
    commands = make("--dry-run", "deploy", "STAGE=dev").stdout

    steps = [commands.index(f"stacks.{name} --stage dev") for name in ("package", "publish")]
    deploy = commands.index("deploy 'dev/*'")
    assert sorted(steps) == steps
    assert steps[-1] < deploy
    # With this the app looks where the templates will, before CloudFormation gets them.
    assert "-c polynya:deployed=dev" in commands[deploy:]


@pytest.mark.parametrize(("boots", "skip", "code"), [(0, "", 0), (1, "", 2), (1, "no", 0)])
def test_a_deployment_fails_with_the_trial_of_its_release(
    boots: int, skip: str, code: int, tmp_path: Path
) -> None:
    """All programs are stand-ins; the trial ends as one of a release that boots, or does not."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$2"\n[ "$2" != stacks.trial ] || exit {boots}\n')
    python.chmod(0o755)
    done = make(
        "--old-file=dev", "--old-file=node_modules/.package-lock.json", "deploy", "STAGE=dev",
        f"BIN={tmp_path}", "CDK=echo cdk", f"TRIAL={skip}",
    )  # fmt: skip

    assert done.returncode == code
    steps = [line.split()[0] for line in done.stdout.splitlines()]
    before = ["stacks.package", "stacks.publish", "stacks.failed", "cdk"]
    assert [one for one in steps if not one.startswith("make")] == [
        *before, *["stacks.trial"] * (skip != "no")
    ]  # fmt: skip


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
