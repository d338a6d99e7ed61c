"""The login of an API: what each request carries, and a new one when the API no longer takes it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from pydantic import SecretStr

from polynya.model.config.http_connection import (
    ApiKeyAuth,
    BasicAuth,
    BearerAuth,
    ClientCredentialsAuth,
    HttpConnection,
    is_secret_header,
)
from polynya.model.error_catalogue.http_sources import API_LOGIN_REFUSED, API_UNREACHABLE
from polynya.store.clock import Clock
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpAnswer,
    HttpClient,
    NoAnswerError,
)
from polynya.store.vault import Vault
from polynya.streams.rest.addresses import place_of

#: A token that says nothing of its end is used for so long, in seconds (RFC 6749 leaves it open).
_USUAL_SECONDS: Final = 300.0
#: A token is renewed so long before its end, at most half of its life.
_MARGIN_SECONDS: Final = 30.0
_MOST_TOKEN: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request carries: headers, parameters, and the texts that no message may show."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    ends: float


class ApiLogin:
    """Gives the credentials of a connection. Usable from many threads."""

    def __init__(
        self, connection: HttpConnection, client: HttpClient, vault: Vault, clock: Clock
    ) -> None:
        self._connection, self._client = connection, client
        self._vault, self._clock = vault, clock
        self._token: _Token | None = None
        self._lock = threading.Lock()

    def credentials(self) -> Credentials:
        """What the next request carries.

        Raises DependencyError: a secret cannot be read, or the token endpoint gives no token.
        """
        secrets: list[str] = []

        def opened(setting: SecretStr) -> str:
            found = self._vault.open(setting.get_secret_value())
            secrets.extend(found.secrets)
            return _one_line(found.text)

        headers = {name: opened(value) for name, value in self._connection.headers.items()}
        secrets += [text for name, text in headers.items() if is_secret_header(name)]
        parameters: dict[str, str] = {}
        match self._connection.auth:
            case BearerAuth(token=token):
                text = opened(token)
                secrets.append(text)
                headers["Authorization"] = f"Bearer {text}"
            case BasicAuth(user=user, password=password):
                name, text = opened(user), opened(password)
                pair = _pair(name, text)
                secrets += [text, pair]
                headers["Authorization"] = f"Basic {pair}"
            case ApiKeyAuth(name=name, value=value, within=within):
                text = opened(value)
                secrets.append(text)
                (headers if within == "header" else parameters)[name] = text
            case ClientCredentialsAuth() as auth:
                client, secret = opened(auth.client_id), opened(auth.client_secret)
                text = self._access_token(auth, client, secret)
                secrets += [secret, _pair(quote(client, safe=""), quote(secret, safe="")), text]
                headers["Authorization"] = f"Bearer {text}"
            case None:
                pass
        return Credentials(headers, parameters, tuple(secret for secret in secrets if secret))

    def renewed(self, refused: Credentials) -> Credentials | None:
        """Other credentials than those that were refused, None where there are no others.

        Raises as `credentials`.
        """
        with self._lock:
            if self._token is not None and self._token.text in refused.secrets:
                self._token = None
        again = self.credentials()
        same = (again.headers, again.parameters) == (refused.headers, refused.parameters)
        return None if same else again

    def _access_token(self, auth: ClientCredentialsAuth, client: str, secret: str) -> str:
        with self._lock:
            token = self._token
            if token is None or self._clock.monotonic() >= token.ends:
                token = self._token = self._asked(auth, client, secret)
            return token.text

    def _asked(self, auth: ClientCredentialsAuth, client: str, secret: str) -> _Token:
        fields = {"grant_type": "client_credentials", **auth.parameters}
        if auth.scope is not None:
            fields["scope"] = auth.scope
        headers = {"Accept": "application/json"}
        if auth.client_in == "body":
            fields |= {"client_id": client, "client_secret": secret}
        else:
            # RFC 6749 section 2.3.1: both are encoded as in a form first.
            pair = _pair(quote(client, safe=""), quote(secret, safe=""))
            headers["Authorization"] = f"Basic {pair}"
        where = place_of(auth.token_url)
        now = self._clock.monotonic()
        try:
            answer = self._client.post_form(auth.token_url, headers, fields)
        except (NoAnswerError, AnswerTooLargeError, ForbiddenAddressError) as error:
            reason = f"no token: {error}"
            raise API_UNREACHABLE(where=where, reason=reason) from None
        if answer.status == 429 or answer.status >= 500:
            reason = f"no token: the token endpoint answers {answer.status}"
            raise API_UNREACHABLE(where=where, reason=reason)
        return _token_of(answer, now, where)


def _token_of(answer: HttpAnswer, now: float, where: str) -> _Token:
    """The token in an answer (RFC 6749 section 5.1). Raises DependencyError POLYNYA-STR-102."""
    try:
        said = json.loads(answer.body)
        text, life = said["access_token"], said.get("expires_in")
        seconds = _USUAL_SECONDS if life is None else float(life)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text, seconds = None, 0.0
    if answer.status != 200 or not isinstance(text, str) or not 0 < len(text) <= _MOST_TOKEN:
        # What the endpoint says besides may repeat what it was sent.
        raise API_LOGIN_REFUSED(
            where=where, status=answer.status, why="the token endpoint gives no token"
        )
    seconds = max(0.0, seconds - min(_MARGIN_SECONDS, seconds / 2))
    return _Token(_one_line(text), now + seconds)


def _pair(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def _one_line(text: str) -> str:
    """A text for a header: what breaks a line could begin another header."""
    return "".join(sign for sign in text if sign.isprintable())
