"""Resources of one dataset: latency, files, limits of its apply, from real tables. No JVM."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from polynya.lake.warehouse.latency_table import LatencyTable
from polynya.observe.latency import LatencySample
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.testing.fakes import FakeClock
from tests.lake.warehouse.tables import catalog_in
from tests.projects import PROJECT, write_project
from tests.server.tables import write_table
from tests.server.test_records import COLUMNS, USERS, fill

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
PATH = "/api/v1/datasets/shop.users"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_project(tmp_path, users=USERS)
    fill(folder)
    return folder


@pytest.fixture
def client(folder: Path) -> TestClient:
    clock = FakeClock()
    clock.now = lambda: NOON  # type: ignore[method-assign]
    return TestClient(app_of(ServerState(folder, None, clock)))


def test_latency_comes_in_steps_with_percentiles_of_each_part(
    folder: Path, client: TestClient
) -> None:
    (folder / "polynya.yml").write_text(PROJECT + "latency: {}\n")

    def sample(hours: float, dataset: str = "shop.users") -> LatencySample:
        at = NOON - timedelta(hours=hours)
        times = hours, 2.0, 3.0, 4.0, hours + 5
        return LatencySample(at, "users", dataset, 1, 10, *times, 7000, 60.0, int(hours * 100))

    LatencyTable(catalog_in(folder), "shop_internal").append(
        [sample(1), sample(2), sample(30), sample(2, "shop.other"), sample(24 * 40)]
    )
    found = client.get(f"{PATH}/latency?days=30&hours=4&percentile=50&percentile=100").json()

    assert (found["kept"], found["window_seconds"], found["step_seconds"]) == (True, 2592e3, 14400)
    assert [one["samples"] for one in found["items"]] == [1, 2]
    assert found["items"][1]["seconds"]["source"] == {"p50": 1.0, "p100": 2.0}
    assert found["items"][1]["seconds"]["apply"] == {"p50": 4.0, "p100": 4.0}
    assert found["items"][1]["backlog"] == {
        "waiting_bytes": {"p50": 7000, "p100": 7000},
        "waiting_seconds": {"p50": 60.0, "p100": 60.0},
        "pending_rows": {"p50": 100, "p100": 200},
    }

    task = client.get("/api/v1/tasks/users/latency?percentile=100").json()["items"][1]
    assert task["seconds"]["source"] == {"p100": 2.0}
    assert task["backlog"]["pending_rows"] == {"p100": 400}, "of both datasets"
    for path in ("datasets/shop.users", "tasks/users"):
        page = client.get(f"/console/{path}/latency?days=30&percentile=100").text
        assert "How long changes took, part by part" in page
        assert "Rows that waited for their apply" in page
    assert client.get("/api/v1/tasks/none/latency").status_code == 404


def test_latency_is_said_not_to_be_kept_where_the_project_does_not_ask(client: TestClient) -> None:
    found = client.get(f"{PATH}/latency").json()

    assert (found["kept"], found["items"]) == (False, [])
    assert client.get(f"{PATH}/latency?percentile=0").status_code == 422
    assert client.get("/api/v1/datasets/shop.none/latency").json()["code"] == "POLYNYA-SRV-001"


def test_the_files_of_a_table_come_with_what_maintenance_makes_of_them(client: TestClient) -> None:
    found = client.get(f"{PATH}/files").json()

    rows = {one["partition"]: one["rows"] for one in found["partitions"]}
    assert rows == {"asset_state": 2, "changes": 1, "current": 2, "prior": 1}
    assert all(one["bytes"] > 0 and one["files"] == 1 for one in found["partitions"])
    assert found["health"]["files"] == 4
    assert {one["action"] for one in found["actions"]} >= {"rewrite_data_files", "expire_snapshots"}
    assert all(one["reason"] for one in found["actions"])
    assert found["done"] == []


def test_a_dataset_tells_its_name_in_its_task_and_when_it_is_applied(tmp_path: Path) -> None:
    task = USERS.replace("name: users\nschema", "name: users\nprefix: raw_\nschema", 1)
    folder = write_project(tmp_path, users=task + "apply: {max_pending_rows: 7}\n")
    write_table(folder, "shop_internal.raw_users_internal", COLUMNS, ["id"], [])
    client = TestClient(app_of(ServerState(folder, None, FakeClock())))

    found = client.get("/api/v1/datasets/shop.raw_users").json()

    assert found["called"] == "users"
    assert found["apply_at"] == {"rows": 7, "bytes": 64 * 2**20, "files": 30, "seconds": 60.0}
    assert found["late_after_seconds"] is None
