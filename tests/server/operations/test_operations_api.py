"""Actions of the API as operations, with real processes of `polynya` that need no Java."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.server.app import app_of
from polynya.server.operations.kept import FOLDER
from polynya.server.operations.verbs import VERBS, works_on_tables
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore
from tests.server.operations.test_client import PROJECT


def client_of(root: Path) -> TestClient:
    (root / "polynya.yml").write_text(PROJECT)
    return TestClient(app_of(ServerState(root, None, SystemClock())))


def ended(client: TestClient, name: str) -> dict[str, Any]:
    for _ in range(600):
        shown: dict[str, Any] = client.get(f"/api/v1/operations/{name}").json()
        if shown["ended"]:
            return shown
        time.sleep(0.1)
    raise AssertionError(shown)


def test_a_validation_is_an_operation_with_its_command_output_and_events(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        key = {"Idempotency-Key": "one"}
        answer = client.post("/api/v1/actions/validate", json={}, headers=key)
        name = answer.json()["id"]
        assert answer.status_code == 202
        assert answer.headers["location"] == f"/api/v1/operations/{name}"
        assert answer.json()["command"] == "polynya --target=local validate"
        shown = ended(client, name)
        assert (shown["status"], shown["exit_code"], shown["state"]) == ("succeeded", 0, None)

        lines = client.get(f"/api/v1/operations/{name}/output").json()["lines"]
        assert lines[0]["type"] == "version"
        stream = client.get(f"/api/v1/operations/{name}/events").text
        events = [part.split("\n") for part in stream.strip().split("\n\n")]
        assert [json.loads(one[2][6:]) for one in events[:-1]] == lines
        assert events[-1][0] == "event: operation"
        last = events[-2][0].removeprefix("id: ")
        resumed = client.get(
            f"/api/v1/operations/{name}/events", headers={"Last-Event-ID": last}
        ).text
        assert resumed.startswith("event: operation")

        again = client.post("/api/v1/actions/validate", json={}, headers=key)
        assert again.json()["id"] == name
        other = client.post("/api/v1/actions/migrate", json={"yes": True}, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "POLYNYA-SRV-042")


def test_a_value_is_never_an_option(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for body in ({"tasks": ["--apply=never"]}, {"tasks": ["a\nb"]}, {"owner": "me"}):
        answer = client.post("/api/v1/actions/run", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "POLYNYA-SRV-002")


def test_a_task_that_the_project_does_not_have_starts_nothing(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    answer = client.post("/api/v1/actions/reload", json={"task": "shop"})
    assert (answer.status_code, answer.json()["code"]) == (422, "POLYNYA-SRV-044")
    assert client.get("/api/v1/operations").json()["items"] == []


def test_the_equal_command_names_the_target_and_the_newest_operation_is_first(
    tmp_path: Path,
) -> None:
    (tmp_path / "polynya.yml").write_text(PROJECT)
    with TestClient(app_of(ServerState(tmp_path, None, SystemClock()))) as client:
        names = [client.post("/api/v1/actions/plan", json={}).json()["id"] for _ in range(2)]
        page = client.get("/api/v1/operations", params={"limit": 1}).json()
        rest = client.get("/api/v1/operations", params={"cursor": page["next"]}).json()
        shown = ended(client, names[0])
        for name in names:
            ended(client, name)
    listed = [one["id"] for one in (*page["items"], *rest["items"])]
    assert listed == names[::-1]
    assert shown["command"] == "polynya --target=local plan"
    assert shown["status"] == "succeeded"


def test_a_server_for_requests_only_refuses_what_works_on_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLYNYA_COORDINATION", raising=False)
    (tmp_path / "polynya.yml").write_text(PROJECT)
    state = ServerState(tmp_path, None, SystemClock(), requests_only=True)
    client = TestClient(app_of(state))

    refused = {
        name: client.post(f"/api/v1/actions/{name}", json=body).json()["code"]
        for name, body in (
            ("run", {}), ("migrate", {"yes": True}), ("maintain", {}), ("verify", {}),
            ("quarantine-replay", {"all": True}),
        )
    }  # fmt: skip
    assert set(refused.values()) == {"POLYNYA-SRV-060"}
    # In a cluster the node that has the table reloads it.
    assert [works_on_tables(VERBS["reload"], in_cluster=one) for one in (False, True)] == [
        True, False,
    ]  # fmt: skip
    assert not works_on_tables(VERBS["task-stop"], in_cluster=False)


def test_a_server_with_kept_operations_starts_them_once_it_has_the_lease(tmp_path: Path) -> None:
    (tmp_path / "polynya.yml").write_text(PROJECT)
    lease = tmp_path / "warehouse" / ".polynya" / "operations" / "local" / "lease"
    state = ServerState(tmp_path, None, SystemClock(), keeper="i-1")
    with TestClient(app_of(state)) as client:
        for _ in range(100):
            answer = client.post("/api/v1/actions/validate", json={})
            if answer.status_code == 202:
                break
            assert answer.json()["code"] == "POLYNYA-SRV-043"
            time.sleep(0.05)
        name = answer.json()["id"]
        assert lease.read_text().startswith("i-1\n")
        other = ServerState(tmp_path, None, SystemClock(), keeper="i-2")
        with TestClient(app_of(other)) as second:
            refused = second.post("/api/v1/actions/validate", json={})
            assert (refused.status_code, refused.json()["code"]) == (409, "POLYNYA-SRV-043")
        ended(client, name)
    assert not lease.exists()
    assert (
        json.loads((lease.parent / f"{name}.json").read_text())["result"]["status"] == "succeeded"
    )


def test_a_server_whose_lease_another_one_took_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.server.operations.kept.RENEW_SECONDS", 0.05)
    (tmp_path / "polynya.yml").write_text(PROJECT)
    warehouse, lease = LocalObjectStore(tmp_path / "warehouse"), f"{FOLDER}/local/lease"
    state = ServerState(tmp_path, None, SystemClock(), keeper="i-1")
    with TestClient(app_of(state)) as client:

        def answers(status: int) -> bool:
            for _ in range(200):
                if client.get("/api/v1/operations").status_code == status:
                    return True
                time.sleep(0.05)
            return False

        def taken_by_another() -> bool:
            version = warehouse.read(lease, 1024).version
            return warehouse.put_if_unchanged(lease, b"i-2\n", version)

        assert answers(200)
        while not taken_by_another():
            time.sleep(0.01)
        assert answers(409)
        assert client.post("/api/v1/actions/validate", json={}).status_code == 409
        warehouse.delete(lease)
        assert answers(200)
