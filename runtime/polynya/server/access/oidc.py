"""Login by OpenID Connect: authorization code with PKCE, state and nonce; bearer tokens.

OpenID Connect Core 1.0, RFC 7636 (PKCE), RFC 9207 (issuer in the answer), RFC 9700 (best practice).
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from polynya.model.config.access import OidcLogin
from polynya.model.error_catalogue.access import LOGIN_FAILED, PROVIDER_UNREACHABLE
from polynya.store.clock import Clock
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpAnswer,
    HttpClient,
    NoAnswerError,
)
from polynya.store.node_folders import LOCAL_APIS
from polynya.store.vault import vault

#: Signatures that are taken; none of them has a key that both sides know.
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "EdDSA",
)
#: Seconds in which a login has to come back.
LOGIN_SECONDS: Final = 600.0
_MAX_LOGINS: Final = 10_000
#: Seconds for which settings and keys of the provider are used.
_FRESH_SECONDS: Final = 3600.0
#: An unknown key makes the server ask again, at most once in so many seconds.
_AGAIN_SECONDS: Final = 60.0
_TIMEOUT_SECONDS: Final = 10.0
_MAX_ANSWER_BYTES: Final = 512 * 1024
_MAX_JWT_BYTES: Final = 16 * 1024
_MAX_GROUPS: Final = 500
_CALLBACK: Final = "/api/v1/login/callback"


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """A person as the provider knows them: a name, and all names that `access.yml` may list."""

    name: str
    subjects: frozenset[str]


@dataclass(frozen=True, slots=True)
class BegunLogin:
    """A login that was begun: where the browser goes, and what it has to come back with."""

    address: str
    state: str


@dataclass(frozen=True, slots=True)
class _Pending:
    nonce: str
    verifier: str
    to: str
    at: float
    issuer: str


@dataclass(slots=True)
class _Provider:
    settings: Mapping[str, Any]
    keys: KeySet
    at: float


def local_path(text: str) -> str:
    """Where to go after a login: a path of this server, `/` for anything else."""
    right = (
        re.fullmatch(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,500}", text) is not None
        and not text.startswith("//")
        and not urlsplit(text).netloc
    )
    return text if right else "/"


def identity_of(claims: Mapping[str, Any], login: OidcLogin) -> ProviderIdentity:
    """The names in verified claims. A mail address counts only if the provider has verified it."""
    subject = str(claims["sub"])
    names = {f"oidc:{subject}"}
    mail = claims.get("email")
    verified = claims.get("email_verified") is True and isinstance(mail, str)
    if verified:
        names.add(str(mail).lower())
    groups = claims.get(login.groups_claim)
    listed = groups if isinstance(groups, list) else []
    names |= {f"group:{one}" for one in listed[:_MAX_GROUPS] if isinstance(one, str)}
    return ProviderIdentity(str(mail).lower() if verified else f"oidc:{subject}", frozenset(names))


class OidcProvider:
    """The provider of an access document. Usable from many threads."""

    def __init__(
        self,
        login: OidcLogin,
        url: str,
        clock: Clock,
        *,
        http: HttpClient | None = None,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self.login, self._url, self._clock, self._random = login, url, clock, random
        self._http = http or HttpClient(timeout=_TIMEOUT_SECONDS, max_bytes=_MAX_ANSWER_BYTES)
        self._pending: dict[str, _Pending] = {}
        self._known: _Provider | None = None
        self._lock = threading.Lock()

    @property
    def callback(self) -> str:
        """Where the provider sends browsers back to."""
        return f"{self._url}{_CALLBACK}"

    def begin(self, to: str) -> BegunLogin:
        """Begin a login. Raises PROVIDER_UNREACHABLE."""
        settings = self._provider().settings
        state, nonce, verifier = self._random(32), self._random(32), self._random(64)
        now = self._clock.monotonic()
        with self._lock:
            for old in [k for k, one in self._pending.items() if now - one.at > LOGIN_SECONDS]:
                del self._pending[old]
            if len(self._pending) >= _MAX_LOGINS:
                raise LOGIN_FAILED(reason="too many logins are under way").by(503, Retry_After="60")
            self._pending[state] = _Pending(
                nonce, verifier, local_path(to), now, str(settings["issuer"])
            )
        query = {
            "response_type": "code",
            "client_id": self.login.client_id,
            "redirect_uri": self.callback,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": create_s256_code_challenge(verifier),
            "code_challenge_method": "S256",
        }
        place = str(settings["authorization_endpoint"])
        return BegunLogin(f"{place}{'&' if '?' in place else '?'}{urlencode(query)}", state)

    def finish(
        self, *, state: str, browser_state: str, code: str, issuer: str | None
    ) -> tuple[ProviderIdentity, str]:
        """Finish a login: the person, and where to go. A state is good for one attempt.

        Args:
            state: as the provider gives it back.
            browser_state: as the browser that began the login has it in its cookie.
            code: the code of the provider.
            issuer: `iss` of the answer, None if it has none.

        Raises:
            RefusedError: POLYNYA-ACC-020.
            DependencyError: POLYNYA-ACC-021.
        """
        if not hmac.compare_digest(state.encode(), browser_state.encode()):
            raise LOGIN_FAILED(reason="another browser began it").by(400)
        with self._lock:
            pending = self._pending.pop(state, None)
        if pending is None or self._clock.monotonic() - pending.at > LOGIN_SECONDS:
            raise LOGIN_FAILED(reason="it is unknown, used or too old").by(400)
        if issuer is not None and issuer != pending.issuer:
            raise LOGIN_FAILED(reason="another issuer answered").by(400)
        claims = self._verified(self._exchanged(code, pending.verifier), self.login.client_id)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), pending.nonce.encode()):
            raise LOGIN_FAILED(reason="its nonce is another one").by(400)
        party = claims.get("azp")
        if party is not None and party != self.login.client_id:
            raise LOGIN_FAILED(reason="it was made for another client").by(400)
        return identity_of(claims, self.login), pending.to

    def bearer(self, token: str) -> ProviderIdentity | None:
        """The person of a bearer token of the provider, None if it is not right."""
        if self.login.audience is None or token.count(".") != 2 or len(token) > _MAX_JWT_BYTES:
            return None
        try:
            claims = self._verified(token, self.login.audience)
        except LOGIN_FAILED.raises:
            return None
        return identity_of(claims, self.login)

    def _exchanged(self, code: str, verifier: str) -> str:
        """The identity token for a code."""
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.callback,
            "code_verifier": verifier,
            "client_id": self.login.client_id,
        }
        headers: dict[str, str] = {"Accept": "application/json"}
        if self.login.client_secret is not None:
            secret = vault().open(self.login.client_secret.get_secret_value()).text
            pair = urlencode({self.login.client_id: secret}).replace("=", ":", 1)
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            del fields["client_id"]
        settings = self._provider().settings
        answer = self._asked("POST", str(settings["token_endpoint"]), headers, fields)
        if answer.status != 200:
            raise LOGIN_FAILED(reason="the provider did not take the code").by(400)
        token = _object(answer).get("id_token")
        if not isinstance(token, str) or len(token) > _MAX_JWT_BYTES:
            raise LOGIN_FAILED(reason="the provider sent no identity").by(400)
        return token

    def _verified(self, token: str, audience: str) -> Mapping[str, Any]:
        """The claims of a token that is right. Raises LOGIN_FAILED."""
        provider = self._provider(_key_id(token))
        skew = int(self.login.skew.total_seconds())
        rules = jwt.JWTClaimsRegistry(
            now=int(self._clock.now().timestamp()),
            leeway=skew,
            iss={"essential": True, "value": str(provider.settings["issuer"])},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            aud={"essential": True, "value": audience},
        )
        try:
            # `jku`, `jwk` and `x5u` of a token choose no key: all keys are the issuer's.
            found = jwt.decode(token, provider.keys, algorithms=list(ALGORITHMS))
            rules.validate(found.claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise LOGIN_FAILED(reason=f"its token is not right: {type(error).__name__}").by(
                400
            ) from None
        return found.claims

    def _provider(self, key_id: str | None = None) -> _Provider:
        """The settings and keys of the provider, read again for a key that is not among them."""
        with self._lock:
            known, now = self._known, self._clock.monotonic()
            age = None if known is None else now - known.at
            if known is not None and age is not None and age < _FRESH_SECONDS:
                unknown = key_id is not None and key_id not in {one.kid for one in known.keys.keys}
                if not unknown or age < _AGAIN_SECONDS:
                    return known
            self._known = _Provider(*self._read(), now)
            return self._known

    def _read(self) -> tuple[Mapping[str, Any], KeySet]:
        issuer = self.login.issuer.rstrip("/")
        place = f"{issuer}/.well-known/openid-configuration"
        settings = _object(self._asked("GET", _safe(place)))
        if str(settings.get("issuer", "")).rstrip("/") != issuer:
            raise PROVIDER_UNREACHABLE(where=issuer, reason="its settings name another issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _safe(str(settings.get(name, "")))
        found = _object(self._asked("GET", str(settings["jwks_uri"]))).get("keys")
        signing = [
            one
            for one in (found if isinstance(found, list) else [])
            if isinstance(one, dict)
            and one.get("use", "sig") == "sig"
            and one.get("kty") in {"RSA", "EC", "OKP"}
        ]
        try:
            keys = KeySet.import_key_set({"keys": signing})
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise PROVIDER_UNREACHABLE(where=issuer, reason="its keys are not usable") from error
        return settings, keys

    def _asked(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        try:
            answer = self._http.send(method, url, headers or {}, fields)
        except (NoAnswerError, AnswerTooLargeError, ForbiddenAddressError) as error:
            host = urlsplit(url).hostname or url
            raise PROVIDER_UNREACHABLE(where=host, reason=str(error)) from None
        if method == "GET" and answer.status != 200:
            host = urlsplit(url).hostname or url
            raise PROVIDER_UNREACHABLE(where=host, reason=f"it answers {answer.status}")
        return answer


def _safe(url: str) -> str:
    """An address of the provider: HTTPS, or on this machine where that is allowed by name."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme != "https" and not (parts.scheme == "http" and LOCAL_APIS.holds(host)):
        raise PROVIDER_UNREACHABLE(where=host or None, reason="its address is not HTTPS")
    return url


def _object(answer: HttpAnswer) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(answer.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PROVIDER_UNREACHABLE(reason="its answer is not a JSON object")
    return found


def _key_id(token: str) -> str | None:
    """The `kid` of a token, which only chooses among keys of the issuer."""
    head = token.partition(".")[0]
    try:
        header: Any = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except ValueError:
        return None
    found = header.get("kid") if isinstance(header, dict) else None
    return found if isinstance(found, str) else None
