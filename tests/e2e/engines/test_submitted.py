"""Work that is submitted to stand-ins for EMR Serverless and Glue gives what a local run gives."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from polynya.cluster.messages import JobObserved, RunEnded
from polynya.cluster.submit import entry
from polynya.cluster.submit.workers import AgentPlace, RoutedWorkers
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.model.config.task import StorageTask
from polynya.model.errors import FencedError
from polynya.model.loader import load_project
from polynya.observe.cluster import JobRunStarted
from polynya.store.aws.jobs import EmrServerlessRuns, GlueRuns
from polynya.store.clock import SystemClock
from tests.aws import REGION, aws_server, client, glue_that_checks_versions
from tests.e2e.engines.services import Emr, Glue, Processes
from tests.oracle.packs.driver import CliDriver
from tests.oracle.packs.read_back import internal_table
from tests.projects import aws_project, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _named_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_JOB_CODE", SCRIPT)


JOB = JobKey("users", "shop.users")
SCRIPT = "s3://acme-config/code/entry.py"
TASK = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - {name: users, path: "*.json", keys: [id], sequence_by: [n]}
"""
EMR = """\
engine:
  mode: emr_serverless
  application_id: 00f1abc
  execution_role: arn:aws:iam::123456789012:role/jobs
  entry_point: s3://acme-config/code/entry.py
"""
GLUE = "engine: {mode: glue, job_name: polynya, worker_type: G.4X}\n"


@dataclass
class Cloud:
    """A project on the stand-in, and agents of it."""

    folder: Path
    endpoint: str
    processes: Processes

    def land(self, number: int, *records: dict[str, Any]) -> None:
        body = "".join(f"{json.dumps(one)}\n" for one in records)
        key = f"in/users/{number}.json"
        client("s3", self.endpoint).put_object(Bucket="acme-landing", Key=key, Body=body)

    def agent(
        self, service: Any, owner: str
    ) -> tuple[RoutedWorkers, StorageTask, SimpleQueue[Any]]:
        """The workers of an agent whose service is the given client, and what they say."""
        project, inbox = load_project(self.folder, "dev"), SimpleQueue[Any]()
        place = AgentPlace("s3://acme-config/shop", self.folder, self.folder, owner)
        here: Any = None
        adapter: Callable[..., Any] = EmrServerlessRuns if isinstance(service, Emr) else GlueRuns
        name = "emr" if isinstance(service, Emr) else "glue"
        workers = RoutedWorkers(
            here,
            project.target,
            place,
            inbox,
            SystemClock(),
            services=lambda engine, access: adapter(engine, access, **{name: service}),
        )
        return workers, project.tasks[0], inbox

    def rows(self) -> list[tuple[int, str]]:
        endpoint = self.endpoint
        options = {"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
        table = GlueCatalog("any", **options).load_table(internal_table("shop", "users"))
        rows = table.scan("hdr__partition = 'current'", ("id", "name")).to_arrow().to_pylist()
        return sorted((row["id"], row["name"]) for row in rows)

    def ends(self, run: str) -> int:
        """The exit code of a run, awaited."""
        deadline = time.monotonic() + 300
        while (code := self.processes.code(run)) is None:
            assert time.monotonic() < deadline, self.processes.log(run)
            time.sleep(0.2)
        return code


@contextmanager
def cloud(folder: Path, engine: str) -> Iterator[Cloud]:
    buckets = ("acme-landing", "acme-lake", "acme-config")
    with (
        pytest.MonkeyPatch.context() as patch,
        aws_server(*buckets) as endpoint,
        glue_that_checks_versions(),
    ):
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        patch.setenv("AWS_REGION", REGION)
        processes = Processes(folder / "runs", endpoint)
        project = write_project(folder / "shop", project=aws_project(endpoint), users=TASK + engine)
        client("s3", endpoint).upload_file(str(entry.__file__), "acme-config", "code/entry.py")
        assert CliDriver().call("config", "push", "--project", str(project)).code == 0
        try:
            yield Cloud(project, endpoint, processes)
        finally:
            processes.end()


def awaited(inbox: SimpleQueue[Any], wanted: Callable[[Any], bool]) -> Any:
    while not wanted(message := inbox.get(timeout=300)):
        pass
    return message


def started(message: Any) -> bool:
    return isinstance(message, JobObserved) and isinstance(message.event, JobRunStarted)


@pytest.mark.parametrize("mode", ["emr_serverless", "glue"])
def test_a_service_gives_what_a_local_run_gives_and_a_stale_run_writes_nothing(
    tmp_path: Path, mode: str
) -> None:
    with cloud(tmp_path, EMR if mode == "emr_serverless" else GLUE) as aws:
        service: Any = (
            # Both lose the answer to the first submission.
            Emr(aws.processes, lose=1)
            if mode == "emr_serverless"
            else Glue(aws.processes, SCRIPT, lose=1)
        )
        aws.land(1, {"id": 1, "n": 1, "name": "Ann"}, {"id": 2, "n": 1, "name": "Bea"})
        workers, task, inbox = aws.agent(service, "node-1")

        first = workers.start(JOB, task, 1, Backlog(), 5)
        run = awaited(inbox, started).event.run
        assert aws.ends(run) == 0, aws.processes.log(run)
        assert len(aws.processes.started) == 1
        first.stop()
        awaited(inbox, lambda message: isinstance(message, RunEnded))

        # Another node takes the unit over; a run of the first one begins only then.
        aws.land(2, {"id": 2, "n": 2, "name": "Bob"})
        other, _, heard = aws.agent(service, "node-2")
        second = other.start(JOB, task, 1, Backlog(), 6)
        run = awaited(heard, started).event.run
        assert aws.ends(run) == 0, aws.processes.log(run)
        second.stop()
        awaited(heard, lambda message: isinstance(message, RunEnded))
        taken = aws.rows()
        aws.land(3, {"id": 3, "n": 1, "name": "Cid"})
        workers.start(JOB, task, 2, Backlog(), 5)
        run = awaited(inbox, started).event.run
        assert aws.ends(run) == 5, aws.processes.log(run)
        ended = awaited(inbox, lambda message: isinstance(message, RunEnded))

        assert isinstance(ended.error, FencedError)
        assert "POLYNYA-LAKE-060" in aws.processes.log(run)
        assert aws.rows() == taken

        # The same files, by a run of a person: the engine of the task is for agents.
        local = CliDriver().call("run", "--once", "--apply", "always", "--project", str(aws.folder))
        assert local.code == 0, local.errors
        assert f"`engine` {mode} is for agents" in local.errors
        assert aws.rows() == [(1, "Ann"), (2, "Bob"), (3, "Cid")]


def test_what_an_agent_stops_is_killed_and_the_next_one_has_all_rows(tmp_path: Path) -> None:
    with cloud(tmp_path, EMR) as aws:
        emr = Emr(aws.processes)
        # A file of another task that somebody broke is nothing to this one.
        broken = {"Bucket": "acme-config", "Key": "shop/current/tasks/broken.yml", "Body": "["}
        client("s3", aws.endpoint).put_object(**broken)
        aws.land(1, {"id": 1, "n": 1, "name": "Ann"})
        workers, task, inbox = aws.agent(emr, "node-1")
        run = workers.start(JOB, task, 1, Backlog(), 5)
        name = awaited(inbox, started).event.run

        run.stop()

        ended = awaited(inbox, lambda message: isinstance(message, RunEnded))
        assert ended.error is None
        assert aws.processes.code(name) is not None
        workers.start(JOB, task, 2, Backlog(), 6)
        name = awaited(inbox, started).event.run
        assert aws.ends(name) == 0, aws.processes.log(name)
        table = CliDriver().call(
            "query", "--json", "SELECT id, name FROM shop.users", "--project", str(aws.folder)
        )
        assert json.loads(table.output.splitlines()[0]) == {"id": 1, "name": "Ann"}
