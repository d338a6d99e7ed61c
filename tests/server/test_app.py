"""The API of a project before its first run, through the client of FastAPI's tests. No JVM."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from polynya.engine.rest_protocol import METHODS
from polynya.server.access.door import action_of
from polynya.server.app import ROUTERS, app_of
from polynya.server.routes import iceberg
from polynya.server.running_queries import MOST_QUERIES, QueryLimits
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project

TASK = "/api/v1/documents/tasks/users.yml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path, users=USERS)


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    state = ServerState(folder, None, SystemClock())
    with TestClient(app_of(state), raise_server_exceptions=False) as client:
        yield client


def told(answer: Any) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_the_project_its_tasks_and_datasets_are_resources(client: TestClient) -> None:
    project = client.get("/api/v1/project").json()
    (task,) = client.get("/api/v1/tasks").json()["items"]
    (dataset,) = client.get("/api/v1/datasets").json()["items"]
    details = client.get("/api/v1/datasets/shop.users").json()

    assert (project["name"], project["target"], project["health"]) == ("shop", "local", "new")
    assert project["datasets"]["new"] == 1
    assert (task["name"], task["kind"], task["file"]) == ("users", "storage", "tasks/users.yml")
    assert client.get("/api/v1/tasks/users").json() == task
    assert dataset["parts"] == [
        {
            "part": "copy",
            "word": "new",
            "says": "nothing was copied yet",
            "fix": None,
            "since": None,
        }
    ]
    assert details["rows"] is None
    assert client.get("/api/v1/datasets/shop.users/quarantine").json()["items"] == []


def test_a_broken_task_hides_no_other(folder: Path, client: TestClient) -> None:
    (folder / "tasks" / "broken.yml").write_text("kind: storage\n")

    project = client.get("/api/v1/project").json()
    checked = client.post("/api/v1/project/validate").json()

    assert [error["where"].partition(":")[0] for error in project["errors"]]
    assert checked["valid"] is False
    assert client.get("/api/v1/datasets").json()["total"] == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "001"),
        ("GET", "/api/v1/tasks/none", 404, "001"),
        ("GET", "/api/v1/datasets/shop.none", 404, "001"),
        ("GET", "/api/v1/datasets/shop.none/quarantine", 404, "001"),
        ("GET", "/api/v1/documents/tasks/none.yml", 404, "001"),
        ("GET", "/api/v1/documents/../../etc/passwd", 404, "001"),
        ("GET", "/api/v1/documents/%2e%2e/%2e%2e/etc/passwd", 404, "001"),
        ("DELETE", "/api/v1/project", 405, "003"),
        ("GET", "/api/v1/datasets?limit=0", 422, "002"),
        ("GET", "/api/v1/datasets?cursor=x", 422, "002"),
        ("GET", "/api/v1/datasets?cursor=WzEsW11d", 422, "002"),
        ("GET", "/api/v1/datasets?health=ill", 422, "002"),
    ],
)
def test_what_is_not_there_is_a_problem_with_a_code(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    assert told(client.request(method, path)) == (status, f"POLYNYA-SRV-{code}")


@pytest.mark.parametrize(
    ("number", "status", "code"),
    [
        (errno.ENOSPC, 507, "POLYNYA-DEP-011"),
        (errno.EACCES, 503, "POLYNYA-DEP-010"),
        (errno.ENOENT, 503, "POLYNYA-STO-004"),
        (errno.EMFILE, 503, "POLYNYA-DEP-021"),
    ],
)
def test_a_refusal_of_the_system_is_a_problem_with_place_and_fix_and_no_bug(
    folder: Path,
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    status: int,
    code: str,
) -> None:
    place = str(folder / "tasks" / "users.yml")

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number), place)

    monkeypatch.setattr(ServerState, "documents", property(refused))
    answer = client.get(TASK)

    assert told(answer) == (status, code)
    body = answer.json()
    assert body["where"] == place
    assert body["retryable"] is True
    assert body["fix"]


def test_only_the_fields_that_are_named_are_answered(client: TestClient) -> None:
    page = client.get("/api/v1/datasets?fields=name,health").json()
    one = client.get("/api/v1/datasets/shop.users?fields=keys,%20columns").json()
    wrong = client.get("/api/v1/datasets/shop.users?fields=name,secret")

    assert page == {"items": [{"name": "shop.users", "health": "new"}], "total": 1, "next": None}
    assert sorted(one) == ["columns", "keys"]
    assert told(wrong) == (422, "POLYNYA-SRV-002")
    assert "secret" in wrong.json()["title"]


def test_lists_come_in_pages(folder: Path, client: TestClient) -> None:
    datasets = "".join(f"  - {{name: t{n}, keys: [id], sequence_by: [n]}}\n" for n in range(7))
    head = USERS[: USERS.index("datasets:")]
    (folder / "tasks" / "users.yml").write_text(f"{head}datasets:\n{datasets}")

    names, cursor = [], None
    while True:
        asked = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = client.get("/api/v1/datasets", params=asked).json()
        assert page["total"] == 7
        names.append([one["name"] for one in page["items"]])
        cursor = page["next"]
        if cursor is None:
            break

    assert names == [
        ["shop.t0", "shop.t1", "shop.t2"],
        ["shop.t3", "shop.t4", "shop.t5"],
        ["shop.t6"],
    ]
    chosen = client.get("/api/v1/datasets", params={"name": "shop.t[56]", "sort": "pending"})
    assert [one["name"] for one in chosen.json()["items"]] == ["shop.t5", "shop.t6"]


def test_a_document_is_changed_where_it_still_is_what_was_read(
    folder: Path, client: TestClient
) -> None:
    before = client.get(TASK)
    changed = before.text.replace("name: users\n    keys", "name: people\n    keys")
    version = {"If-Match": before.headers["etag"]}

    tried = client.put(f"{TASK}?dry_run=true", content=changed, headers=version).json()
    unwritten = (folder / "tasks" / "users.yml").read_text()
    done = client.put(TASK, content=changed, headers=version).json()
    again = client.put(TASK, content=before.text, headers=version)

    assert tried["written"] is False
    assert unwritten == before.text
    assert "+  - name: people" in done["diff"]
    assert (folder / "tasks" / "users.yml").read_text() == changed
    assert client.get(TASK).headers["etag"] == done["etag"]
    assert told(again) == (412, "POLYNYA-SRV-008")
    assert told(client.put(TASK, content=changed)) == (412, "POLYNYA-SRV-008")


def test_a_document_is_made_and_removed(folder: Path, client: TestClient) -> None:
    path, new = "/api/v1/documents/tasks/more.yml", {"If-None-Match": "*"}
    text = USERS.replace("name: users", "name: more").replace("path: users", "path: more")

    made = client.put(path, content=text, headers=new).json()
    twice = client.put(path, content=text, headers=new)
    gone = client.delete(path, headers={"If-Match": made["etag"]}).json()

    assert (made["written"], gone["etag"]) == (True, None)
    assert told(twice) == (412, "POLYNYA-SRV-008")
    assert not (folder / "tasks" / "more.yml").exists()


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("tasks/users.yml", USERS.replace("keys:", "kyes:"), "POLYNYA-CFG-"),
        ("tasks/users.yml", USERS + "# postgresql://me:secret@db/shop\n", "POLYNYA-"),
        ("tasks/users.txt", "a", "POLYNYA-SRV-009"),
        (".git/config", "a", "POLYNYA-SRV-009"),
        ("tasks/.hidden.yml", USERS, "POLYNYA-SRV-009"),
        ("tasks/%2e%2e/%2e%2e/out.yml", USERS, "POLYNYA-SRV-009"),
        ("warehouse/catalog.db", "a", "POLYNYA-SRV-009"),
    ],
)
def test_a_change_that_the_project_cannot_have_is_not_written(
    folder: Path, client: TestClient, path: str, text: str, code: str
) -> None:
    files = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    is_new = path != "tasks/users.yml"
    version = client.get(TASK).headers["etag"]
    headers = {"If-None-Match": "*"} if is_new else {"If-Match": version}

    status, found = told(client.put(f"/api/v1/documents/{path}", content=text, headers=headers))

    assert (status, found.startswith(code)) == (422, True)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == files


def test_a_link_that_leads_out_of_the_project_is_not_written_through(
    folder: Path, client: TestClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (folder / "sql").symlink_to(outside)

    answer = client.put(
        "/api/v1/documents/sql/q.sql", content="SELECT 1", headers={"If-None-Match": "*"}
    )

    assert told(answer) == (422, "POLYNYA-SRV-009")
    assert list(outside.iterdir()) == []


def test_queries_only_read_and_are_few_at_a_time(folder: Path) -> None:
    state = ServerState(folder, None, SystemClock())
    client = TestClient(app_of(state), raise_server_exceptions=False)

    def asked(sql: str, **more: object) -> Any:
        return client.post("/api/v1/queries", json={"sql": sql, **more})

    assert told(asked("SELECT 1; SELECT 2")) == (422, "POLYNYA-SRV-002")
    assert told(asked("SELECT 1", unknown=1)) == (422, "POLYNYA-SRV-002")
    assert asked("DROP TABLE shop.users").json()["code"].startswith("POLYNYA-QRY-")
    with ExitStack() as running:
        for number in range(MOST_QUERIES):
            limits = QueryLimits(60, 1)
            running.enter_context(
                state.queries.running("ann", "SELECT 1", limits, name=f"q{number}", is_shared=False)
            )
        assert told(asked("SELECT 1")) == (503, "POLYNYA-SRV-005")


def test_the_catalog_is_answered_below_iceberg(client: TestClient) -> None:
    assert iceberg.METHODS == METHODS
    config = client.get("/iceberg/v1/config").json()
    written = client.post("/iceberg/v1/namespaces", json={"namespace": ["a"]})

    assert "endpoints" in config
    assert written.status_code == 406


def test_every_route_asks_the_door_for_one_action(folder: Path) -> None:
    routes = [
        route
        for router in (*ROUTERS, iceberg.router)
        for route in router.routes
        if isinstance(route, APIRoute)
    ]
    described = app_of(ServerState(folder, None, SystemClock())).openapi()["paths"]

    assert [route.path for route in routes if action_of(route) is None] == []
    # Each route that the app answers is among them.
    paths = {route.path.replace(":path", "") for route in routes}
    assert paths >= described.keys()
    assert len(described) > 8
