"""What a source is reached with: a store of its own is asked with the key of its connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.loader import load_project
from polynya.model.names import S3Location
from polynya.store.places import source_at
from polynya.streams.registry import store_access
from tests.projects import PROJECT, write_project

EMPTY = (
    b'<?xml version="1.0"?><ListBucketResult><Name>drop</Name><KeyCount>0</KeyCount>'
    b"<IsTruncated>false</IsTruncated></ListBucketResult>"
)
FILES = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files: {connection: minio, url: "s3://partner-drop/exports", pattern: "*.json"}
"""


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A store on this machine: its address, and how each request was signed."""
    signed: list[str] = []

    class Store(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            signed.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", str(len(EMPTY)))
            self.end_headers()
            self.wfile.write(EMPTY)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", signed
        server.shutdown()


def test_a_store_of_a_connection_is_asked_with_its_own_key(tmp_path, asked, monkeypatch):
    endpoint, signed = asked
    monkeypatch.setenv("POLYNYA_SECRETS", str(tmp_path))
    (tmp_path / "minio").write_text("hunter2\n")
    folder = write_project(tmp_path / "shop", project=PROJECT, exports=FILES)
    (folder / "connections").mkdir()
    (folder / "connections" / "minio.yml").write_text(
        f"type: s3\nendpoint: {endpoint}\nregion: eu-west-1\naccess_key_id: minio-app\n"
        f"secret_access_key: '${{file:{tmp_path}/minio}}'\n"
    )
    [task] = load_project(folder, environment={}).landings
    of_target = AwsAccess(region="us-east-1", endpoint="http://127.0.0.1:9", kms_key="arn:key")

    assert task.source.files is not None
    access = store_access(task.source.files.store, of_target)
    found = list(source_at(S3Location("partner-drop", "exports"), access).list())

    assert found == []
    assert "Credential=minio-app/" in signed[0]
    assert "/eu-west-1/s3/" in signed[0]
    assert access.secret_access_key == "hunter2"
    assert "hunter2" not in repr(access)
    # The key of the target's encryption is none of that store's.
    assert access.kms_key is None
    assert store_access(None, of_target) is of_target
