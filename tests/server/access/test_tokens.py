"""Tokens and sessions: made, used, expired, revoked, also over a restart."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from polynya.model.errors import ConfigError
from polynya.server.access.actions import Action
from polynya.server.access.control import AccessControl
from polynya.server.access.sessions import MOST_SESSIONS
from polynya.server.access.tokens import Tokens, actions_named
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock
from tests.server.access.served import ROLES, served

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(tmp_path: Path, clock: FakeClock) -> Tokens:
    return Tokens(LocalObjectStore(tmp_path), clock)


def test_a_token_is_found_by_its_text_and_stored_without_it(tokens: Tokens, tmp_path: Path):
    text, record = tokens.create("ann@example.com", frozenset({Action.RUN}), DAY, longest=DAY)

    assert tokens.find(text) is not None
    # 32 random bytes in base64.
    assert len(text) == len("polynya_") + 12 + 1 + 43
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.json"))
    assert text.encode() not in kept
    assert text[-43:].encode() not in kept
    assert record.hash not in str(record.shown())


def test_a_wrong_secret_an_unknown_id_and_a_path_are_no_tokens(tokens: Tokens):
    text, record = tokens.create("ann@example.com", frozenset({Action.RUN}), DAY, longest=DAY)

    for wrong in (text[:-1] + ("A" if text[-1] != "A" else "B"), f"polynya_{'x' * 12}_{'y' * 43}",
                  f"polynya_../../etc/pa_{'y' * 43}", "", "polynya_"):  # fmt: skip
        assert tokens.find(wrong) is None
    assert record.id in text


def test_a_token_expires_and_shows_its_last_use_to_the_hour(tokens: Tokens, clock: FakeClock):
    text, _ = tokens.create("ann@example.com", frozenset({Action.RUN}), DAY, longest=DAY)
    clock.advance(timedelta(hours=3, minutes=20))
    tokens.find(text)

    [kept] = tokens.all()
    assert kept.used_at == clock.now().replace(minute=0)
    clock.advance(timedelta(hours=20, minutes=40))
    assert tokens.find(text) is None


@pytest.mark.parametrize(
    ("actions", "life", "note"),
    [(set(), DAY, ""), ({Action.RUN}, DAY * 2, ""), ({Action.RUN}, -DAY, ""),
     ({Action.RUN}, DAY, "x" * 201), ({Action.RUN}, DAY, "a\nb")],
)  # fmt: skip
def test_a_token_without_bounds_is_refused(tokens: Tokens, actions, life, note):
    with pytest.raises(ConfigError) as refused:
        tokens.create("ann@example.com", frozenset(actions), life, longest=DAY, note=note)

    assert refused.value.code == "POLYNYA-ACC-040"


def test_patterns_name_actions_and_unknown_ones_are_refused():
    assert Action.RUN in actions_named(["task.*"])
    assert actions_named(["project.view"]) == {Action.VIEW_PROJECT}
    with pytest.raises(ConfigError):
        actions_named(["everything"])


def test_what_another_process_revokes_is_refused_within_five_seconds(
    tmp_path: Path, clock: FakeClock
):
    here, there = (Tokens(LocalObjectStore(tmp_path), clock) for _ in range(2))
    text, record = here.create("ann@example.com", frozenset({Action.RUN}), DAY, longest=DAY)
    assert here.find(text) is not None
    there.revoke(record.id)

    clock.advance(timedelta(seconds=5))

    assert here.find(text) is None
    assert here.all() == []


def test_a_token_may_do_what_it_was_made_for_and_never_more_than_its_owner(tmp_path: Path):
    server = served(tmp_path)
    narrow = server.token("ann@example.com", Action.VIEW_PROJECT)
    wide = server.token("vera@example.com", *Action)

    assert server.client.get("/api/v1/project", headers=narrow).status_code == 200
    assert server.client.get("/api/v1/access", headers=narrow).status_code == 403
    assert server.client.get("/api/v1/access", headers=wide).status_code == 403
    # A role that is taken away is gone for the tokens, too.
    server.write(ROLES.replace("can_view: [vera@example.com]", "can_view: []"))
    assert server.client.get("/api/v1/project", headers=wide).status_code == 403


def test_a_token_makes_no_token_that_may_do_more(tmp_path: Path):
    server = served(tmp_path)
    header = server.token("ann@example.com", Action.OWN_TOKENS, Action.VIEW_PROJECT)

    wide = server.client.post("/api/v1/access/tokens", json={"actions": ["*"]}, headers=header)
    same = server.client.post(
        "/api/v1/access/tokens", json={"actions": ["project.view"]}, headers=header
    )

    assert wide.status_code == 422
    assert same.status_code == 201
    again = {"Authorization": f"Bearer {same.json()['token']}"}
    assert server.client.get("/api/v1/project", headers=again).status_code == 200
    # Only the answer to its making shows the secret.
    assert "polynya_" not in server.client.get("/api/v1/access/tokens", headers=header).text


def test_groups_of_an_owner_count_for_tokens_for_thirty_days_after_a_login(tmp_path: Path):
    server = served(tmp_path)
    server.session("dora@example.com", "analysts")
    header = server.token("dora@example.com", days=90)

    assert server.client.get("/api/v1/project", headers=header).status_code == 200
    server.clock.advance(timedelta(days=31))
    assert server.client.get("/api/v1/project", headers=header).status_code == 403


def test_a_session_ends_when_it_is_idle_and_anyway_after_its_longest_time(tmp_path: Path):
    server = served(tmp_path, ROLES + "idle: 30m\nlongest: 2h\n")
    idle, busy = (server.session("vera@example.com") for _ in range(2))

    for _ in range(4):
        server.clock.advance(timedelta(minutes=29))
        assert server.client.get("/api/v1/project", headers=busy).status_code == 200
    assert server.client.get("/api/v1/project", headers=idle).status_code == 401
    server.clock.advance(timedelta(minutes=5))
    assert server.client.get("/api/v1/project", headers=busy).status_code == 401


def test_a_session_that_was_ended_stays_ended_over_a_restart(tmp_path: Path):
    server = served(tmp_path)
    cookie = server.session("vera@example.com")
    other = server.session("vera@example.com")
    server.client.post("/api/v1/logout", headers=cookie)

    again = AccessControl.at(tmp_path, LocalObjectStore(tmp_path / "warehouse"), server.clock)
    values = [one["Cookie"].partition("=")[2] for one in (cookie, other)]

    found = [again.person(None, {"__Host-polynya": value}) for value in values]
    assert [one and one.proof for one in found] == ["none", "session"]


def test_a_person_ends_their_own_sessions_and_those_of_nobody_else(tmp_path: Path):
    server = served(tmp_path)
    vera, max_ = server.session("vera@example.com"), server.session("max@example.com")
    [mine] = server.client.get("/api/v1/me/sessions", headers=vera).json()

    foreign = server.client.delete(f"/api/v1/me/sessions/{mine['id']}", headers=max_)
    own = server.client.delete(f"/api/v1/me/sessions/{mine['id']}", headers=vera)

    assert (foreign.status_code, own.status_code) == (422, 200)
    assert server.client.get("/api/v1/project", headers=vera).status_code == 401


def test_an_owner_ends_all_sessions_of_a_person(tmp_path: Path):
    server = served(tmp_path)
    vera, ann = server.session("vera@example.com"), server.session("ann@example.com")

    ended = server.client.delete("/api/v1/access/people/vera@example.com/sessions", headers=ann)

    assert ended.status_code == 200
    statuses = [
        server.client.get("/api/v1/project", headers=one).status_code for one in (vera, ann)
    ]
    assert statuses == [401, 200]


def test_a_logout_clears_what_the_browser_keeps(tmp_path: Path):
    server = served(tmp_path)

    answer = server.client.post("/api/v1/logout", headers=server.session("vera@example.com"))

    assert '"cookies"' in answer.headers["clear-site-data"]


def test_a_person_has_a_bounded_number_of_sessions(tmp_path: Path):
    server = served(tmp_path)
    for _ in range(MOST_SESSIONS + 3):
        server.session("vera@example.com")
        server.clock.advance(timedelta(seconds=1))

    assert len(server.control.sessions.of("vera@example.com")) == MOST_SESSIONS
