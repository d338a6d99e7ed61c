"""REST catalogs of tests: the reference server, and what stands between it and its clients."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from examples.servers import iceberg_rest
from examples.servers.iceberg_rest import RestServer
from tests.absent import absent
from tests.projects import write_project

CREDENTIAL_VARIABLE = "POLYNYA_TEST_REST_CREDENTIAL"

_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  local:
    landing: ./landing
    warehouse: {warehouse}
    catalog:
      type: rest
      uri: {uri}
      credential: "${{env:POLYNYA_TEST_REST_CREDENTIAL}}"
      oauth2_server_uri: {uri}/v1/oauth/tokens
{more}"""


def rest_project(uri: str, warehouse: str = "./warehouse", more: str = "") -> str:
    """A project file whose catalog is behind REST; `more` are further lines of the target."""
    return _PROJECT.format(uri=uri, warehouse=warehouse, more=more)


@contextmanager
def reference_server(
    folder: Path, warehouse: str, properties: Mapping[str, str] | None = None
) -> Iterator[RestServer]:
    """Iceberg's own server; without its jars the test is skipped, in CI failed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with iceberg_rest.rest_server(folder, warehouse, properties) as server:
            yield server
    except iceberg_rest.UnavailableError as error:
        absent(str(error))


@dataclass
class Exchange:
    """One request on its way, which a fault may change."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """One answer on its way back."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


Forward = Callable[[Exchange], Answer]
#: What stands in the way: it forwards a request, or does not, and gives an answer.
Fault = Callable[[Exchange, Forward], Answer]


def said(status: int, kind: str = "Fault") -> Answer:
    """An error as the protocol has them."""
    error = {"error": {"message": "a fault of the test", "type": kind, "code": status}}
    return Answer(status, json.dumps(error).encode())


_OF_A_CONNECTION = {
    "host", "content-length", "accept-encoding", "connection", "transfer-encoding", "expect",
}  # fmt: skip


class Proxy:
    """What clients reach in place of a server."""

    def __init__(self, behind: str | None) -> None:
        self._behind = behind
        self.fault: Fault = lambda exchange, forward: forward(exchange)
        self.seen: list[Exchange] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
        self._server.daemon_threads = True
        self._server.proxy = self  # type: ignore[attr-defined]
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, exchange: Exchange) -> Answer:
        self.seen.append(exchange)
        return self.fault(exchange, self._forward)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _forward(self, exchange: Exchange) -> Answer:
        assert self._behind is not None, "nothing is behind it"
        kept = {
            name: value
            for name, value in exchange.headers.items()
            if name.lower() not in _OF_A_CONNECTION
        }
        request = urllib.request.Request(
            self._behind + exchange.path, exchange.body or None, kept, method=exchange.method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as found:
                return Answer(found.status, found.read(), _passed(found.headers))
        except HTTPError as error:
            return Answer(error.code, error.read(), _passed(error.headers))


def _passed(headers: Message) -> dict[str, str]:
    """The headers of an answer that are not of one connection."""
    own = {"connection", "transfer-encoding", "server", "date", "content-encoding"}
    return {name: value for name, value in headers.items() if name.lower() not in own}


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = (
            self._chunks()
            if "chunked" in self.headers.get("Transfer-Encoding", "")
            else (self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        )
        exchange = Exchange(self.command, self.path, dict(self.headers.items()), body)
        proxy: Any = self.server.proxy  # type: ignore[attr-defined]
        answer = proxy.answer(exchange)
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            if name != "Content-Length" or self.command == "HEAD":
                self.send_header(name, value)
        content = b"" if self.command == "HEAD" else answer.body
        if self.command != "HEAD" or "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    do_POST = do_HEAD = do_DELETE = do_PUT = do_GET

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@contextmanager
def proxy(behind: str | None = None) -> Iterator[Proxy]:
    """A proxy to a server, or a server without one; it ends with the block."""
    made = Proxy(behind)
    try:
        yield made
    finally:
        made.close()


def is_commit(exchange: Exchange) -> bool:
    """Whether a request commits rows to a table."""
    return exchange.method == "POST" and b"add-snapshot" in exchange.body


#: What stands in front of the catalog of `served_project`, for the tests that need faults.
standing: list[Proxy] = []


@contextmanager
def served_project(folder: Path) -> Iterator[Path]:
    """A project without tasks whose catalog is the reference server, with a proxy before it."""
    warehouse = folder / "warehouse"
    with (
        reference_server(folder / "server", str(warehouse)) as server,
        proxy(server.uri) as way,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(CREDENTIAL_VARIABLE, "me:a-secret-of-tests")
        standing.append(way)
        yield write_project(folder, project=rest_project(way.uri))
        standing.remove(way)


def vending(exchange: Exchange, forward: Forward) -> Answer:
    """Give credentials with each table, and a class that no client may load."""
    answer = forward(exchange)
    if b'"metadata-location"' in answer.body and "/tables" in exchange.path:
        document = json.loads(answer.body)
        document["config"] = {
            "s3.access-key-id": "VENDED", "s3.secret-access-key": "x", "s3.session-token": "y",
            "py-io-impl": "os.system",
        }  # fmt: skip
        answer.body = json.dumps(document).encode()
    return answer
