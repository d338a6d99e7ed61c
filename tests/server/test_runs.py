"""Runs and events over the API: of operations, automations and commits of tables. No JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.automation.state import AutomationStore, RunLog, StepLog
from polynya.lake.read.commits import OwnerSteps, TableCommit
from polynya.server.app import app_of
from polynya.server.health import HealthWord
from polynya.server.operations.records import OperationRequest, OperationResult, OperationStore
from polynya.server.overview import DatasetOverview, Overview, OverviewKeeper
from polynya.server.state import ServerState
from polynya.testing.fakes import FakeClock
from tests.projects import USERS, write_project

AUTOMATION = """\
apiVersion: polynya/v1
kind: automation
name: nightly
triggers: [{schedule: "30 2 * * *", time_zone: UTC}]
actions: [{validate: true}]
"""
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def moment(second: int) -> datetime:
    return START + timedelta(seconds=second)


def operation(folder: Path, name: str, verb: str, *lines: dict[str, Any], failed: bool) -> None:
    """An operation of a minute that has ended, as the manager keeps it."""
    kept = OperationStore(folder / ".polynya" / "operations" / "local")
    kept.path.mkdir(parents=True, exist_ok=True)
    request = OperationRequest(name, verb, (verb,), ("users",), "ann", START.isoformat(), "x")
    made = kept.add(request)
    made.output.write_text("".join(json.dumps(one) + "\n" for one in lines))
    made.note_begun()
    ended = moment(60).isoformat()
    made.note_result(OperationResult("failed" if failed else "succeeded", ended, 1, None))


def copied(second: int, *, rejected: int = 0) -> dict[str, Any]:
    return {
        "type": "batch.copied", "at": moment(second).isoformat(), "subject": "shop.users",
        "task": "users", "rows_in": 8, "rows_out": 8 - rejected, "rows_filtered": 0,
        "rows_quarantined": rejected, "files": 1, "seconds": 2.0,
    }  # fmt: skip


ERROR = {"type": "error", "code": "POLYNYA-DEP-001", "message": "S3 does not answer", "fix": "wait"}
COMMIT = TableCommit(moment(30), 7, "copy", "", {"in": 5, "out": 5}, {"added-data-files": 1})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_project(tmp_path, users=USERS)
    operation(folder, "20260101T120000000000-aa", "run", copied(10, rejected=1), ERROR, failed=True)
    operation(folder, "20260101T120001000000-bb", "validate", {"type": "version"}, failed=False)
    return folder


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The API of a project with an operation, and a table that two processes have written."""
    owners = (
        OwnerSteps("n1:11:aa", 1, moment(-90), moment(-60), {"copy": 2}, {"in": 9, "out": 9}),
        OwnerSteps("n2:12:bb", 2, moment(20), moment(30), {"copy": 1}, {"in": 5, "out": 5}),
    )
    dataset = DatasetOverview(
        "shop.users", "users", HealthWord.HEALTHY, commits=(COMMIT,), owners=owners
    )
    state = ServerState(folder, None, FakeClock(moment(100)))
    overview = Overview(moment(99), state.project(), {"shop.users": dataset})
    monkeypatch.setattr(OverviewKeeper, "newest", lambda *_: overview)
    with TestClient(app_of(state), raise_server_exceptions=False) as client:
        yield client


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1{path}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def test_runs_are_operations_that_write_and_what_processes_committed(client: TestClient) -> None:
    second, operation_, first = items(client, "/runs")

    assert (operation_["kind"], operation_["name"], operation_["outcome"]) == (
        "operation", "run", "failed"
    )  # fmt: skip
    assert operation_["rows"] == {"in": 8, "out": 7, "quarantined": 1}
    assert operation_["phases"] == [{"phase": "copy", "count": 1, "rows": 8, "seconds": 2.0}]
    assert operation_["error"] == {
        "code": "POLYNYA-DEP-001", "message": "S3 does not answer", "fix": "wait"
    }  # fmt: skip
    assert (first["name"], first["outcome"]) == ("process 11 on n1", "overtaken")
    assert (second["name"], second["outcome"], second["datasets"]) == (
        "process 12 on n2", "owner", ["shop.users"]
    )  # fmt: skip
    one = client.get("/api/v1/runs/process:n2:12:bb").json()
    assert one == second
    assert client.get("/api/v1/runs/none").status_code == 404


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("task=users", 3),
        ("task=none", 0),
        ("dataset=shop.users", 3),
        ("kind=process", 2),
        ("outcome=failed", 1),
        ("since=2026-01-01T12:00:40Z", 1),
        ("until=2026-01-01T11:59:00Z", 1),
    ],
)
def test_runs_are_chosen(client: TestClient, asked: str, count: int) -> None:
    assert len(items(client, f"/runs?{asked}")) == count


def test_events_have_the_words_of_the_command_line_and_the_newest_is_first(
    client: TestClient,
) -> None:
    commit, error, batch = items(client, "/events")

    assert (batch["level"], batch["task"], batch["dataset"]) == ("caution", "users", "shop.users")
    assert batch["text"] == "copied   shop.users: 7 of 8 records, 1 quarantined in 2.0 s (4/s)"
    assert batch["figures"]["rows_in"] == 8
    assert (error["level"], error["code"], error["text"]) == (
        "failure", "POLYNYA-DEP-001", "S3 does not answer (POLYNYA-DEP-001)"
    )  # fmt: skip
    assert (commit["type"], commit["text"]) == ("table.copy", "copy     shop.users: 5 in, 5 out")


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("level=caution", 2),
        ("level=failure", 1),
        ("code=POLYNYA-DEP-001", 1),
        ("type=batch.copied", 1),
        ("dataset=shop.users", 2),
        ("run=20260101T120000000000-aa", 2),
        ("until=2026-01-01T12:00:15Z", 2),
        ("since=2026-01-01T12:00:20Z", 1),
    ],
)
def test_events_are_chosen(client: TestClient, asked: str, count: int) -> None:
    assert len(items(client, f"/events?{asked}")) == count


def test_events_come_in_pages(client: TestClient) -> None:
    first = client.get("/api/v1/events?limit=2").json()
    rest = client.get("/api/v1/events", params={"limit": 2, "cursor": first["next"]}).json()

    assert (first["total"], len(first["items"]), len(rest["items"])) == (3, 2, 1)
    assert rest["next"] is None


def test_runs_of_automations_are_among_them(client: TestClient, folder: Path) -> None:
    (folder / "automations").mkdir()
    (folder / "automations" / "nightly.yml").write_text(AUTOMATION)
    step = StepLog(
        action="run", started=moment(41), ended=moment(45), state="failure", code="POLYNYA-X-1",
        message="no",
    )  # fmt: skip
    log = RunLog(
        id="20260101T120040000000Z", automation="nightly", due=moment(40), why="schedule", by="n1",
        started=moment(40), ended=moment(46), state="failure", code="POLYNYA-X-1", message="no",
        steps=(step,),
    )  # fmt: skip
    project = ServerState(folder, None, FakeClock()).project()
    AutomationStore.of(project.target).log(log)

    (run,) = items(client, "/runs?kind=automation")
    (event,) = items(client, "/events?type=automation.step")

    assert (run["name"], run["outcome"]) == ("nightly: schedule", "failed")
    assert run["phases"] == [{"phase": "run", "count": 1, "rows": 0, "seconds": 4.0}]
    assert (event["level"], event["run"]) == ("failure", run["id"])


def test_a_server_that_another_one_keeps_from_the_operations_says_what_is_missing(
    client: TestClient, folder: Path
) -> None:
    second = ServerState(folder, None, FakeClock(moment(100)))
    answer = TestClient(app_of(second)).get("/api/v1/runs").json()

    assert [one["kind"] for one in answer["items"]] == ["process", "process"]
    assert "POLYNYA-SRV-043" in answer["missing"][0]


def test_a_dataset_that_was_never_copied_has_no_commits(client: TestClient) -> None:
    assert items(client, "/datasets/shop.users/commits") == []
    assert client.get("/api/v1/datasets/shop.none/commits").status_code == 404
