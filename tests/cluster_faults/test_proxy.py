"""The proxy does to requests what it counts."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cluster_faults.proxy import Fate, Proxy, proxied


class Store(BaseHTTPRequestHandler):
    """Remembers what was put."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_PUT(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("ETag", "mine")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_given: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    Store.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    with proxied(f"http://127.0.0.1:{server.server_port}", seed=1) as found:
        yield found
    server.shutdown()
    server.server_close()


def put(proxy: Proxy, text: str) -> str:
    """How a request ended for whoever asked."""
    request = urllib.request.Request(f"{proxy.address}/key", data=text.encode(), method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return f"{answer.status} {answer.headers['ETag']}"
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError:
        return "no answer"


def test_without_trouble_all_goes_through(proxy: Proxy) -> None:
    assert put(proxy, "one") == "200 mine"
    assert Store.bodies == [b"one"]


def test_a_node_that_is_cut_off_reaches_nothing(proxy: Proxy) -> None:
    proxy.cut = True

    assert put(proxy, "one") == "no answer"
    assert Store.bodies == []


@pytest.mark.parametrize(
    ("fate", "ended", "bodies"),
    [(Fate.LOST, "no answer", []), (Fate.REFUSED, "503", []), (Fate.APPLIED, "no answer", [b"x"])],
)
def test_errors_are_what_they_are_called(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, fate: Fate, ended: str, bodies: list[bytes]
) -> None:
    monkeypatch.setattr(proxy.dice, "choice", lambda _: fate)
    proxy.rate = 1.0

    assert put(proxy, "x") == ended
    assert Store.bodies == bodies
    assert proxy.fates == {fate: 1}
