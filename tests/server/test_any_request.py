"""Random requests made after the OpenAPI: each answer is one that it describes. No JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.operations.manager import OperationManager
from polynya.server.operations.records import OperationStore
from polynya.server.problems import PROBLEM
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.lab.chosen import slow
from tests.projects import USERS, write_project


@dataclass(slots=True)
class NoProcesses(OperationManager):
    """Operations whose processes have ended as soon as they begin."""

    def _started(self, name: str, _variables: Mapping[str, str]) -> Any:
        self._known[name].note_exit(0)
        return SimpleNamespace(poll=lambda: 0)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The API of a project before its first run; no action starts a process."""
    folder = write_project(tmp_path_factory.mktemp("any"), users=USERS)
    clock = SystemClock()
    app = app_of(ServerState(folder, None, clock))
    guard(app, AccessSettings("127.0.0.1", loopback=True, tls=False))
    store = OperationStore(folder / "operations")
    app.state.operations = operations = NoProcesses(store, ["false"], clock)
    operations.open()
    found = schemathesis.openapi.from_dict(app.openapi())
    found.app = app
    yield found
    operations.close()


def check(case: Any) -> None:
    """An answer of a route: what is described, or a problem with a code."""
    operations = case.operation.schema.app.state.operations
    if case.path.startswith("/api/v1/operations/{") and operations.ids():
        # Names that are drawn are those of no operation.
        for name in case.path_parameters:
            case.path_parameters[name] = operations.ids()[0]
    answer = case.call(headers={"Host": "localhost"})
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == [PROBLEM]
        assert answer.json()["code"].startswith("POLYNYA-")
    else:
        case.operation.validate_response(answer)


@pytest.mark.parametrize("examples", [3, slow(150)])
def test_no_request_is_a_bug_and_each_error_is_a_problem(described: Any, examples: int) -> None:
    routes = [found.ok() for found in described.get_all_operations()]
    # Actions first: the operations that they start are asked for by those that follow.
    routes.sort(key=lambda route: "/actions/" not in route.path)
    for route in routes:
        few = settings(
            max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck)
        )
        few(given(case=route.as_strategy())(check))()
    assert sum("/actions/" in route.path for route in routes) > 10
    assert described.app.state.operations.ids()
