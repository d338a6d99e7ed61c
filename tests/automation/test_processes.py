"""Automations in real processes: a run of a project, and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from polynya.automation.commands import ChildCommands
from polynya.cli import run as cli_run
from polynya.cli.automation import record_ends
from polynya.cli.main import main
from polynya.store.clock import SystemClock
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


def test_a_run_of_a_task_starts_the_automation_that_waits_for_it(tmp_path, monkeypatch):
    written(tmp_path, "triggers: [{after: [users]}]\nactions: [{validate: true}]\n")

    def run_without_spark(project, chosen, *_, **__):
        record_ends(project, {task.name: True for task in chosen})
        return 0

    monkeypatch.setattr(cli_run, "_run_tasks", run_without_spark)
    arguments = ["run", "--once", "--project", str(tmp_path), "--json"]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert main(arguments) == 0
        assert runs(tmp_path) == []
        assert main(arguments) == 0
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    assert [(run["state"], run["why"]) for run in runs(tmp_path)] == [
        ("success", "users ended well")
    ]


def is_alive(number):
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(number, 0)
        with open(f"/proc/{number}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    return False


#: A process that carries out an action, which is a command that works for a minute.
PARENT = """
import sys
from datetime import timedelta
from pathlib import Path
from polynya.automation.commands import ChildCommands
from polynya.store.clock import SystemClock
child = (
    "import os, sys, time; from polynya.cli.stopping import end_with_parent;"
    "end_with_parent(os.environ); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
)
commands = ChildCommands(Path("."), "local", SystemClock(), (sys.executable, "-c", child))
commands.run([sys.argv[1]], timedelta(minutes=1), lambda: True)
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"type": "error", "code": "X-1", "message": "it broke"}, ("X-1", "it broke")),
        ({"type": "unit.outcome", "done": False, "text": "no such file"}, (None, "no such file")),
        ({"type": "unit.outcome", "done": True, "text": "reloaded"}, (None, "exit code 3")),
    ],
)
def test_the_log_has_what_a_failed_command_said_last(said, told):
    program = f"import sys; print('not JSON'); print({json.dumps(json.dumps(said))}); sys.exit(3)"
    commands = ChildCommands(Path(), "local", SystemClock(), (sys.executable, "-c", program))

    end = commands.run([], timedelta(minutes=1), lambda: True)

    assert (end.success, end.code, end.message) == (False, *told)


def test_an_action_ends_when_its_process_is_killed(tmp_path):
    file = tmp_path / "child"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(file)])
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int(file.read_text())

    parent.kill()
    parent.wait()

    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)
