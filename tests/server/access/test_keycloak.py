"""Login with a real Keycloak: people, groups, PKCE that it checks, bearer tokens of programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.servers.keycloak import (
    REALM,
    KeycloakServer,
    keycloak_server,
)
from examples.servers.maven import UnavailableError
from polynya.store.clock import SystemClock
from tests.absent import absent
from tests.server.access.logins import begin, finish, headers_of, log_in, query_of
from tests.server.access.served import HOST, ROLES, Served, served

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def person(name: str, *groups: str, verified: bool = True) -> dict[str, Any]:
    return {
        "username": name, "email": f"{name}@example.com", "emailVerified": verified,
        "enabled": True, "firstName": name, "lastName": "Test", "groups": list(groups),
        "credentials": [{"type": "password", "value": "pass-word-1", "temporary": False}],
    }  # fmt: skip


def mapper(name: str, kind: str, **config: str) -> dict[str, Any]:
    given = {one.replace("_", "."): text for one, text in config.items()}
    claims = {"id.token.claim": "true", "access.token.claim": "true"}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind,
            "config": {**claims, **given}}  # fmt: skip


REALM_FILE: dict[str, Any] = {
    "realm": REALM,
    "enabled": True,
    "sslRequired": "none",
    "groups": [{"name": "analysts"}, {"name": "ops"}],
    "users": [
        person("vera"), person("dora", "/analysts"), person("mallory", verified=False)
    ],
    "clients": [
        {
            "clientId": "polynya", "secret": "client-secret", "redirectUris": [f"{HOST}/*"],
            "standardFlowEnabled": True, "directAccessGrantsEnabled": False,
            "attributes": {"pkce.code.challenge.method": "S256"},
            "protocolMappers": [
                mapper("groups", "oidc-group-membership-mapper", claim_name="groups",
                       full_path="false")
            ],
        },
        {
            "clientId": "loader", "secret": "loader-secret", "serviceAccountsEnabled": True,
            "standardFlowEnabled": False, "redirectUris": [],
            "protocolMappers": [
                mapper("for polynya", "oidc-audience-mapper",
                       included_custom_audience="polynya-api")
            ],
        },
        {
            "clientId": "other", "secret": "other-secret", "serviceAccountsEnabled": True,
            "standardFlowEnabled": False, "redirectUris": [],
        },
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def keycloak() -> Iterator[KeycloakServer]:
    try:
        with keycloak_server(REALM_FILE) as server:
            yield server
    except UnavailableError as error:
        absent(str(error))


@pytest.fixture
def server(keycloak: KeycloakServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "client").write_text("client-secret\n")
    monkeypatch.setenv("POLYNYA_SECRETS", str(secrets))
    access = (
        f"url: {HOST}\noidc:\n  issuer: {keycloak.issuer}\n  client_id: polynya\n"
        f"  client_secret: ${{file:{secrets}/client}}\n  audience: polynya-api\n{ROLES}"
    )
    return served(tmp_path, access, clock=SystemClock())


def as_person(name: str) -> Any:
    """Fill in the form of Keycloak, as a browser does."""

    def provider(address: str) -> str:
        with httpx.Client() as browser:
            page = browser.get(address)
            action = re.search(r'action="([^"]+)"', page.text)
            assert action is not None, page.text[:500]
            form = {"username": name, "password": "pass-word-1"}
            # Cookies of Keycloak are secure ones, which this client keeps from plain HTTP.
            cookies = "; ".join(f"{one.name}={one.value}" for one in browser.cookies.jar)
            answer = browser.post(unescape(action[1]), data=form, headers={"Cookie": cookies})
            return answer.headers["location"]

    return provider


def test_a_person_logs_in_with_a_verified_mail_address(server: Served):
    answer = log_in(server, as_person("vera"))

    me = server.client.get("/api/v1/me", headers=headers_of(answer)).json()
    assert (me["name"], me["roles"]) == ("vera@example.com", ["can_view"])


def test_groups_give_roles_and_an_address_that_is_not_verified_gives_none(server: Served):
    dora, mallory = (
        server.client.get("/api/v1/me", headers=headers_of(log_in(server, as_person(name)))).json()
        for name in ("dora", "mallory")
    )

    assert (dora["name"], dora["roles"]) == ("dora@example.com", ["can_consume"])
    assert mallory["name"].startswith("oidc:")
    assert mallory["roles"] == []


def test_a_code_is_good_for_the_login_that_asked_for_it(server: Served):
    address, cookie = begin(server)
    stolen = as_person("vera")(address)
    other, other_cookie = begin(server)
    # The thief puts the code into a login of their own: PKCE lets Keycloak refuse it.
    forged = stolen.replace(query_of(address)["state"], query_of(other)["state"])

    assert finish(server, forged, other_cookie).status_code == 400
    assert cookie != other_cookie


def test_a_program_uses_a_token_that_was_made_for_this_server(
    server: Served, keycloak: KeycloakServer
):
    def token(client: str) -> dict[str, str]:
        answer = httpx.post(
            f"{keycloak.issuer}/protocol/openid-connect/token",
            data={"grant_type": "client_credentials"},
            auth=(client, f"{client}-secret"),
        )
        return {"Authorization": f"Bearer {answer.json()['access_token']}"}

    right = server.client.get("/api/v1/me", headers=token("loader"))
    foreign = server.client.get("/api/v1/me", headers=token("other"))

    assert (right.status_code, right.json()["proof"]) == (200, "bearer")
    assert foreign.status_code == 401
