"""Deadlines of connections, with real sockets: slow clients are closed, others are not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.server.listening import listening

HEAD = 0.3


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", b"2")]})  # fmt: skip
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with listening(app, head_seconds=HEAD, body_seconds=HEAD) as found:
        yield found


def dripped(port: int, begin: bytes, drop: bytes) -> float:
    """Seconds until the server closes a connection that sends a little every now and then."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.settimeout(0.05)
        client.sendall(begin)
        while time.monotonic() - began < 5:
            try:
                if client.recv(100) == b"":
                    break
            except TimeoutError:
                pass
            except OSError:
                break
            try:
                client.sendall(drop)
            except OSError:
                break
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: 1\r\n"),
        (b"G", b"E"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_a_client_that_sends_a_little_now_and_then_is_closed(port: int, begin: bytes, drop: bytes):
    assert dripped(port, begin, drop) < 3


def test_a_second_request_on_a_connection_has_a_deadline_of_its_own(port: int):
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        for _ in range(4):
            client.sendall(request)
            found = b""
            while not found.endswith(b"ok"):
                found += client.recv(1000)
            assert b"200 OK" in found
            time.sleep(HEAD / 2)
        client.sendall(b"GET / HTTP/1.1\r\n")
        client.settimeout(3)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""


def test_headers_have_a_limit_of_size(port: int):
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000)
        answer = client.recv(1000)

    assert answer.startswith(b"HTTP/1.1 400")
