"""The guard: each route and each role, hosts, other sites, rates, sizes, headers, the start."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import APIRouter, Response

from polynya.model.config.access import Role
from polynya.model.errors import ConfigError, OperationError
from polynya.server.access.control import AccessControl, AccessSettings, check_listening
from polynya.server.access.door import allowed, route_actions, unguarded
from polynya.server.access.guard import guard
from polynya.server.access.rates import Rate, RateLimits
from polynya.server.access.roles import OPEN, TABLE
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.testing.fakes import FakeClock
from tests.server.access.served import HOST, PROJECT, ROLES, document_of, served

EACH = "roles:\n  owner: [owner@x.de]\n" + "".join(
    f"  {role.value}: [{role.value}@x.de]\n" for role in Role if role is not Role.OWNER
)
#: Answered in place of every route that lets a request pass.
PASSED = 299


def refused_but_allowed(root: Path, monkeypatch: pytest.MonkeyPatch, below: str = "/") -> list[str]:
    """Ask each route as each role; what the answers and the table do not agree about."""

    async def passed(**_: object) -> Response:
        return Response(status_code=PASSED)

    monkeypatch.setattr("fastapi.routing.run_endpoint_function", passed)
    monkeypatch.setattr(AccessControl, "log", lambda *_: None)
    rates = Rate(1e6, 1e6)
    server = served(root, EACH, AccessSettings(address_rate=rates, person_rate=rates))
    sessions = {role: server.session(f"{role.value}@x.de") for role in Role}
    routes = [one for one in route_actions(server.app.routes) if one.path.startswith(below)]
    wrong = []
    # In one event loop: a client of its own for each request takes longer than the answers.
    with server.client as client:
        for route in routes:
            if route.action is None:
                continue
            path = "/".join("x" if one.startswith("{") else one for one in route.path.split("/"))
            for role, headers in [*sessions.items(), (None, {"Origin": HOST})]:
                may = route.action in (OPEN if role is None else TABLE[role])
                for method in set(route.methods) - {"HEAD", "OPTIONS"}:
                    body = {} if method == "GET" else {"json": {}}
                    status = client.request(method, path, headers=headers, **body).status_code
                    if (status not in {401, 403}) != may:
                        wrong.append(f"{method} {route.path} as {role}: {status}")
    return wrong


def test_every_route_asks_for_an_action(tmp_path: Path):
    assert unguarded(served(tmp_path).app.routes) == []


def test_every_route_lets_exactly_those_roles_pass_that_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert refused_but_allowed(tmp_path, monkeypatch) == []


def test_a_planted_hole_in_the_door_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("polynya.server.access.door._Asked.__call__", lambda *_: None)

    found = refused_but_allowed(tmp_path, monkeypatch, below="/api/v1/access")

    assert any(one.startswith("PUT /api/v1/access as can_view") for one in found)


def test_a_route_without_an_action_keeps_the_server_from_starting(tmp_path: Path):
    (tmp_path / "polynya.yml").write_text(PROJECT)
    app = app_of(ServerState(tmp_path, None, FakeClock()))
    router = APIRouter()
    router.add_api_route("/hole", lambda: "open")
    app.include_router(router, prefix="/api/v1")

    with pytest.raises(OperationError) as refused:
        guard(app, AccessSettings())

    assert refused.value.code == "POLYNYA-ACC-031"
    assert "GET /api/v1/hole" in str(refused.value)
    assert allowed is not None


@pytest.mark.parametrize(
    ("settings", "access", "starts"),
    [
        (AccessSettings(), None, True),
        (AccessSettings("0.0.0.0", loopback=False), None, False),
        (AccessSettings("0.0.0.0", loopback=False, tls=True), None, False),
        (AccessSettings("0.0.0.0", loopback=False, tls=True), ROLES, False),
        (AccessSettings("0.0.0.0", loopback=False, tls=True), "url: http://x.de\n" + ROLES, False),
        (AccessSettings("0.0.0.0", loopback=False), "url: https://x.de\n" + ROLES, False),
        (AccessSettings("0.0.0.0", loopback=False, tls=True), "url: https://x.de\n" + ROLES, True),
    ],
)
def test_others_reach_the_server_only_with_tls_and_a_login(settings, access, starts):
    document = None if access is None else document_of(access)
    if starts:
        check_listening(settings, document)
        return
    with pytest.raises(ConfigError) as refused:
        check_listening(settings, document)
    assert refused.value.code == "POLYNYA-ACC-030"


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8181", 200), ("127.0.0.1", 200), ("[::1]:9000", 200), ("polynya.example.com", 200),
     ("evil.example", 421), ("localhost.evil.example", 421), ("", 421), ("127.0.0.1.evil", 421)],
)  # fmt: skip
def test_only_own_names_are_answered(tmp_path: Path, host: str, status: int):
    server = served(tmp_path, "url: https://polynya.example.com\n" + ROLES)
    headers = {**server.token("vera@example.com"), "Host": host}

    assert server.client.get("/api/v1/project", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 204),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"X-Polynya-Request": None}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 204),
    ],
)
def test_a_page_of_another_site_changes_nothing(tmp_path: Path, change, status: int):
    server = served(tmp_path)
    headers = {**server.session("vera@example.com"), **change}
    headers = {name: text for name, text in headers.items() if text is not None}

    assert server.client.post("/api/v1/logout", headers=headers).status_code == status


def test_without_a_login_a_page_of_another_site_changes_nothing_either(tmp_path: Path):
    server = served(tmp_path, None)

    answer = server.client.post("/api/v1/logout", headers={"Origin": "http://evil.example"})

    assert answer.json()["code"] == "POLYNYA-ACC-011"


def test_answers_have_the_headers_of_safety(tmp_path: Path):
    server = served(tmp_path, settings=AccessSettings(tls=True))
    for answer in (server.client.get("/api/v1/me"), server.client.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        assert answer.headers["cache-control"] == "no-store"


def test_requests_are_limited_for_addresses_and_for_people(tmp_path: Path):
    settings = AccessSettings(address_rate=Rate(50, 1), person_rate=Rate(5, 1), refusal_cost=20)
    server = served(tmp_path, settings=settings)
    vera = server.token("vera@example.com")

    statuses = [server.client.get("/api/v1/me", headers=vera).status_code for _ in range(6)]
    guesses = [
        server.client.get("/api/v1/me", headers={"Authorization": "Bearer x"}) for _ in range(4)
    ]

    assert statuses == [200] * 5 + [429]
    assert [one.status_code for one in guesses] == [401, 401, 401, 429]
    assert int(guesses[-1].headers["retry-after"]) > 0
    server.clock.advance(timedelta(seconds=100))
    assert server.client.get("/api/v1/me", headers=vera).status_code == 200


def test_buckets_fill_up_again_and_their_number_is_bounded():
    clock = FakeClock()
    limits = RateLimits(Rate(2, 0.5), clock, most=3)

    assert [limits.take("a"), limits.take("a"), limits.take("a")] == [0, 0, 2]
    clock.advance(timedelta(seconds=2))
    assert limits.take("a") == 0
    for name in "bcdef":
        limits.take(name)
    assert len(limits) == 3


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"content": b"x" * 2001}, 413),
        ({"content": iter([b"x" * 1500, b"x" * 1500])}, 413),
        ({"params": {"q": "x" * 9000}}, 414),
        ({"headers": {f"x-{n}": "1" for n in range(70)}}, 431),
    ],
)
def test_what_is_too_large_is_refused(tmp_path: Path, request_, status: int):
    server = served(tmp_path, settings=AccessSettings(max_body_bytes=2000))
    request_ = {**request_, "headers": {**server.token("ann@example.com"), "Content-Type":
                "application/json", **request_.get("headers", {})}}  # fmt: skip

    answer = server.client.post("/api/v1/access/tokens", **request_)

    assert answer.status_code == status
    assert answer.json()["code"] == "POLYNYA-ACC-013"


def test_trace_is_not_answered(tmp_path: Path):
    server = served(tmp_path)

    answer = server.client.request(
        "TRACE", "/api/v1/project", headers=server.token("vera@example.com")
    )

    assert answer.status_code == 405


def test_two_logins_in_one_request_are_none(tmp_path: Path):
    server = served(tmp_path)
    both = [*server.token("ann@example.com").items(), *server.token("vera@example.com").items()]

    assert server.client.get("/api/v1/project", headers=both).status_code == 401


def test_a_bug_of_a_route_is_answered_without_its_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server = served(tmp_path)

    def broken(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("polynya.server.routes.projects.ServerState.of", broken)
    answer = server.client.get("/api/v1/project", headers=server.token("vera@example.com"))

    assert answer.status_code == 500
    assert answer.json()["code"] == "POLYNYA-ACC-070"
    assert "hunter2" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_access_file_that_is_broken_lets_nobody_pass(tmp_path: Path):
    server = served(tmp_path)
    header = server.token("ann@example.com")
    (tmp_path / "access.yml").write_text("kind: access\n")
    server.control.look_again()

    assert server.client.get("/api/v1/project", headers=header).status_code == 422
    assert server.client.get("/api/v1/me").status_code == 422


def test_a_probe_of_any_name_learns_that_the_server_is_up_and_nothing_else(tmp_path: Path):
    server = served(tmp_path)

    answer = server.client.get("/health", headers={"Host": "10.40.1.7:8443"})

    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert server.client.post("/health", headers={"Host": "10.40.1.7:8443"}).status_code == 421
    assert [line.method for line in server.control.audit.page(None, 10)] == ["POST"]
