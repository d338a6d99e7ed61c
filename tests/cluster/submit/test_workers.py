"""Which job works where, the script that begins one in AWS, and the processes beside an agent."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from polynya.cluster.messages import RunEnded
from polynya.cluster.submit import entry
from polynya.cluster.submit.processes import ProcessRuns, arguments_of
from polynya.cluster.submit.services import completed
from polynya.cluster.submit.workers import AgentPlace, RoutedWorkers
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.model.config.engines import EmrServerlessEngine, GlueEngine
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.store.clock import SystemClock
from polynya.store.jobs import JobOrder, Label, RunSeen, RunState
from tests.cluster.fakes import FakeWorkers
from tests.projects import USERS, aws_project, write_project

JOB = JobKey("users", "shop.users")
GLUE = "engine: {mode: glue, job_name: x}\n"
EMR = """\
engine:
  mode: emr_serverless
  application_id: 00f1abc
  execution_role: arn:aws:iam::123456789012:role/jobs
  entry_point: s3://acme/code/entry.py
  environment: s3://other/polynya.tar.gz
"""
LABEL = Label("0123456789ab", 5, "0123456789abcdef")


def test_the_script_of_a_job_needs_only_python(tmp_path: Path) -> None:
    alone = tmp_path / "entry.py"
    alone.write_bytes(Path(entry.__file__).read_bytes())
    code = f"import runpy; runpy.run_path({str(alone)!r}, run_name='entry')"

    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_a_job_works_here_unless_its_task_wants_it_elsewhere(tmp_path: Path) -> None:
    project = load_project(write_project(tmp_path, users=USERS))
    here = FakeWorkers()
    place = AgentPlace(str(tmp_path), tmp_path, tmp_path, "n1:1:a")
    workers = RoutedWorkers(here, project.target, place, SimpleQueue(), SystemClock())

    workers.start(JOB, project.tasks[0], 1, Backlog(), 5)

    assert [run.epoch for run in here.runs] == [5]


def test_a_job_for_aws_on_folders_of_this_machine_is_refused(tmp_path: Path) -> None:
    project = load_project(write_project(tmp_path, users=USERS + GLUE))
    inbox: SimpleQueue[Any] = SimpleQueue()
    place = AgentPlace(str(tmp_path), tmp_path, tmp_path, "n1:1:a")
    workers = RoutedWorkers(FakeWorkers(), project.target, place, inbox, SystemClock())

    workers.start(JOB, project.tasks[0], 1, Backlog(), 5).stop()

    ended = inbox.get(timeout=5)
    assert isinstance(ended, RunEnded)
    assert ended.error is not None
    assert ended.error.code == "POLYNYA-AGT-070"
    assert "landing, warehouse, the configuration" in str(ended.error)


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("", "`engine.entry_point` is `s3://acme/code/entry.py`"),
        ("s3://acme/code/entry.py", "`engine.environment` is `s3://other/polynya.tar.gz`"),
        ("s3://acme/code/ s3://other/", None),
    ],
)
def test_a_job_runs_code_that_the_node_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, refused: str | None
) -> None:
    monkeypatch.setenv("POLYNYA_JOB_CODE", code)
    folder = write_project(tmp_path, project=aws_project("http://127.0.0.1:9"), users=USERS + EMR)
    project, inbox = load_project(folder, "dev"), SimpleQueue[Any]()
    place = AgentPlace("s3://acme-config/shop", tmp_path, tmp_path, "n1:1:a")
    asked: list[Any] = []

    def services(engine: Any, _access: Any) -> Any:
        asked.append(engine)
        raise ConfigError("POLYNYA-AGT-070", "the service was asked")

    workers = RoutedWorkers(
        FakeWorkers(), project.target, place, inbox, SystemClock(), services=services
    )
    workers.start(JOB, project.tasks[0], 1, Backlog(), 5).stop()

    error = inbox.get(timeout=5).error
    assert error.code == ("POLYNYA-AGT-076" if refused else "POLYNYA-AGT-070")
    assert (refused or "the service was asked") in str(error)
    assert bool(asked) == (refused is None)


STAGE = "00f1abc arn:aws:iam::123456789012:role/jobs s3://a-b/1.py s3://a-b/polynya.tar.gz"


def test_an_engine_that_is_only_named_is_that_of_the_stage() -> None:
    emr = EmrServerlessEngine(mode="emr_serverless", vcpu=16)
    glue = GlueEngine(mode="glue")
    known = {"POLYNYA_EMR_JOBS": STAGE, "POLYNYA_GLUE_JOB": "polynya-dev-main"}

    of_emr, of_glue = (completed(one, "users", known) for one in (emr, glue))

    application, role, script, archive = STAGE.split()
    assert of_emr == EmrServerlessEngine(
        mode="emr_serverless", application_id=application, execution_role=role,
        entry_point=script, environment=archive, vcpu=16,
    )  # fmt: skip
    assert of_glue == GlueEngine(mode="glue", job_name="polynya-dev-main")
    assert completed(of_emr, "users", {}) is of_emr


@pytest.mark.parametrize(
    ("known", "code", "said"),
    [
        ({}, "AGT-077", "`engine: emr_serverless` names no application or job"),
        ({"POLYNYA_EMR_JOBS": "00f1abc"}, "AGT-078", "1 words instead of 4"),
        ({"POLYNYA_EMR_JOBS": STAGE.replace("00f1", "../")}, "AGT-078", "is not the id of an"),
    ],
)
def test_an_engine_of_a_stage_that_has_none_is_refused(
    known: dict[str, str], code: str, said: str
) -> None:
    engine = EmrServerlessEngine(mode="emr_serverless")

    with pytest.raises(ConfigError, match=said) as raised:
        completed(engine, "users", known)

    assert raised.value.code == f"POLYNYA-{code}"


def test_the_arguments_name_unit_owner_and_epoch() -> None:
    arguments = arguments_of(JOB, config="s3://c/shop", target="dev", owner="n1:1:a", epoch=5)

    assert " ".join(arguments) == (
        "run users --unit shop.users --owner n1:1:a --epoch 5 --config s3://c/shop --target dev "
        "--json"
    )
    alone = arguments_of(JOB, config="s3://c/shop", target="dev", owner="n1:1:a", epoch=None)
    assert "--epoch" not in alone


def test_the_script_takes_its_arguments_plain_or_as_one_of_glue() -> None:
    text = base64.b64encode(json.dumps(["run", "a b", "--once"]).encode()).decode()

    assert entry.arguments_in(["run", "users"]) == ["run", "users"]
    given = ["--JOB_NAME", "x", "--polynya-arguments", text, "--polynya-label", "y"]
    assert entry.arguments_in(given) == ["run", "a b", "--once"]


def test_the_script_hands_nothing_of_the_spark_of_the_service_on() -> None:
    inherited = {"SPARK_HOME": "/s", "PYSPARK_GATEWAY_PORT": "1", "PYTHONPATH": "/p", "AWS_X": "y"}

    assert entry.environment_of(inherited) == {"AWS_X": "y"}


def test_the_script_finds_the_python_that_came_with_the_job(tmp_path: Path) -> None:
    assert entry.python_in(tmp_path) == sys.executable
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\n")
    with tarfile.open(tmp_path / "polynya.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "bin" / "python", "bin/python")

    assert entry.python_in(tmp_path) == str(tmp_path / "environment" / "bin" / "python")


class TestProcesses:
    """Runs as processes beside the agent."""

    def runs(self, folder: Path, program: str) -> ProcessRuns:
        return ProcessRuns(folder, (sys.executable, "-c", program))

    def ended(self, runs: ProcessRuns, run: str) -> RunSeen:
        deadline = time.monotonic() + 30
        while (seen := runs.look(run)).state is RunState.ACTIVE and time.monotonic() < deadline:
            time.sleep(0.01)
        return seen

    def test_how_a_process_ended_is_how_its_run_did(self, tmp_path: Path) -> None:
        good = self.runs(tmp_path, "pass")
        assert self.ended(good, good.submit(JobOrder(LABEL, "x", ()))).state is RunState.SUCCEEDED

        says = (
            'print(\'{"type": "error", "code": "X-1", "message": "broken"}\'); raise SystemExit(5)'
        )
        bad = self.runs(tmp_path, says)
        seen = self.ended(bad, bad.submit(JobOrder(LABEL, "x", ())))
        assert (seen.state, seen.exit_code) == (RunState.FAILED, 5)
        assert seen.why == "X-1: broken"

    def test_a_process_is_asked_to_end_after_its_step(self, tmp_path: Path) -> None:
        waits = (
            "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); "
            "open('ready', 'w').close(); signal.pause()"
        )
        runs = self.runs(tmp_path, waits)
        run = runs.submit(JobOrder(LABEL, "x", ()))
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        assert [one.id for one in runs.recent(LABEL.scope)] == [run]

        runs.cancel(run)

        assert self.ended(runs, run).state is RunState.SUCCEEDED
        runs.cancel(run)

    def test_a_process_knows_its_parent(self, tmp_path: Path) -> None:
        program = "import os; open('parent', 'w').write(os.environ['POLYNYA_PARENT'])"
        runs = self.runs(tmp_path, program)

        self.ended(runs, runs.submit(JobOrder(LABEL, "x", ())))

        assert (tmp_path / "parent").read_text() == str(os.getpid())


@pytest.mark.parametrize("text", ["", "polynya-x-1-y", "polynya-0123456789ab-1-0123"])
def test_what_is_no_label_is_none(text: str) -> None:
    from polynya.store.jobs import label_in

    assert label_in(text) is None
    assert label_in(f"{LABEL} users/shop.users") == LABEL
