"""The API of a small project, through the client of FastAPI's tests."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock

PROJECT = """apiVersion: polynya/v1
kind: project
name: demo
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""


def client_of(root: Path) -> TestClient:
    (root / "polynya.yml").write_text(PROJECT)
    return TestClient(app_of(ServerState(root, None, SystemClock())))


def test_the_project_is_a_resource(tmp_path: Path) -> None:
    answer = client_of(tmp_path).get("/api/v1/project")
    assert (answer.status_code, answer.json()) == (200, {"name": "demo", "target": "local"})


def test_an_error_of_the_project_is_a_problem_with_its_code(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    (tmp_path / "polynya.yml").write_text("kind: project\n")
    answer = client.get("/api/v1/project")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"].startswith("POLYNYA-CFG-")
