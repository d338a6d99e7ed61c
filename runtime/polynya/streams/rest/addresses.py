"""Addresses of an API: those of its resources, and which that it gives may be asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, unquote_plus, urlencode, urljoin, urlsplit

from polynya.model.config.http_connection import ApiKeyAuth, HttpConnection
from polynya.model.config.http_source import Scalar
from polynya.model.error_catalogue.http_sources import API_ADDRESS_REFUSED, SECRET_IN_ADDRESS
from polynya.model.names import shown

_PORTS = {"http": 80, "https": 443}
#: A shorter secret would be found by chance in any text.
_LEAST_SECRET = 6


@dataclass(frozen=True, slots=True)
class HttpOrigin:
    """Scheme, host and port of an address."""

    scheme: str
    host: str
    port: int


def origin_of(url: str) -> HttpOrigin:
    """The origin of an address. Raises ValueError when it is not one of http or https."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("it is not an address of http or https")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it has a user in it")
    if any(ord(sign) <= 32 or ord(sign) == 127 for sign in url):
        raise ValueError("it has a space or a control character")
    return HttpOrigin(parts.scheme, parts.hostname.lower(), parts.port or _PORTS[parts.scheme])


def place_of(url: str) -> str:
    """An address for messages: without its query, which may hold secrets."""
    return shown(urlsplit(url)._replace(query="", fragment="").geturl(), limit=200)


def address(base: str, path: str, parameters: Mapping[str, Scalar | tuple[Scalar, ...]]) -> str:
    """The address of a resource with its parameters."""
    query = with_parameters("", parameters)
    return f"{base}/{quote(path.lstrip('/'), safe='/%:@!$&()*+,;=~-._')}{query}"


def with_parameters(url: str, parameters: Mapping[str, Scalar | tuple[Scalar, ...]]) -> str:
    """An address with more parameters."""
    pairs = [
        (name, _text(one))
        for name, value in parameters.items()
        for one in (value if isinstance(value, tuple) else (value,))
    ]
    if not pairs:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs)}"


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_part(value: object) -> str | None:
    """A value of a record as a part of a path, None where it cannot be one."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    return None if text in {"", ".", ".."} else quote(text, safe="")


def redirected(connection: HttpConnection, url: str, location: str) -> tuple[str, bool]:
    """Where a redirect leads, and whether the login goes with it.

    Raises DependencyError POLYNYA-STR-105.
    """
    found = urljoin(url, location)
    there = _judged(connection, url, found)
    here = origin_of(url)
    return found, there.host == here.host and (
        there == here or (here.scheme, there.scheme) == ("http", "https")
    )


def followed(connection: HttpConnection, url: str, given: str) -> str:
    """The address of the next page as an answer gives it, as it may be kept in a position.

    Raises DependencyError POLYNYA-STR-105.
    """
    found = urljoin(url, given)
    _judged(connection, url, found)
    parts = urlsplit(found)
    auth = connection.auth
    if isinstance(auth, ApiKeyAuth) and auth.within == "query":
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        kept = [pair for pair in pairs if pair[0] != auth.name]
        if len(kept) != len(pairs):
            parts = parts._replace(query=urlencode(kept))
    return parts._replace(fragment="").geturl()


def _judged(connection: HttpConnection, url: str, found: str) -> HttpOrigin:
    try:
        there, here = origin_of(found), origin_of(url)
    except ValueError as error:
        raise API_ADDRESS_REFUSED(address=place_of(found), reason=error) from None
    base = origin_of(connection.url)
    if there.scheme == "http" and here.scheme == "https":
        raise API_ADDRESS_REFUSED(address=place_of(found), reason="it leads from https to http")
    allowed = {host.lower() for host in connection.allowed_hosts}
    own = there.host == base.host and (
        there.port == base.port or (there.scheme, there.port) == ("https", _PORTS["https"])
    )
    if not own and there.host not in allowed:
        raise API_ADDRESS_REFUSED(
            address=place_of(found), reason=f"it is not at {shown(base.host)}:{base.port}"
        )
    return there


def refuse_secret(text: str, secrets: Iterable[str]) -> None:
    """Refuse the place of a page that holds a secret. Raises DependencyError POLYNYA-STR-110."""
    spelled = (text, unquote(text), unquote_plus(text))
    for secret in secrets:
        if len(secret) >= _LEAST_SECRET and any(secret in one for one in spelled):
            error = SECRET_IN_ADDRESS()
            raise error


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text of a server for a message."""
    for secret in sorted(secrets, key=len, reverse=True):
        for spelled in {secret, quote(secret, safe=""), quote(secret)}:
            text = text.replace(spelled, "***") if spelled else text
    return text
