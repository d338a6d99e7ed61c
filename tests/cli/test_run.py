"""What `polynya run` says while it goes on."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import GlobalOptions
from polynya.cli.output import TextOutput
from polynya.cli.run import run
from polynya.lake.spark.api import SparkSession
from tests.projects import USERS, write_project

PATIENCE_SECONDS = 120.0


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The handlers of this process, put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def end_when_said(text: str, said: io.StringIO, number: int = signal.SIGTERM) -> None:
    """End the command by a signal once it has said something, or after a while."""
    until = time.monotonic() + PATIENCE_SECONDS
    while text not in said.getvalue() and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(os.getpid(), number)


@pytest.mark.usefixtures("own_signals")
def test_a_dataset_that_fails_is_told_while_the_others_go_on(
    spark: SparkSession, shared_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.engine.session.start_spark", lambda *_, **__: spark)
    users = USERS.replace("schema: shop", "schema: told")
    towns = users.replace("users", "towns")
    project = write_project(tmp_path, users=users, towns=towns)
    for name in ("users", "towns"):
        (tmp_path / "landing" / name).mkdir(parents=True)
    landed = tmp_path / "landing/users/1.json"
    landed.write_text('{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n')
    (tmp_path / "landing/towns/1.json").write_text(landed.read_text())
    out, err = io.StringIO(), io.StringIO()
    options = GlobalOptions(no_color=True, project=project)
    context = CommandContext(options, TextOutput(options, out, err))
    run(once=True, context=context)
    other_keys = users.replace("keys: [userId]", "keys: [sequenceNum]")
    write_project(tmp_path, users=other_keys, towns=towns)
    for name in ("users", "towns"):
        (tmp_path / "landing" / name / "2.json").write_text(
            '{"userId": 2, "sequenceNum": 2, "operation": "INSERT"}\n'
        )

    threading.Thread(target=end_when_said, args=("failed   told.users", err), daemon=True).start()
    code = run(context=context)

    assert code == ExitCode.FAILED
    said = err.getvalue().splitlines()
    assert [line for line in said if line.startswith("failed ")] == [
        (
            "failed   told.users: told_internal.users_internal: the keys of users changed "
            "from ['userId'] to ['sequenceNum'] (POLYNYA-LAKE-010); restore the old keys, or "
            "give the dataset a new name to build a new table"
        )
    ]
    assert sum(line.startswith("copied   told.towns") for line in said) == 2
    # What Java wrote has no hidden checksum beside it.
    warehouse = shared_project / "warehouse" / "told_internal"
    assert {file.suffix for file in warehouse.rglob(".*")} == set()
    assert any(warehouse.rglob("*.parquet"))


@pytest.mark.usefixtures("own_signals")
def test_ctrl_c_ends_a_run_with_its_own_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.engine.session.start_spark", lambda *_, **__: spark)
    users = USERS.replace("schema: shop", "schema: interrupted")
    project = write_project(tmp_path, users=users)
    (tmp_path / "landing/users").mkdir(parents=True)
    record = '{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n'
    (tmp_path / "landing/users/1.json").write_text(record)
    err = io.StringIO()
    options = GlobalOptions(no_color=True, project=project)
    interrupt = ("copied   interrupted.users", err, signal.SIGINT)
    threading.Thread(target=end_when_said, args=interrupt, daemon=True).start()

    code = run(context=CommandContext(options, TextOutput(options, io.StringIO(), err)))

    assert code == ExitCode.INTERRUPTED
    assert "stopping after the running steps" in err.getvalue()


def test_ctrl_c_lets_running_steps_end_although_spark_was_started_meanwhile(tmp_path: Path) -> None:
    """PySpark has a handler of its own."""
    project = write_project(tmp_path, users=USERS)
    (tmp_path / "landing/users").mkdir(parents=True)
    record = '{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n'
    (tmp_path / "landing/users/1.json").write_text(record)
    line = [sys.executable, "-m", "polynya", "run", "--project", str(project)]

    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [next(process.stderr)]
        while not said[-1].startswith("copied"):
            said.append(next(process.stderr))
        process.send_signal(signal.SIGINT)
        said += process.stderr

    assert process.returncode == ExitCode.INTERRUPTED
    assert "stopping after the running steps; Ctrl-C again ends immediately\n" in said


@pytest.mark.usefixtures("own_signals")
def test_sigterm_while_spark_starts_ends_a_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE_SECONDS)

    monkeypatch.setattr("polynya.engine.session.start_spark", starts)
    project = write_project(tmp_path, users=USERS)
    err = io.StringIO()
    options = GlobalOptions(no_color=True, project=project)

    code = run(context=CommandContext(options, TextOutput(options, io.StringIO(), err)))

    assert code == ExitCode.OK
    assert "ended before anything was begun" in err.getvalue()


@pytest.mark.slow
def test_a_run_with_nothing_to_do_starts_no_java(tmp_path: Path) -> None:
    """Two runs by Spark, the second with nothing to do; then one whose Java says that it began."""
    project = write_project(tmp_path, users=USERS)
    (tmp_path / "landing/users").mkdir(parents=True)
    landed = tmp_path / "landing/users/1.json"
    landed.write_text('{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n')
    line = [sys.executable, "-m", "polynya", "run", "--once", "--json", "-p", str(project)]
    subprocess.run(line, check=True, capture_output=True)
    java, began = tmp_path / "jdk/bin/java", tmp_path / "began"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {began}\nexit 1\n")
    java.chmod(0o755)
    environment = {**os.environ, "JAVA_HOME": str(java.parents[1])}

    quiet = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)

    assert (quiet.returncode, began.exists()) == (0, False), quiet.stderr
    lines = [json.loads(text) for text in quiet.stdout.splitlines()]
    kinds = [one["type"] for one in lines]
    assert kinds == ["version", "run.started", "apply.skipped", "table.health", "run"]
    assert (lines[-1]["ok"], lines[-1]["units"], lines[-1]["records"]) == (True, 1, 0)

    landed.with_name("2.json").write_text(landed.read_text())
    subprocess.run(line, env=environment, capture_output=True, check=False)
    assert began.exists()
