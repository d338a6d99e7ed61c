"""The HTTP server of a served catalog: limits, times, who may ask.

Python's own server does the framing. What it leaves open is limited here: each connection has one
deadline for a whole request, bytes of a request are counted where they arrive, and threads are
few. It opens no file that a client names.
"""

from __future__ import annotations

import hmac
import io
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Final

from typing_extensions import override

from polynya.engine.rest_protocol import READ_ONLY, RestAnswer, RestError, RestRequest, bad_request
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.observe.catalog import CatalogAnswered, CatalogFailed
from polynya.observe.events import EventSink
from polynya.store.clock import Clock

#: Shortest token: 32 random bytes.
MIN_TOKEN_BYTES: Final = 32
#: Connections that are served at a time; others get status 503.
_MAX_THREADS: Final = 64
#: From so many on, a connection ends with its answer, so that quiet clients keep no thread.
_MANY_THREADS: Final = 32
#: Bytes of the first line and the headers of a request.
_MAX_HEAD_BYTES: Final = 32 * 1024
_MAX_LINE_BYTES: Final = 8 * 1024
_MAX_HEADERS: Final = 64
#: Bytes of a body that are read, only to be refused.
_MAX_BODY_BYTES: Final = 1024 * 1024
#: Seconds in which a whole request has to arrive, its TLS handshake included.
_REQUEST_SECONDS: Final = 10.0
#: Seconds in which an answer has to be taken.
_ANSWER_SECONDS: Final = 60.0
#: Seconds for which a connection waits for its next request.
_IDLE_SECONDS: Final = 15.0
#: Seconds for which a stop waits for answers that are under way.
_STOP_SECONDS: Final = 5.0
#: Tables whose failure was reported, and is not reported again.
_MAX_REPORTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class RestServerSettings:
    """Where the server listens, and whom it answers; None for everybody, without encryption."""

    host: str
    port: int
    token: str | None = None
    tls: ssl.SSLContext | None = None


class RestServer(ThreadingHTTPServer):
    """Listens from its construction on, and answers from `start` to `stop`.

    The construction raises OSError when the address cannot be used.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self,
        settings: RestServerSettings,
        answer: Callable[[RestRequest], RestAnswer],
        *,
        clock: Clock,
        sink: EventSink,
    ) -> None:
        self.settings, self.answer, self.clock, self.sink = settings, answer, clock, sink
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        self.address_family, _, _, _, address = found[0]
        self._free = threading.BoundedSemaphore(_MAX_THREADS)
        self._reported: set[tuple[str, str]] = set()
        self.lock = threading.Lock()
        self.busy = self.connections = 0
        self.is_local = settings.token is None
        self._hash = None if settings.token is None else sha256(settings.token.encode()).digest()
        super().__init__((str(address[0]), settings.port), _Connection)

    @property
    def url(self) -> str:
        """Where it answers: `http://127.0.0.1:8181`."""
        host = self.settings.host
        scheme = "https" if self.settings.tls is not None else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

    def start(self) -> None:
        """Answer from now on, in threads of their own."""
        threading.Thread(target=self.serve_forever, args=(0.1,), name="catalog").start()

    def stop(self) -> None:
        """Accept no connection any more, and wait a few seconds for answers under way."""
        self.shutdown()
        self.socket.close()
        ends = self.clock.monotonic() + _STOP_SECONDS
        while self.busy and self.clock.monotonic() < ends:
            self.clock.sleep(0.02)

    @override
    def server_bind(self) -> None:
        # HTTPServer looks the name of the machine up, which may take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.settings.host, self.server_address[1]

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            # A thread for a refusal would be one too many.
            request.settimeout(0)
            if self.settings.tls is None:
                with _ignored():
                    request.send(
                        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
                    )
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The machine has no thread left.
            self._free.release()
            raise

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.connections += 1
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.lock:
                self.connections -= 1
            self._free.release()

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that break: clients come and go, and scanners send noise."""

    def may_ask(self, authorization: str) -> bool:
        """Whether an `Authorization` header has the token; compared in constant time."""
        if self._hash is None:
            return True
        scheme, _, token = authorization.partition(" ")
        given = sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(given, self._hash) and scheme.lower() == "bearer"

    def report(self, answer: RestAnswer, request: RestRequest, seconds: float) -> None:
        """Tell of an answer. A fault of a table is told once until the table is well again."""
        if answer.error is not None:
            self._report_fault(answer.about or "catalog", answer.error)
        elif answer.about:
            with self.lock:
                self._reported = {one for one in self._reported if one[0] != answer.about}
        self.sink(
            CatalogAnswered(
                subject=shown(request.target, limit=200)[1:-1],
                method=request.method[:10],
                status=answer.status,
                seconds=seconds,
            )
        )

    def _report_fault(self, about: str, error: PolynyaError) -> None:
        fault = (about, error.code)
        with self.lock:
            known = fault in self._reported
            if len(self._reported) < _MAX_REPORTED:
                self._reported.add(fault)
        if not known:
            self.sink(CatalogFailed(subject=shown(about, limit=200)[1:-1], error=error))


class _Incoming(io.RawIOBase):
    """What a connection receives: within a deadline, and not more than a limit."""

    def __init__(self, connection: socket.socket, clock: Clock) -> None:
        self._connection, self._clock = connection, clock
        self._ends, self._left = 0.0, 0

    def allow(self, seconds: float, size: int) -> None:
        """Allow so many bytes within so many seconds from now."""
        self._ends, self._left = self._clock.monotonic() + seconds, size

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Any) -> int:
        seconds = self._ends - self._clock.monotonic()
        if seconds <= 0 or self._left <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        size = self._connection.recv_into(buffer, min(len(buffer), self._left))
        self._left -= size
        return size


class _Connection(BaseHTTPRequestHandler):
    """One connection of a client, for any number of requests."""

    server: RestServer
    protocol_version = "HTTP/1.1"
    server_version = "polynya"
    sys_version = ""

    @override
    def setup(self) -> None:
        connection, clock = self.request, self.server.clock
        connection.settimeout(_REQUEST_SECONDS)
        if self.server.settings.tls is not None:
            connection = self.server.settings.tls.wrap_socket(connection, server_side=True)
        self.request = self.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = _Incoming(connection, clock)
        self._reader = io.BufferedReader(self._incoming, 4096)
        self.rfile = self._reader
        self.wfile = io.BufferedWriter(_Outgoing(connection))

    @override
    def handle(self) -> None:
        with _ignored():
            super().handle()

    @override
    def finish(self) -> None:
        with _ignored():
            self.wfile.close()
        self.rfile.close()
        if self.server.settings.tls is not None:
            # Wrapping has detached the socket that the server would close.
            with _ignored():
                self.request.close()

    @override
    def handle_one_request(self) -> None:
        self.close_connection = True
        self._incoming.allow(_IDLE_SECONDS, _MAX_HEAD_BYTES)
        if not self._reader.peek(1):
            return
        self._incoming.allow(_REQUEST_SECONDS, _MAX_HEAD_BYTES)
        with self.server.lock:
            self.server.busy += 1
        try:
            self._handle_request()
            self.connection.settimeout(_ANSWER_SECONDS)
            self.wfile.flush()
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def _handle_request(self) -> None:
        self.raw_requestline = self.rfile.readline(_MAX_LINE_BYTES + 1)
        self.requestline = self.command = ""
        self.request_version = "HTTP/1.1"
        if len(self.raw_requestline) > _MAX_LINE_BYTES:
            self._send(RestError(414, "BadRequestException", "the path is too long").answer())
            return
        # An error was answered by `send_error`, and no header may keep the connection open.
        if not self.parse_request():
            return
        began = self.server.clock.monotonic()
        # The parser folds slashes at the start, and a path may be anything.
        target = self.raw_requestline.split()[1].decode("latin-1")
        request = RestRequest(
            self.command, target, ",".join(self.headers.get_all("If-None-Match", []))
        )
        try:
            self._take_body()
            self._refuse_strangers()
            found = self.server.answer(request)
        except RestError as refused:
            found = refused.answer()
        if self.server.connections > _MANY_THREADS:
            self.close_connection = True
        self._send(found)
        self.server.report(found, request, self.server.clock.monotonic() - began)

    def _take_body(self) -> None:
        """Read what a refused write brings, so that its client reads the refusal."""
        if len(self.headers) > _MAX_HEADERS:
            self.close_connection = True
            raise RestError(431, "BadRequestException", "the request has too many headers")
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1:
            # Where such a request ends, two readers may see in different ways.
            self.close_connection = True
            raise bad_request(f"a body needs one Content-Length; {READ_ONLY}")
        size = lengths[0] if lengths else "0"
        if not (size.isascii() and size.isdecimal()) or int(size[:12]) > _MAX_BODY_BYTES:
            self.close_connection = True
            raise RestError(413, "BadRequestException", f"the body is too long; {READ_ONLY}")
        if int(size):
            self._incoming.allow(_REQUEST_SECONDS, int(size))
            self.rfile.read(int(size))

    def _refuse_strangers(self) -> None:
        if not self.server.may_ask(self.headers.get("Authorization", "")):
            raise RestError(401, "NotAuthorizedException", "the catalog needs its token")
        if self.server.is_local and not _is_local(self.headers.get("Host", "")):
            # A page in a browser of this machine could reach the server by a name of its own.
            raise RestError(
                403, "ForbiddenException", "without a token only names of this machine are answered"
            )

    def _send(self, answer: RestAnswer) -> None:
        self.send_response_only(answer.status)
        self.send_header("Server", self.server_version)
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.body:
            self.send_header("Content-Type", "application/json")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        if answer.status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what the parser refused, in the error model of the protocol."""
        self.close_connection = True
        # The parser takes what it does not know for a version without headers.
        self.request_version = self.protocol_version
        self._send(RestError(int(code), "BadRequestException", message or "bad request").answer())

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: events do."""


class _Outgoing(io.RawIOBase):
    """What a connection sends."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: Any) -> int:
        self._connection.settimeout(_ANSWER_SECONDS)
        self._connection.sendall(data)
        return len(data)


def _is_local(host: str) -> bool:
    """Whether a `Host` header names this machine; clients of HTTP/1.0 send none."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    name = name.removeprefix("[").removesuffix("]").lower()
    if name in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class _ignored:  # noqa: N801 - reads as a statement
    """Ignore that a connection broke or took too long."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, OSError | ValueError)
