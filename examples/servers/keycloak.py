"""A real Keycloak on this machine, with a realm, a client and people.

Its programs come once as a Maven artifact (160 MB) through the Ivy that PySpark ships, are compared
with a digest that the repository holds, and stay in the cache of the user. It runs on the Java of
Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from examples.servers.maven import Artifact, downloaded, kept
from polynya.lake.spark.java import find_java

VERSION: Final = "26.4.0"
_PACKED: Final = Artifact(
    organisation="org.keycloak",
    name="keycloak-quarkus-dist",
    version=VERSION,
    packing="zip",
    sha256="1b6a11a2726ac8a8dc9c91d5fafe989a75ce4f1622d7f7b45c21d5bc16629c0a",
)
REALM: Final = "polynya"
_START_SECONDS: Final = 240


class KeycloakServer:
    """The server as a process of this user, on loopback, with its data in a folder."""

    def __init__(self, folder: Path, realm: Mapping[str, Any]) -> None:
        """Copy its programs, and write the realm. Raises UnavailableError."""
        self._home = folder.absolute() / "keycloak"
        # It writes to its own folder when it starts.
        shutil.copytree(keycloak_programs(), self._home)
        place = self._home / "data" / "import"
        place.mkdir(parents=True)
        (place / "realm.json").write_text(json.dumps(realm), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def issuer(self) -> str:
        """The issuer of the realm."""
        return f"http://127.0.0.1:{self.port}/realms/{REALM}"

    def start(self) -> None:
        """Start it, and wait until the realm answers. Raises TimeoutError."""
        log = self._home / "server.log"
        command = [
            "bash", str(self._home / "bin" / "kc.sh"), "start-dev", "--import-realm",
            "--http-host=127.0.0.1", f"--http-port={self.port}",
            # A port of its own for health, which nothing asks here.
            "--health-enabled=false", "--metrics-enabled=false",
        ]  # fmt: skip
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, cwd=self._home, stdout=out, stderr=out, env=_environment()
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urlopen(f"{self.issuer}/.well-known/openid-configuration", timeout=5):
                    return
            except OSError:
                time.sleep(0.5)
        self.stop()
        raise TimeoutError(f"Keycloak did not start: {log.read_text('utf-8', 'replace')[-2000:]}")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def keycloak_server(realm: Mapping[str, Any]) -> Iterator[KeycloakServer]:
    """A server that runs, with a realm as Keycloak imports it; it ends with the block.

    Raises UnavailableError, TimeoutError.
    """
    with tempfile.TemporaryDirectory(prefix="polynya-keycloak-") as scratch:
        server = KeycloakServer(Path(scratch), realm)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def keycloak_programs() -> Path:
    """Those of the artifact, fetched when missing. Raises UnavailableError."""
    return kept(f"keycloak-{VERSION}", _fetch)


def _fetch(scratch: Path) -> Path:
    with zipfile.ZipFile(downloaded(_PACKED, scratch)) as archive:
        archive.extractall(scratch)
    return scratch / f"keycloak-{VERSION}"


def _environment() -> dict[str, str]:
    # What tests give to the Java of Spark is not meant for this one.
    kept = {name: text for name, text in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    java = find_java().executable.resolve().parents[1]
    return {**kept, "JAVA_HOME": str(java), "JAVA_OPTS_APPEND": "-Xmx512m"}
