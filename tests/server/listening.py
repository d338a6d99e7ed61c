"""A server that listens on loopback, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from polynya.server.http_protocol import DeadlineProtocol, protocol_settings


@contextmanager
def listening(app: Any, *, head_seconds: float = 10, body_seconds: float = 60) -> Iterator[int]:
    """The port of an app that is served as `polynya serve` does, with other deadlines."""

    class Impatient(DeadlineProtocol):
        pass

    Impatient.head_seconds, Impatient.body_seconds = head_seconds, body_seconds
    settings = {**protocol_settings(), "http": Impatient}
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", **settings)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
