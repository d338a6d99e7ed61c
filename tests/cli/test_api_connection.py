"""`polynya connection test` and `doctor` for a REST API: the first page of each resource."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.cli.doctor import capture_checks
from polynya.engine.commands.connections import connection_findings
from polynya.model.loader import LoadedProject, load_project
from tests.projects import PROJECT, write_project
from tests.streams.rest.server import Reply, local_api

TASK = """\
apiVersion: polynya/v1
kind: streaming_landing
name: shop
source:
  http:
    connection: api
    resources:
      orders: {path: /orders, record_path: $.items, pagination: {type: cursor, path: $.next}}
      users: {path: /users}
      lines: {path: "/orders/{id}/lines", parent: orders}
"""


def project_of(folder: Path, url: str, **tasks: str) -> LoadedProject:
    write_project(folder, project=PROJECT, **tasks)
    (folder / "connections").mkdir()
    text = f'type: http\nurl: {url}\nauth: {{type: bearer, token: "${{env:TOKEN}}"}}\n'
    (folder / "connections" / "api.yml").write_text(text + "retries: {attempts: 1}\n")
    return load_project(folder, environment={"TOKEN": "not-told"})


@pytest.fixture(autouse=True)
def _local_apis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")


def test_each_resource_is_asked_for_once_and_told(tmp_path: Path) -> None:
    answers = {"/orders": {"items": [1, 2], "next": "a"}, "/users": Reply({}, status=403)}
    with local_api(lambda asked: answers[asked.path]) as api:
        project = project_of(tmp_path, api.url, shop=TASK)

        orders, users = connection_findings(project, "api")

        assert (orders.ok, orders.what) == (
            True,
            "orders answers 200 with 2 records, and there are more pages",
        )
        assert not users.ok
        assert "refuses the login (403)" in users.what
        assert api.paths == ["/orders", "/users"]
        [check] = capture_checks(project)
        assert (check.name, check.status) == ("connection api", "fail")
        assert "not-told" not in f"{orders} {users} {check}"


def test_an_api_without_a_task_only_has_to_answer(tmp_path: Path) -> None:
    with local_api(lambda _: Reply({}, status=404)) as api:
        [finding] = connection_findings(project_of(tmp_path, api.url), "api")
        assert (finding.ok, finding.what) == (
            True,
            "the API answers 404, and no task reads a resource of it",
        )
