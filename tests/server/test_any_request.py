"""Random requests made after the OpenAPI: each answer is one that it describes. No JVM."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.problems import PROBLEM
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import USERS, write_project


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The API of a project before its first run; actions start processes and have own tests."""
    folder = write_project(tmp_path_factory.mktemp("any"), users=USERS)
    app = app_of(ServerState(folder, None, SystemClock()))
    guard(app, AccessSettings("127.0.0.1", loopback=True, tls=False))
    found = schemathesis.openapi.from_dict(app.openapi())
    found.app = app
    return found.exclude(path_regex="/actions/|/operations").exclude(
        path_regex="/plans$", method="POST"
    )


def check(case: Any) -> None:
    """An answer of a route: what is described, or a problem with a code."""
    answer = case.call(headers={"Host": "localhost"})
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == [PROBLEM]
        assert answer.json()["code"].startswith("POLYNYA-")
    else:
        case.operation.validate_response(answer)


def test_no_request_is_a_bug_and_each_error_is_a_problem(described: Any) -> None:
    routes = [found.ok() for found in described.get_all_operations()]
    for route in routes:
        few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
        few(given(case=route.as_strategy())(check))()
    assert len(routes) > 10
