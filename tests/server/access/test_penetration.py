"""Attacks on a server that listens find nothing, and find a weakness that was planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.server.access.control import AccessSettings
from polynya.server.access.rates import Rate
from polynya.store.clock import SystemClock
from tests.server.access.penetration import (
    ATTACKS,
    Target,
    csrf,
    findings,
    idor,
    inside,
    webhooks,
)
from tests.server.access.served import ROLES, served
from tests.server.listening import listening

pytestmark = pytest.mark.slow
HEAD_SECONDS = 2.0
OIDC = "url: https://polynya.example.com\noidc: {issuer: 'https://id.example.com', client_id: p}\n"


@pytest.fixture
def target(tmp_path: Path):
    rates = AccessSettings(
        address_rate=Rate(1500, 500), person_rate=Rate(1e5, 1e5), refusal_cost=150
    )
    server = served(tmp_path, OIDC + ROLES, rates, SystemClock())
    with listening(server.app, head_seconds=HEAD_SECONDS) as port:
        yield Target(server, port, HEAD_SECONDS)


def test_attacks_find_nothing(target: Target):
    assert findings(target) == {}
    print(f"{len(ATTACKS)} kinds of attack, {target.attacks} requests")


def test_planted_weaknesses_are_found(target: Target, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("polynya.server.access.guard._check_origin", lambda *_: None)
    assert "is answered" in csrf(target)

    monkeypatch.setattr("polynya.server.routes.access._manages", lambda *_: True)
    assert "another person" in idor(target)

    with monkeypatch.context() as planted:
        planted.setattr("polynya.notify.channels.why_refused", lambda *_: None)
        assert "a webhook to" in inside(target)
    with monkeypatch.context() as planted:
        planted.setattr("polynya.server.routes.automation_calls._is_genuine", lambda *_: True)
        assert "is answered 202" in webhooks(target)
