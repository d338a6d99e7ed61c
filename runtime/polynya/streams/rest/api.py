"""Requests to an API: its login, redirects, rate limit and retries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Final

from polynya.model.config.connection import ProjectFile
from polynya.model.config.http_connection import HttpConnection
from polynya.model.error_catalogue.http_sources import (
    API_ADDRESS_REFUSED,
    API_ANSWER_UNUSABLE,
    API_BUSY,
    API_LOGIN_REFUSED,
    API_REFUSES,
    API_UNREACHABLE,
)
from polynya.model.error_catalogue.stream_sources import STREAM_SECRET_UNREADABLE
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.store.clock import Clock
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpAnswer,
    HttpClient,
    NoAnswerError,
)
from polynya.store.node_folders import SECRETS
from polynya.store.vault import Vault
from polynya.streams.rest.addresses import (
    origin_of,
    place_of,
    redirected,
    with_parameters,
    without_secrets,
)
from polynya.streams.rest.login import ApiLogin, Credentials

#: An agent waits so long for a server within a step; for longer it goes on with other work.
STEP_PATIENCE_SECONDS: Final = 10.0
#: A server that asks to wait for longer is asked again after this time.
_LONGEST_WAIT_SECONDS: Final = 86_400.0
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 10.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_SHOWN_ANSWER: Final = 200


@dataclass(frozen=True, slots=True)
class _Again:
    """Why a request is sent again; `wait` is what the server asked for, in seconds."""

    reason: str
    wait: float | None = None
    status: int = 0


class Api:
    """Asks an API. Usable from many threads, which share its rate limit and its login."""

    def __init__(
        self,
        connection: HttpConnection,
        client: HttpClient,
        vault: Vault,
        clock: Clock,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._connection, self._client, self._clock = connection, client, clock
        self._login = ApiLogin(connection, client, vault, clock)
        self._draw = draw
        self._lock = threading.Lock()
        self._next_request = 0.0
        self._not_before = 0.0
        self._secrets: tuple[str, ...] = ()

    @property
    def connection(self) -> HttpConnection:
        """How it is reached."""
        return self._connection

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets of the newest request, which no text may show."""
        return self._secrets

    def get(self, url: str, *, patience: float) -> HttpAnswer:
        """The answer to a request, with a status of 2xx or 4xx.

        Args:
            url: address, without the login.
            patience: how long to wait at most when the server says when to come back, in seconds.

        Raises:
            DependencyError: POLYNYA-STR-100 to -105, or -090 for a secret.
        """
        where, retries = place_of(url), self._connection.retries
        credentials = self._credentials()
        renewed = False
        attempt = 1
        while True:
            self._pace(patience, where)
            answer = self._judged(partial(self._followed, url, credentials), where)
            if isinstance(answer, HttpAnswer):
                if answer.status != 401:
                    return answer
                again = None if renewed else self._renewed(credentials)
                if again is None:
                    return answer
                renewed, credentials = True, again
                continue
            self._wait(answer, attempt, retries.attempts, patience, where)
            attempt += 1

    def post(self, url: str, value: object, *, patience: float) -> HttpAnswer:
        """The answer to a value that is sent as JSON, which may be sent again; see `get`.

        No redirect is followed.
        """
        where, retries = place_of(url), self._connection.retries
        attempt = 1
        while True:
            self._pace(patience, where)
            answer = self._judged(partial(self._sent, url, value, self._credentials()), where)
            if isinstance(answer, HttpAnswer):
                return answer
            self._wait(answer, attempt, retries.attempts, patience, where)
            attempt += 1

    def refusal(self, url: str, answer: HttpAnswer) -> PolynyaError:
        """The error of an answer 3xx or 4xx."""
        said = without_secrets(answer.body.decode("utf-8", "replace").strip(), self._secrets)
        why = f"it says {shown(said, limit=_SHOWN_ANSWER)}" if said else None
        entry = API_LOGIN_REFUSED if answer.status in {401, 403} else API_REFUSES
        return entry(where=place_of(url), status=answer.status, why=why)

    def _credentials(self) -> Credentials:
        credentials = self._login.credentials()
        self._secrets = credentials.secrets
        return credentials

    def _renewed(self, refused: Credentials) -> Credentials | None:
        credentials = self._login.renewed(refused)
        if credentials is not None:
            self._secrets = (*credentials.secrets, *refused.secrets)
        return credentials

    def _sent(self, url: str, value: object, credentials: Credentials) -> HttpAnswer:
        sent = with_parameters(url, dict(credentials.parameters))
        headers = {"Accept": "application/json", **credentials.headers}
        return self._client.send_json("POST", sent, headers, value)

    def _judged(self, ask: Callable[[], HttpAnswer], where: str) -> HttpAnswer | _Again:
        """The answer, or why it is asked for again."""
        try:
            answer = ask()
        except NoAnswerError as error:
            return _Again(str(error))
        except AnswerTooLargeError as error:
            raise API_ANSWER_UNUSABLE(where=where, reason=error) from None
        except ForbiddenAddressError as error:
            raise API_ADDRESS_REFUSED(where=where, address=where, reason=error) from None
        if answer.status == 429 or answer.status >= 500:
            wait = retry_after(answer.header("Retry-After"), self._clock.now())
            return _Again(f"it answers {answer.status}", wait, answer.status)
        return answer

    def _followed(self, url: str, credentials: Credentials) -> HttpAnswer:
        """The answer after redirects. The login stays behind where one leads to another host."""
        for _ in range(_MOST_REDIRECTS + 1):
            asked = with_parameters(url, dict(credentials.parameters))
            headers = {"Accept": "application/json", **credentials.headers}
            answer = self._client.get(asked, headers)
            location = answer.header("Location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            url, is_own = redirected(self._connection, url, location)
            if not is_own:
                credentials = replace(credentials, headers={}, parameters={})
        raise API_ADDRESS_REFUSED(
            address=place_of(url), reason=f"more than {_MOST_REDIRECTS} redirects lead there"
        )

    def _pace(self, patience: float, where: str) -> None:
        """Wait until a request may be sent."""
        limit = self._connection.rate_limit
        with self._lock:
            now = self._clock.monotonic()
            wait = self._not_before - now
            if wait > patience:
                raise API_BUSY(where=where, seconds=wait, status=429)
            begin = max(now, self._not_before, self._next_request)
            if limit is not None:
                self._next_request = begin + limit.per.total_seconds() / limit.requests
        if begin > now:
            self._clock.sleep(begin - now)

    def _wait(
        self, again: _Again, attempt: int, attempts: int, patience: float, where: str
    ) -> None:
        """Wait before the next attempt. Raises DependencyError where there is none."""
        if again.wait is not None and again.wait > 0:
            with self._lock:
                self._not_before = max(self._not_before, self._clock.monotonic() + again.wait)
            if again.wait > patience or attempt >= attempts:
                raise API_BUSY(where=where, seconds=again.wait, status=again.status)
            return
        if attempt >= attempts:
            raise API_UNREACHABLE(where=where, reason=again.reason)
        self.pause(attempt)

    def pause(self, attempt: int) -> None:
        """Wait after an attempt, from 1; full jitter, as in `Retry`."""
        limit = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
        self._clock.sleep(limit * self._draw())


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds that the header `Retry-After` asks to wait: a number, or a date (RFC 9110)."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), _LONGEST_WAIT_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0.0, (moment - now).total_seconds()), _LONGEST_WAIT_SECONDS)


def open_api(connection: HttpConnection, vault: Vault, clock: Clock) -> Api:
    """What asks the API of a connection. Raises DependencyError when `ca` cannot be read."""
    place: Path | None = None
    if isinstance(connection.ca, ProjectFile):
        place = Path(connection.ca)
    elif connection.ca is not None:
        place = SECRETS.below(connection.ca)
        if place is None:
            raise STREAM_SECRET_UNREADABLE(where=connection.ca, why=SECRETS.outside())
    try:
        client = HttpClient(
            timeout=connection.timeout.total_seconds(),
            max_bytes=connection.max_response,
            ca=place,
        )
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise STREAM_SECRET_UNREADABLE(where=connection.ca, why=why) from None
    # Refused here rather than at each request.
    origin_of(connection.url)
    return Api(connection, client, vault, clock)
