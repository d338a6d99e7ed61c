"""The client and `polynya --server URL`, against a server on a port of this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
import uvicorn

from polynya.cli.commands import run_command_line
from polynya.client import Operation, PolynyaClient
from polynya.model.errors import ConfigError, DependencyError
from polynya.server.app import app_of
from polynya.server.health import HealthWord
from polynya.server.operations.records import Status
from polynya.server.operations.verbs import VERBS, ReloadParameters
from polynya.server.routes.datasets import DatasetShown
from polynya.server.routes.operations import OperationShown
from polynya.server.routes.projects import ProjectShown, TaskShown
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project

PROJECT = """apiVersion: polynya/v1
kind: project
name: demo
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The URL of a server of a project, while it answers."""
    app = app_of(ServerState(root, None, SystemClock()))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


def test_a_command_at_a_server_has_the_output_and_exit_code_of_a_local_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "polynya.yml").write_text(PROJECT)
    with served(tmp_path) as url:
        assert run_command_line(["--server", url, "--json", "validate"]) == 0
        remote = capsys.readouterr().out
        (tmp_path / "tasks").mkdir()
        (tmp_path / "tasks" / "shop.yml").write_text("kind: storage\n")
        assert run_command_line(["--server", url, "--json", "validate"]) == 2
        assert "POLYNYA-CFG-" in capsys.readouterr().out
        assert run_command_line(["--server", url, "history", "users"]) == 2
        assert "POLYNYA-SRV-051" in capsys.readouterr().err
        assert run_command_line(["--server", url, "reload", "crm"]) == 2
        assert "POLYNYA-SRV-044" in capsys.readouterr().err
        with pytest.raises(ConfigError, match="no task"):
            PolynyaClient(url).start("reload", ReloadParameters(task="crm"))
    assert run_command_line(["--server", url, "validate"]) == 4
    (tmp_path / "tasks" / "shop.yml").unlink()
    assert run_command_line(["-p", str(tmp_path), "--json", "validate"]) == 0
    assert capsys.readouterr().out == remote


@pytest.mark.parametrize(
    "url", ["ftp://a", "http://example.com", "https://me@a", "https://a?b", "a", "https://"]
)
def test_a_url_that_a_token_could_leak_through_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--server"):
        PolynyaClient(url, "secret")


def test_a_server_that_does_not_answer_is_a_dependency() -> None:
    with pytest.raises(DependencyError, match="cannot be reached"):
        PolynyaClient("http://127.0.0.1:1").start("validate")


def test_answers_are_the_models_of_the_server(tmp_path: Path) -> None:
    write_project(tmp_path, **{f"t{n}": USERS.replace("users", f"u{n}") for n in range(3)})
    with served(tmp_path) as url:
        client = PolynyaClient(url)
        project = client.read(ProjectShown, "/project")
        tasks = list(client.items(TaskShown, "/tasks", limit=2))
        late = list(client.items(DatasetShown, "/datasets", health="suspended"))

    assert (project.name, project.health) == ("shop", HealthWord.NEW)
    assert [one.name for one in tasks] == ["u0", "u1", "u2"], "of two pages"
    assert late == []


def test_the_client_is_in_step_with_the_openapi_document(tmp_path: Path) -> None:
    """Each action and each field of the client is in the document, and each action of it here."""
    (tmp_path / "polynya.yml").write_text(PROJECT)
    document: dict[str, Any] = app_of(ServerState(tmp_path, None, SystemClock())).openapi()
    prefix = "/api/v1/actions/"
    bodies = {
        path.removeprefix(prefix): item["post"]["requestBody"]["content"]["application/json"]
        for path, item in document["paths"].items()
        if path.startswith(prefix)
    }
    assert set(bodies) == set(VERBS)
    for name, body in bodies.items():
        assert body["schema"]["$ref"].endswith(f"/{VERBS[name].parameters.__name__}")
    shown = document["components"]["schemas"]["OperationShown"]["properties"]
    assert set(Operation.__dataclass_fields__) <= set(shown) == set(OperationShown.model_fields)
    assert set(shown["status"]["enum"]) == set(get_args(Status))
