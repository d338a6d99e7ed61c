"""The client and `polynya --server URL`, against a server on a port of this machine."""

from __future__ import annotations

import inspect
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
from polynya.model.errors import ConfigError, ConflictError, DependencyError, PolynyaError
from polynya.server.app import app_of
from polynya.server.client_code import codes
from polynya.server.health import HealthWord
from polynya.server.operations.records import Status
from polynya.server.operations.verbs import VERBS, ReloadParameters
from polynya.server.routes.operations import OperationShown
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project

PROJECT = """apiVersion: polynya/v1
kind: project
name: demo
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""

MORE = USERS.replace("users", "more")
#: Of each parameter of a path, and of `key`, which some routes require.
PARAMETERS: dict[str, Any] = {
    "name": "users",
    "task": "users",
    "dataset": "users",
    "table": "users",
    "subject": "shop.users",
    "step": 1,
    "run": "1",
    "path": "tasks/users.yml",
    "key": ["id=1"],
}


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
        project = client.routes.project.project()
        tasks = list(client.routes.project.tasks())
        of_two_pages = [one["name"] for one in client.listed("/tasks", limit=2)]
        late = list(client.routes.datasets.datasets(health=HealthWord.SUSPENDED))

    assert (project.name, project.health) == ("shop", HealthWord.NEW)
    assert [one.name for one in tasks] == of_two_pages == ["u0", "u1", "u2"]
    assert late == []


def test_a_document_is_written_read_and_removed_by_typed_methods(tmp_path: Path) -> None:
    write_project(tmp_path, users=USERS)
    with served(tmp_path) as url:
        documents = PolynyaClient(url).routes.documents
        text = documents.document("tasks/users.yml")
        more = documents.put_document("tasks/more.yml", MORE, if_none_match="*")
        with pytest.raises(ConflictError, match="is not what the request expects"):
            documents.delete_document("tasks/more.yml", if_match='"another"')
        gone = documents.delete_document("tasks/more.yml", if_match=more.etag, dry_run=True)

    assert text == USERS
    assert more.written and (tmp_path / "tasks" / "more.yml").read_text() == MORE
    assert not gone.written and gone.diff.count("\n-") > 3


def test_each_method_that_reads_gets_what_it_promises(tmp_path: Path) -> None:
    """Or an error of the server with its code, where what it asks for is not there."""
    write_project(tmp_path, users=USERS)
    asked: dict[str, str] = {}
    with served(tmp_path) as url:
        for tag, group in vars(PolynyaClient(url).routes).items():
            for name, method in inspect.getmembers(group, inspect.ismethod):
                if not any(word in inspect.getsource(method) for word in ("._get(", "._all(")):
                    continue
                required = inspect.signature(method).parameters.values()
                given = {
                    one.name: PARAMETERS[one.name] for one in required if one.default is one.empty
                }
                if tag in {"datasets", "records", "runs"} and name != "task_latency":
                    given |= dict.fromkeys(given.keys() & {"name"}, "shop.users")
                try:
                    found = method(**given)
                    asked[f"{tag}.{name}"] = str(list(found) if isinstance(found, map) else found)
                except PolynyaError as error:
                    asked[f"{tag}.{name}"] = error.code

    assert len(asked) > 45
    assert {one for one in asked.values() if one.startswith("POLYNYA-BUG")} == set()
    assert "POLYNYA-SRV-050" not in asked.values(), "an answer that is not of the API"
    read = {name for name, found in asked.items() if not found.startswith("POLYNYA-")}
    assert {"project.tasks", "datasets.dataset", "access.roles", "metrics.metrics"} <= read
    assert len(read) > 30


def test_typed_methods_are_those_of_the_routes() -> None:
    for path, text in codes().items():
        assert path.read_text("utf-8") == text, "run python -m polynya.server.client_code"


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
