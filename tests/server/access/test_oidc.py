"""Login by OpenID Connect: the whole way with a mock provider, and hostile tokens."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from polynya.model.config.access import OidcLogin
from polynya.model.errors import PolynyaError, RefusedError
from polynya.server.access.oidc import OidcProvider, local_path
from polynya.store.clock import SystemClock
from polynya.store.http_client import HttpAnswer
from polynya.testing.fakes import FakeClock
from tests.server.access.logins import begin, cookies_of, finish, headers_of, log_in, query_of
from tests.server.access.served import HOST, ROLES, Served, served

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    patch = pytest.MonkeyPatch()
    patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    patch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    patch.setenv("OIDC", "client-secret")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from oidc_provider_mock import User, run_server_in_thread
    people = [
        User(sub="1", claims={"email": "Vera@Example.com", "email_verified": True}),
        User(sub="2", claims={"email": "ann@example.com", "email_verified": False}),
        User(sub="3", claims={"groups": ["analysts", 7], "email": "x@example.com"}),
    ]
    with run_server_in_thread(user_claims=people) as found:
        yield f"http://127.0.0.1:{found.server_port}"
    patch.undo()


def access_of(issuer: str) -> str:
    client = "client_id: polynya, client_secret: '${env:OIDC}'"
    return f"url: {HOST}\noidc: {{issuer: '{issuer}', {client}}}\n{ROLES}"


@pytest.fixture
def server(tmp_path: Path, issuer: str) -> Served:
    return served(tmp_path, access_of(issuer), clock=SystemClock())


def as_person(subject: str) -> Any:
    def provider(address: str) -> str:
        answer = httpx.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    return provider


def test_a_person_logs_in_acts_and_logs_out(server: Served):
    answer = log_in(server, as_person("1"))

    assert (answer.status_code, answer.headers["location"]) == (302, "/tasks")
    line = next(one for one in answer.headers.get_list("set-cookie") if "__Host-polynya=" in one)
    for part in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert part in line
    assert "Domain" not in line
    headers = headers_of(answer)
    me = server.client.get("/api/v1/me", headers=headers).json()
    assert (me["name"], me["proof"], me["roles"]) == ("vera@example.com", "session", ["can_view"])
    assert server.client.post("/api/v1/logout", headers=headers).status_code == 204
    assert server.client.get("/api/v1/project", headers=headers).status_code == 401
    logged = [(one.path, one.who, one.status) for one in server.control.audit.page(None, 10)]
    assert ("/api/v1/login/callback", "vera@example.com", 302) in logged


def test_a_mail_address_that_is_not_verified_is_nobodys(server: Served):
    me = server.client.get("/api/v1/me", headers=headers_of(log_in(server, as_person("2")))).json()

    assert (me["name"], me["roles"]) == ("oidc:2", [])


def test_groups_of_the_provider_have_roles(server: Served):
    me = server.client.get("/api/v1/me", headers=headers_of(log_in(server, as_person("3")))).json()

    assert (me["name"], me["roles"]) == ("oidc:3", ["can_consume"])


def test_a_login_sends_pkce_state_and_nonce_which_are_new_each_time(server: Served):
    one, other = (query_of(begin(server)[0]) for _ in range(2))

    assert one["code_challenge_method"] == "S256"
    assert one["redirect_uri"] == f"{HOST}/api/v1/login/callback"
    for name in ("code_challenge", "state", "nonce"):
        assert len(one[name]) == 43
        assert one[name] != other[name]


def test_a_login_counts_once_and_in_the_browser_that_began_it(server: Served):
    address, cookie = begin(server)
    back = as_person("1")(address)
    _, other = begin(server)

    foreign = finish(server, back, other)
    right = finish(server, back, cookie)
    again = finish(server, back, cookie)

    assert [one.status_code for one in (foreign, right, again)] == [400, 302, 400]
    assert "__Host-polynya" not in cookies_of(again)


def test_a_session_that_was_there_before_the_login_ends_with_it(server: Served):
    """Session fixation: the login gives a new cookie, and the old one is worth nothing."""
    old = headers_of(log_in(server, as_person("3")))
    address, cookie = begin(server)
    new = finish(server, as_person("1")(address), f"{cookie}; {old['Cookie']}")

    assert headers_of(new)["Cookie"] != old["Cookie"]
    assert server.client.get("/api/v1/project", headers=old).status_code == 401


def test_a_provider_that_refuses_and_one_that_is_away(server: Served, tmp_path: Path):
    refused = server.client.get("/api/v1/login/callback?error=access_denied&state=x")
    away = tmp_path / "away"
    away.mkdir()
    other = served(away, access_of("http://127.0.0.1:9"), clock=SystemClock())

    assert refused.json()["code"] == "POLYNYA-ACC-020"
    answer = other.client.get("/api/v1/login")
    assert (answer.status_code, answer.json()["code"]) == (503, "POLYNYA-ACC-021")


@pytest.mark.parametrize(
    "to",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)",
     "/a\r\nSet-Cookie: x=1", "\\/evil.example", "", "/%0d%0aX: y", "/ok?x=1"],
)  # fmt: skip
def test_a_login_leads_to_a_path_of_this_server_only(to: str):
    found = local_path(to)

    assert found.startswith("/")
    assert not found.startswith("//")
    assert not set(found) & set("\\\r\n \x00")
    assert (found == to) == (to in {"/ok?x=1"})


KEY = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
OTHER = RSAKey.generate_key(2048, {"kid": "k1"}, private=True)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LOGIN = OidcLogin(issuer="https://id.example.com", client_id="polynya", audience="polynya-api")


class Provider:
    """The answers of a provider, without a network."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys = [KEY.as_dict(private=False)]
        self.issuer = LOGIN.issuer

    def send(self, method: str, url: str, headers: object, fields: object = None) -> HttpAnswer:
        self.asked.append(url)
        found: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{LOGIN.issuer}/authorize",
            "token_endpoint": f"{LOGIN.issuer}/token",
            "jwks_uri": f"{LOGIN.issuer}/keys",
        }
        return HttpAnswer(
            200, {}, json.dumps({"keys": self.keys} if "keys" in url else found).encode()
        )


def claims(**more: Any) -> dict[str, Any]:
    seconds = int(NOW.timestamp())
    return {"iss": LOGIN.issuer, "aud": "polynya-api", "sub": "7", "iat": seconds,
            "exp": seconds + 300, **more}  # fmt: skip


def signed(values: dict[str, Any], key: Any = KEY, **header: Any) -> str:
    return jwt.encode({"alg": "RS256", "kid": "k1", **header}, values, key,
                      algorithms=["RS256", "HS256"])  # fmt: skip


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def signed_by_hand(secret: bytes) -> str:
    """A token whose signature is made with a public key as if it were a shared secret."""
    text = f"{encoded({'alg': 'HS256', 'kid': 'k1'})}.{encoded(claims())}"
    mac = hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def provider_of(network: Provider | None = None, clock: FakeClock | None = None) -> OidcProvider:
    http: Any = network or Provider()
    return OidcProvider(LOGIN, "https://x.de", clock or FakeClock(NOW), http=http)


def test_a_bearer_token_of_the_provider_is_a_person():
    values = claims(email="A@x.de", email_verified=True, groups=["ops"])

    found = provider_of().bearer(signed(values))

    assert found is not None
    assert (found.name, found.subjects) == ("a@x.de", {"a@x.de", "oidc:7", "group:ops"})


HOSTILE = {
    "no algorithm": f"{encoded({'alg': 'none', 'kid': 'k1'})}.{encoded(claims())}.",
    "the public key as a secret": signed_by_hand(KEY.as_pem(private=False)),
    "a key of another": signed(claims(), OTHER),
    "its own key in the header": signed(claims(), OTHER, jwk=OTHER.as_dict(private=False)),
    "an address of keys in the header": signed(claims(), OTHER, jku="https://evil.example/keys"),
    "expired": signed(claims(exp=int(NOW.timestamp()) - 61)),
    "of the future": signed(claims(nbf=int(NOW.timestamp()) + 61)),
    "issued in the future": signed(claims(iat=int(NOW.timestamp()) + 61)),
    "for another service": signed(claims(aud="other")),
    "an identity token": signed(claims(aud="polynya")),
    "of another issuer": signed(claims(iss="https://evil.example")),
    "without an end": signed({k: v for k, v in claims().items() if k != "exp"}),
    "cut off": signed(claims())[:-2],
    "changed": signed(claims()).replace(".", ".x", 1),
    "unknown critical header": ".".join(
        [encoded({"alg": "RS256", "crit": ["x"], "x": 1}), encoded(claims()), "x"]
    ),
    "no token": "a.b.c",
    "long": "a.b." + "c" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_token_is_nobody(name: str):
    assert provider_of().bearer(HOSTILE[name]) is None


def test_clocks_may_differ_by_a_minute():
    assert provider_of().bearer(signed(claims(exp=int(NOW.timestamp()) - 59))) is not None


def test_a_new_key_of_the_provider_is_found_and_unknown_ones_do_not_flood_it():
    network, clock = Provider(), FakeClock(NOW)
    provider = provider_of(network, clock)
    new = RSAKey.generate_key(2048, {"kid": "k2"}, private=True)
    assert provider.bearer(signed(claims())) is not None
    network.keys.append(new.as_dict(private=False))

    assert provider.bearer(signed(claims(), new, kid="k2")) is None
    clock.advance(timedelta(seconds=60))
    assert provider.bearer(signed(claims(exp=int(NOW.timestamp()) + 600), new, kid="k2"))
    for number in range(20):
        provider.bearer(signed(claims(), OTHER, kid=f"x{number}"))
    assert len(network.asked) == 4


def test_an_issuer_that_calls_itself_something_else_is_refused():
    network = Provider()
    network.issuer = "https://evil.example"

    with pytest.raises(PolynyaError) as refused:
        provider_of(network).begin("/")

    assert refused.value.code == "POLYNYA-ACC-021"


def test_an_answer_of_another_issuer_is_refused():
    provider = provider_of()
    begun = provider.begin("/")

    with pytest.raises(RefusedError) as refused:
        provider.finish(
            state=begun.state, browser_state=begun.state, code="c", issuer="https://e.vil"
        )

    assert "another issuer" in str(refused.value)
