"""A real schema registry on this machine (Apicurio), and a proxy before it that wants a log-in.

Its files come through the Ivy that PySpark ships, once, and stay in the cache of the user. It keeps
schemas in memory: one that was killed begins with none, and counts from 1 again.
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from polynya.lake.spark import jars
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.java import find_java
from tests.absent import absent

VERSION = "2.6.13.Final"
_NAME = "apicurio-registry-app"
_SMALL = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_WANTED = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="registry"/>
  <dependencies>
    <dependency org="io.apicurio" name="{_NAME}" rev="{VERSION}" transitive="false">
      <artifact name="{_NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


class RegistryServer:
    """The server as a process that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._program = folder, _program()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The interface that Confluent's clients use."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        address = ("-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self._port}")
        command = [str(find_java().executable), *_SMALL, *address, "-jar", str(self._program)]
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urlopen(f"{self.url}/subjects", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise TimeoutError(f"the registry did not start; see {self._folder}/registry.log")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def register(self, subject: str, schema: Mapping[str, Any], **references: str) -> int:
        """Register a schema; `references` are subjects by the names of their types, with `__`."""
        used = [
            {"name": name.replace("__", "."), "subject": other, "version": 1}
            for name, other in references.items()
        ]
        body = {"schema": json.dumps(schema), "references": used}
        request = Request(
            f"{self.url}/subjects/{quote(subject, safe='')}/versions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urlopen(request, timeout=60) as answer:
            return int(json.load(answer)["id"])


@contextmanager
def registry_server(folder: Path) -> Iterator[RegistryServer]:
    """A registry that runs; it ends with the block."""
    server = RegistryServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def with_login(registry: RegistryServer, login: str) -> Iterator[str]:
    """The address of a proxy that lets `user:password` through to the registry."""
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = 401, b'{"error_code": 40101, "message": "who are you?"}'
            if self.headers.get("Authorization") == wanted:
                code, body = _forwarded(f"{registry.url}{self.path}")
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _forwarded(url: str) -> tuple[int, bytes]:
    try:
        with urlopen(url, timeout=30) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()
    except OSError:
        return 502, b"<html>the registry is gone</html>"


def _program() -> Path:
    """The server, fetched when it is missing; without it the test is skipped, in CI failed."""
    folder = cache_root() / "test-parts" / f"{_NAME}-{VERSION}"
    program = folder / f"{_NAME}-{VERSION}-runner.jar"
    if not program.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = folder / "ivy.xml"
        wanted.write_text(_WANTED)
        ivy_jar = next(jars.spark_jars_directory().glob("ivy-*.jar"))
        line = [
            str(find_java().executable), "-jar", str(ivy_jar), "-ivy", str(wanted),
            "-cache", str(folder / ".ivy"),
        ]  # fmt: skip
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        packed = next((folder / ".ivy").rglob(f"{_NAME}-{VERSION}-all.tar.gz"), None)
        if done.returncode != 0 or packed is None:
            absent(f"the schema registry cannot be had: {done.stdout[-500:]}")
        with tarfile.open(packed) as files:
            files.extractall(folder, filter="data")
        shutil.rmtree(folder / ".ivy")
    return program
