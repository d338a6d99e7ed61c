"""Automations in real processes: a run of a project, and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests.projects import USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: automation\nname: checks\n"
POLYNYA = (sys.executable, "-m", "polynya")


def polynya(folder, *arguments):
    """The JSON objects that a command wrote."""
    command = [*POLYNYA, *arguments, "--project", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(folder, text):
    write_project(folder, users=USERS)
    (folder / "automations").mkdir()
    (folder / "automations/checks.yml").write_text(HEAD + text)
    (folder / "landing").mkdir(exist_ok=True)


def runs(folder):
    found = polynya(folder, "automation", "runs", "checks")
    return [event for event in found if event["type"] == "automation.run"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_of_a_task_starts_the_automation_that_waits_for_it(tmp_path):
    written(tmp_path, "triggers: [{after: [users]}]\nactions: [{validate: true}]\n")
    polynya(tmp_path, "run", "--once")
    assert runs(tmp_path) == []

    polynya(tmp_path, "run", "--once")

    assert [(run["state"], run["why"]) for run in runs(tmp_path)] == [
        ("success", "users ended well")
    ]


def is_alive(number):
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(number, 0)
        with open(f"/proc/{number}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def children_of(number):
    with open(f"/proc/{number}/task/{number}/children") as children:
        return [int(child) for child in children.read().split()]


@pytest.mark.slow
@pytest.mark.spark
def test_an_action_ends_when_its_automation_is_killed(tmp_path):
    written(tmp_path, "actions: [{verify: all, time_limit: 5m}]\n")
    command = [*POLYNYA, "automation", "run", "checks", "--project", str(tmp_path)]
    parent = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while not (children := children_of(parent.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # Long enough for the child to watch its parent, and less than it works.
    time.sleep(4)
    assert parent.poll() is None, "the action ended too early for this test"

    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()

    while any(is_alive(child) for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert [(run["state"], run["steps"][0]["state"]) for run in runs(tmp_path)] == [
        ("running", "running")
    ]
