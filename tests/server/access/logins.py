"""A browser that logs in, for tests with providers of logins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.server.access.served import HOST, Served

#: From the address of the provider to where it sends the browser afterwards.
Provider = Callable[[str], str]


def cookies_of(answer: httpx.Response) -> dict[str, str]:
    """The cookies that an answer sets; one that it deletes is ""."""
    found: SimpleCookie = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        found.load(line)
    return {name: one.value for name, one in found.items()}


def begin(server: Served, to: str = "/tasks") -> tuple[str, str]:
    """Where a login goes, and the cookie that ties it to the browser."""
    answer = server.client.get("/api/v1/login", params={"to": to})
    assert answer.status_code == 302, answer.text
    [pair] = cookies_of(answer).items()
    return answer.headers["location"], "=".join(pair)


def finish(server: Served, back: str, cookie: str) -> httpx.Response:
    """Go back to the server as the provider says."""
    parts = urlsplit(back)
    assert f"{parts.scheme}://{parts.netloc}" == HOST
    return server.client.get(f"{parts.path}?{parts.query}", headers={"Cookie": cookie})


def log_in(server: Served, provider: Provider, to: str = "/tasks") -> httpx.Response:
    """Log in as a browser does; the answer of the server."""
    address, cookie = begin(server, to)
    return finish(server, provider(address), cookie)


def headers_of(answer: httpx.Response) -> dict[str, str]:
    """What the pages of the server send after this login."""
    value = cookies_of(answer)["__Host-polynya"]
    return {"Cookie": f"__Host-polynya={value}", "Origin": HOST, "X-Polynya-Request": "1"}


def query_of(address: str) -> Mapping[str, str]:
    """The parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
