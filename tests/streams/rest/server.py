"""A REST API on this machine, whose answers a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Asked:
    """A request as the server saw it."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: str = ""


@dataclass
class Reply:
    """An answer; `raw` is a body that is no JSON, `length` what it says of its length."""

    value: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    length: int | None = None
    write: Callable[[Any], None] | None = None


Answering = Callable[[Asked], Any]


class LocalApi:
    """Answers by a function: a `Reply`, or a value that becomes JSON."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.asked: list[Asked] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # One packet for an answer: two would wait for each other.
            wbufsize = -1

            def do_GET(self) -> None:
                api._answer(self)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [one.path for one in self.asked]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length).decode()
        asked = Asked(parts.path, dict(parse_qsl(parts.query)), dict(handler.headers), body)
        self.asked.append(asked)
        found = self.answering(asked)
        reply = found if isinstance(found, Reply) else Reply(found)
        if reply.write is not None:
            reply.write(handler)
            handler.close_connection = True
            return
        data = json.dumps(reply.value).encode() if reply.raw is None else reply.raw
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header(
            "Content-Length", str(len(data) if reply.length is None else reply.length)
        )
        handler.end_headers()
        handler.wfile.write(data)
        if reply.length is not None:
            handler.close_connection = True


@contextmanager
def local_api(answering: Answering) -> Iterator[LocalApi]:
    """Serve until the block ends."""
    api = LocalApi(answering)
    thread = threading.Thread(target=api.server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.server.shutdown()
        api.server.server_close()
        thread.join()
