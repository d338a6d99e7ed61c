"""A catalog that is served in this process, and engines that ask it."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import duckdb_ext

from polynya.engine.rest_protocol import answer
from polynya.engine.rest_server import RestServer, RestServerSettings
from polynya.engine.served_catalog import ServedCatalog
from polynya.model.loader import LoadedProject
from polynya.observe.events import Event
from polynya.store.clock import SystemClock

EXTENSIONS = str(Path(next(iter(duckdb_ext.__path__))) / "extensions")


@dataclass
class Served:
    """Where a catalog is served, and what its server said."""

    server: RestServer
    events: list[Event] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, document and headers; header names with `_` for `-`."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        asked.request(method, path, body, sent)
        found = asked.getresponse()
        data = found.read()
        asked.close()
        return found.status, json.loads(data) if data else None, dict(found.headers)


@contextmanager
def served(
    project: LoadedProject, *, token: str | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Served]:
    """Serve the catalog of a project at a free port of this machine."""
    events: list[Event] = []
    server = RestServer(
        RestServerSettings("127.0.0.1", 0, token, tls),
        partial(answer, catalog=ServedCatalog(project)),
        clock=SystemClock(),
        sink=events.append,
    )
    server.start()
    try:
        yield Served(server, events)
    finally:
        server.stop()


@contextmanager
def duckdb_here() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with what it needs to ask a catalog."""
    with duckdb.connect(config={"extension_directory": EXTENSIONS}) as connection:
        for name in ("avro", "httpfs", "iceberg"):
            connection.execute(f"LOAD {name}")
        connection.execute("SET TimeZone = 'America/Lima'")
        yield connection
