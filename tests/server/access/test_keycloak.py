"""Login with a real Keycloak: people, groups, PKCE that it checks, bearer tokens of programs."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
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
from polynya.client import PolynyaClient
from polynya.model.errors import PolynyaError
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.absent import absent
from tests.server.access.logins import begin, finish, headers_of, log_in, query_of
from tests.server.access.served import HOST, ROLES, Served, served
from tests.server.listening import listening
from tests.server.operations.test_life import live, made_shop

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
    # For a token that lasts for the whole life of a project.
    "accessTokenLifespan": 3600,
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


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server needs to ask the provider."""
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "client").write_text("client-secret\n")
    monkeypatch.setenv("POLYNYA_SECRETS", str(folder))


def oidc(keycloak: KeycloakServer, folder: Path) -> str:
    """The part of `access.yml` about the provider."""
    return (
        f"oidc:\n  issuer: {keycloak.issuer}\n  client_id: polynya\n"
        f"  client_secret: ${{file:{folder}/secrets/client}}\n  audience: polynya-api\n"
    )


@pytest.fixture
def server(keycloak: KeycloakServer, tmp_path: Path) -> Served:
    access = f"url: {HOST}\n{oidc(keycloak, tmp_path)}{ROLES}"
    return served(tmp_path, access, clock=SystemClock())


def token_of(keycloak: KeycloakServer, client: str) -> str:
    """An access token of a program."""
    answer = httpx.post(
        f"{keycloak.issuer}/protocol/openid-connect/token",
        data={"grant_type": "client_credentials"},
        auth=(client, f"{client}-secret"),
    )
    return str(answer.json()["access_token"])


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
    right, foreign = (
        server.client.get(
            "/api/v1/me", headers={"Authorization": f"Bearer {token_of(keycloak, client)}"}
        )
        for client in ("loader", "other")
    )

    assert (right.status_code, right.json()["proof"]) == (200, "bearer")
    assert foreign.status_code == 401


def test_a_program_drives_the_whole_life_of_a_project(
    keycloak: KeycloakServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    token = token_of(keycloak, "loader")
    part = token.split(".")[1]
    subject = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"]
    root = made_shop(tmp_path, monkeypatch)
    (root / "access.yml").write_text(
        f"apiVersion: polynya/v1\nkind: access\nurl: {HOST}\n{oidc(keycloak, tmp_path)}"
        f'roles:\n  owner: [ann@example.com]\n  can_manage: ["oidc:{subject}"]\n'
    )
    app = app_of(ServerState(root, None, SystemClock()))
    guard(app, AccessSettings())

    with listening(app) as port:
        url = f"http://127.0.0.1:{port}"
        live(url, token)
        with pytest.raises(PolynyaError, match="names no person"):
            PolynyaClient(url).ask("GET", "/project")
