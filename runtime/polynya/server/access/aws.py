"""IAM identities as logins: a request to STS, signed by the caller, that the server sends on.

The caller signs `GetCallerIdentity` in advance (Signature Version 4, as a URL) and sends the URL as
a bearer token. AWS checks the signature and says whose it is, as Vault's IAM method and EKS do it.
The name of the server is among the signed headers, so that no other server can use the URL.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from polynya.model.config.access import AwsLogin
from polynya.server.access.records import digest
from polynya.store.clock import Clock
from polynya.store.http_client import (
    AnswerTooLargeError,
    ForbiddenAddressError,
    HttpClient,
    NoAnswerError,
)

#: Beginning of a bearer token that is a signed request.
PREFIX: Final = "polynya-aws-v1."
#: The signed header with the name of the server.
SERVER_HEADER: Final = "x-polynya-server-id"
#: Longest life of a signed request.
MOST_SECONDS: Final = 900
_SKEW: Final = timedelta(minutes=5)
_KEPT_SECONDS: Final = 60.0
_MAX_BYTES: Final = 8 * 1024
_MAX_KEPT: Final = 1000
_PARAMETERS: Final = frozenset(
    {
        "Action",
        "Version",
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
        "X-Amz-Security-Token",
    }
)
_ASSUMED: Final = re.compile(
    r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([A-Za-z0-9+=,.@_-]{1,64})/\S{1,128}"
)
_USER: Final = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):user/[A-Za-z0-9+=,.@_/-]{1,512}")

#: Asks STS at a URL with headers: status and body.
AskSts = Callable[[str, dict[str, str]], tuple[int, bytes]]


def principal(arn: str) -> tuple[str, str] | None:
    """The account and the name for `access.yml` of a caller; None for one that is no role or user.

    A session of a role is the role: `aws:arn:aws:iam::111122223333:role/loader`. AWS names roles of
    a path without it.
    """
    if found := _ASSUMED.fullmatch(arn):
        return found[2], f"aws:arn:{found[1]}:iam::{found[2]}:role/{found[3]}"
    if found := _USER.fullmatch(arn):
        return found[2], f"aws:{arn}"
    return None


def refused_url(url: str, login: AwsLogin, now: datetime) -> str | None:
    """Why a signed request is not sent on, None if it may be.

    The server sends nothing but `GetCallerIdentity`, and to STS only.
    """
    parts = urlsplit(url)
    hosts = {f"sts.{region}.amazonaws.com" for region in login.regions}
    hosts |= {f"{host}.cn" for host in hosts if ".cn-" in host}
    if parts.scheme != "https" or parts.netloc not in hosts or parts.path not in {"", "/"}:
        return "it is not for STS of a region that the settings name"
    pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
    query = dict(pairs)
    if parts.fragment or len(query) != len(pairs) or not _PARAMETERS.issuperset(query):
        return "it has more than a signature needs"
    if query.get("Action") != "GetCallerIdentity" or query.get("Version") != "2011-06-15":
        return "it asks for something else"
    signed = set(query.get("X-Amz-SignedHeaders", "").lower().split(";"))
    if signed != {"host", SERVER_HEADER}:
        return "it does not sign the name of the server"
    try:
        at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        life = int(query["X-Amz-Expires"])
    except (KeyError, ValueError):
        return "its times cannot be read"
    if not 0 < life <= MOST_SECONDS:
        return f"it lives longer than {MOST_SECONDS} s"
    if at > now + _SKEW or now >= at + timedelta(seconds=life):
        return "it has expired, or is of the future"
    return None


class AwsIdentities:
    """Callers by their signed requests. Usable from many threads."""

    def __init__(self, login: AwsLogin, clock: Clock, ask: AskSts | None = None) -> None:
        self._login, self._clock, self._ask = login, clock, ask or _ask_sts
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def find(self, token: str) -> str | None:
        """The name of a caller as `access.yml` has it, None if the token is not right."""
        url = _url_of(token)
        if url is None:
            return None
        try:
            refused = refused_url(url, self._login, self._clock.now())
        except ValueError:
            return None
        if refused is not None:
            return None
        key, now = digest(token), self._clock.monotonic()
        with self._lock:
            at, name = self._known.get(key, (None, ""))
        if at is not None and now - at < _KEPT_SECONDS:
            return name
        found = self._asked(url)
        if found is None or found[0] not in self._login.accounts:
            return None
        with self._lock:
            if len(self._known) >= _MAX_KEPT:
                self._known.clear()
            self._known[key] = now, found[1]
        return found[1]

    def _asked(self, url: str) -> tuple[str, str] | None:
        headers = {SERVER_HEADER: self._login.server_id, "Accept": "application/json"}
        try:
            status, body = self._ask(url, headers)
            answer: Any = json.loads(body) if status == 200 else None
            result = answer["GetCallerIdentityResponse"]["GetCallerIdentityResult"]
            return principal(str(result["Arn"]))
        except (NoAnswerError, AnswerTooLargeError, ForbiddenAddressError):
            return None
        except (ValueError, KeyError, TypeError):
            return None


def _url_of(token: str) -> str | None:
    encoded = token.removeprefix(PREFIX)
    if encoded == token or len(token) > _MAX_BYTES:
        return None
    try:
        data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        return data.decode("ascii")
    except ValueError:
        return None


def token_of(url: str) -> str:
    """The bearer token of a signed request."""
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def _ask_sts(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    answer = HttpClient(timeout=10, max_bytes=64 * 1024).get(url, headers)
    return answer.status, answer.body
