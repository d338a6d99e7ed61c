"""An instance metadata service on this machine: version 2, with tokens that are checked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from uuid import uuid4

_METADATA: Final = "/latest/meta-data/"


class FakeImds:
    """The contents of the service, by path, and the tokens that it has issued.

    Attributes:
        address: its URL.
        says: text by path of the metadata; what is not there is answered with 404.
        tokens: those that are valid; clear it and all have expired.
        pauses: seconds that pass before each of the next answers; later ones come at once.
        failing: every request is answered with 500.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.says: dict[str, str] = {}
        self.tokens: set[str] = set()
        self.pauses: list[float] = []
        self.failing = False

    def interrupts(self, at: str = "2026-01-01T00:02:00Z") -> None:
        """Give the instance its Spot notice."""
        self.says["spot/instance-action"] = f'{{"action": "terminate", "time": "{at}"}}'

    def has_role(self, name: str = "node", expires: str = "2099-01-01T00:00:00Z") -> None:
        """Give the instance a role with credentials that nothing but stand-ins accept."""
        self.says["iam/security-credentials/"] = name
        self.says[f"iam/security-credentials/{name}"] = json.dumps({
            "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "testing",
            "SecretAccessKey": "testing", "Token": "testing",
            "LastUpdated": "2026-01-01T00:00:00Z", "Expiration": expires,
        })  # fmt: skip

    def recommends(self, at: str = "2026-01-01T00:00:00Z") -> None:
        """Recommend to rebalance."""
        self.says["events/recommendations/rebalance"] = f'{{"noticeTime": "{at}"}}'


@contextmanager
def fake_imds() -> Iterator[FakeImds]:
    """A service that answers until the end of the block, on a loopback address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    fake = FakeImds(f"http://127.0.0.1:{server.server_port}")
    _Handler.services[server.server_port] = fake
    serve = threading.Thread(target=server.serve_forever, args=(0.02,), name="imds", daemon=True)
    serve.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        serve.join()
        del _Handler.services[server.server_port]


class _Handler(BaseHTTPRequestHandler):
    #: The services of this process, by port.
    services: Final[dict[int, FakeImds]] = {}

    @property
    def _fake(self) -> FakeImds:
        return self.services[self.server.server_address[1]]  # type: ignore[index]

    def do_PUT(self) -> None:
        wanted = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.path != "/latest/api/token" or not wanted.isdecimal():
            self._answer(400, "")
            return
        token = uuid4().hex
        self._fake.tokens.add(token)
        self._answer(200, token)

    def do_GET(self) -> None:
        if self.headers.get("X-aws-ec2-metadata-token") not in self._fake.tokens:
            self._answer(401, "")
            return
        # Arrow asks for the name of the role without the slash, and is answered as well.
        place = self.path.removeprefix(_METADATA)
        text = self._fake.says.get(place, self._fake.says.get(f"{place}/"))
        self._answer(404 if text is None else 200, text or "")

    def log_message(self, *_given: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, text: str) -> None:
        if self._fake.pauses:
            time.sleep(self._fake.pauses.pop(0))
        if self._fake.failing:
            status, text = 500, ""
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        # The client may have been killed.
        with suppress(ConnectionError):
            self.wfile.write(data)
