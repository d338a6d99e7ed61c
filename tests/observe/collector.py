"""A collector of OpenTelemetry: it takes spans by OTLP over HTTP and keeps them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Taken:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    failed: bool
    seconds: float
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    """`status`: what it answers. `bodies`: every byte that it got, `headers` of each request."""

    endpoint: str = ""
    status: int = 200
    spans: list[Taken] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[Taken]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Taken:
        (span,) = self.named(name)
        return span

    def inside(self, span: Taken) -> list[Taken]:
        return [one for one in self.spans if one.parent == span.id and one.trace == span.trace]

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            resource = _values(group.resource.attributes)
            for scope in group.scope_spans:
                for span in scope.spans:
                    seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
                    # 2 is STATUS_CODE_ERROR.
                    failed = span.status.code == 2
                    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                    values = _values(span.attributes)
                    self.spans.append(
                        Taken(span.name, *ids, span.kind, failed, seconds, values, resource)
                    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.headers.append(dict(self.headers))
            if made.status == 200 and self.path == "/v1/traces":
                made.take(body)
            self.send_response(made.status if self.path == "/v1/traces" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
