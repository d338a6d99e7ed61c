"""The metadata service of an instance, version 2: nothing without a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

TOKEN = "a-token-of-six-hours"
INSTANCE = "i-0a1b2c3d4e5f60718"
_ROOT = "/latest/meta-data/"


@contextmanager
def metadata_service(cluster: str) -> Iterator[str]:
    """The address of one that tells of a Spot instance of a cluster."""
    told = {
        "instance-id": INSTANCE,
        "placement/region": "eu-central-1",
        "instance-life-cycle": "spot",
        "tags/instance/polynya:cluster": cluster,
        "autoscaling/target-lifecycle-state": "InService",
    }

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            wanted = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            self._answer(TOKEN if self.path == "/latest/api/token" and wanted else None)

        def do_DELETE(self) -> None:
            """Not of the service: from now on the group ends the instance."""
            told["autoscaling/target-lifecycle-state"] = "Terminated"
            self._answer("")

        def do_GET(self) -> None:
            if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
                self.send_error(401)
                return
            self._answer(told.get(self.path.removeprefix(_ROOT)))

        def _answer(self, text: str | None) -> None:
            if text is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
