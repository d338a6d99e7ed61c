"""A proxy between one node and the object store, which loses, delays and misreports requests."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, TypeAlias
from urllib.parse import urlsplit

Headers: TypeAlias = list[tuple[str, str]]

_SLOW_SECONDS: Final = (0.3, 3.0)
#: What belongs to one connection and not to the message (RFC 9110, 7.6.1).
_OF_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "server", "date"}
)


class Fate(StrEnum):
    """What becomes of a request."""

    FINE = "answered"
    LOST = "request lost"
    REFUSED = "503, nothing done"
    APPLIED = "applied, answer lost"
    SLOW = "slow"


@dataclass
class Proxy:
    """What the proxy of one node does. `rate` is the part of the requests that something befalls.

    Attributes:
        address: its URL.
        store: URL of the store.
        cut: the node reaches nothing.
        rate: 0 to 1.
        fates: what befell requests so far.
    """

    address: str
    store: str
    dice: random.Random
    cut: bool = False
    rate: float = 0.0
    fates: Counter[Fate] = field(default_factory=Counter)
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def fate(self) -> Fate:
        """What becomes of the next request."""
        with self._alone:
            found = Fate.FINE
            if self.cut:
                found = Fate.LOST
            elif self.dice.random() < self.rate:
                found = self.dice.choice([Fate.LOST, Fate.REFUSED, Fate.APPLIED, Fate.SLOW])
            self.fates[found] += 1
            return found


@contextmanager
def proxied(store: str, seed: int) -> Iterator[Proxy]:
    """A proxy on a loopback address, until the end of the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}", store, random.Random(seed))
    _Handler.proxies[server.server_port] = proxy
    serve = threading.Thread(target=server.serve_forever, args=(0.05,), name="proxy", daemon=True)
    serve.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        serve.join()
        del _Handler.proxies[server.server_port]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_given: object) -> None:
        """Say nothing: a process that was killed hangs up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: The proxies of this process, by port.
    proxies: Final[dict[int, Proxy]] = {}

    def _any(self) -> None:
        proxy = self.proxies[self.server.server_address[1]]  # type: ignore[index]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fate = proxy.fate()
        if fate is Fate.LOST:
            self._hang_up()
            return
        if fate is Fate.REFUSED:
            self._answer(503, [("Content-Type", "text/plain")], b"")
            return
        if fate is Fate.SLOW:
            time.sleep(proxy.dice.uniform(*_SLOW_SECONDS))
        answer = self._forwarded(proxy.store, body)
        # A black-out that begins meanwhile loses the answer, too.
        if fate is Fate.APPLIED or proxy.cut or answer is None:
            self._hang_up()
            return
        self._answer(*answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _any

    def _forwarded(
        self, store: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes] | None:
        place = urlsplit(store)
        assert place.hostname is not None
        line = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        try:
            line.request(self.command, self.path, body=body, headers=headers)
            found = line.getresponse()
            return found.status, found.getheaders(), found.read()
        except OSError:
            return None
        finally:
            line.close()

    def _answer(self, status: int, headers: Headers, data: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in {*_OF_CONNECTION, "content-length"}:
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length")
            told = length if self.command == "HEAD" and length else str(len(data))
            self.send_header("Content-Length", told)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)
        except OSError:
            # Whoever asked was killed.
            self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_given: object) -> None:
        """Say nothing."""
