"""A shop with a REST API on this machine, for the page on HTTP sources and its tests.

`python -m examples.servers.shop_api` serves it on port 8471 until Ctrl-C. It wants the bearer token
`open-sesame`, pages its orders by a cursor, and has the lines of each order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import override

PORT: Final = 8471
TOKEN: Final = "open-sesame"  # noqa: S105 - the page tells it
_PAGE: Final = 20


class ShopApi(ThreadingHTTPServer):
    """Serves `orders`, whose `updated_at` grows with each change."""

    daemon_threads = True

    def __init__(self, port: int = 0, orders: int = 50) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.orders: dict[int, dict[str, Any]] = {}
        self.requests = 0
        self._changes = 0
        for number in range(1, orders + 1):
            self.change(number, number * 10)

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def change(self, number: int, total: int) -> None:
        """Add an order, or change its total."""
        self._changes += 1
        minute, second = divmod(self._changes, 60)
        at = f"2026-03-01T{minute // 60:02}:{minute % 60:02}:{second:02}Z"
        self.orders[number] = {"id": number, "total": total, "updated_at": at}

    def lines(self, number: int) -> list[dict[str, Any]]:
        """The lines of an order."""
        return [{"id": f"{number}-{line}", "order_id": number} for line in (1, 2)]

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, object]:
        """Status and value for a request."""
        self.requests += 1
        parts = path.strip("/").split("/")
        if parts == ["v1", "orders"]:
            return 200, self._page(query)
        if len(parts) == 4 and parts[3] == "lines" and int(parts[2]) in self.orders:
            return 200, self.lines(int(parts[2]))
        return 404, {"error": "not found"}

    def _page(self, query: dict[str, str]) -> dict[str, object]:
        since = query.get("updated_since", "")
        found = [one for one in self.orders.values() if str(one["updated_at"]) >= since]
        found.sort(key=lambda one: str(one["updated_at"]))
        begin = int(query.get("cursor", 0))
        following = begin + _PAGE if begin + _PAGE < len(found) else None
        return {"items": found[begin : begin + _PAGE], "next": following}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for an answer
    server: ShopApi

    def do_GET(self) -> None:
        """Answer a request."""
        parts = urlsplit(self.path)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            answered: tuple[int, object] = 401, {"error": "unauthorized"}
        else:
            answered = self.server.answer(parts.path, dict(parse_qsl(parts.query)))
        status, value = answered
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def shop_api(port: int = 0) -> Iterator[ShopApi]:
    """Serve until the block ends."""
    api = ShopApi(port)
    thread = threading.Thread(target=api.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.shutdown()
        api.server_close()
        thread.join()


if __name__ == "__main__":
    with ShopApi(PORT) as served:
        served.serve_forever()
