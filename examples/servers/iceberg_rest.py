"""Iceberg's reference server of its REST protocol, over a JDBC catalog on SQLite.

Its jars come through the Ivy that PySpark ships, once, are compared with the lock file beside this
module, and stay in the cache of the user. It listens on the loopback only.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from polynya.lake.spark import jars as ivy
from polynya.lake.spark.cache import cache_root
from polynya.lake.spark.java import find_java
from polynya.model.errors import PolynyaError

#: Of Iceberg.
VERSION: Final = "1.11.0"
_HERE: Final = Path(__file__).parent
_SMALL: Final = ("-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_START_SECONDS: Final = 120
_MODULE: Final = (
    '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
    '<info organisation="polynya" module="rest"/><dependencies>{}</dependencies></ivy-module>'
)


class UnavailableError(Exception):
    """The jars of the server cannot be had; the text is the reason."""


@dataclass(frozen=True, slots=True)
class _Jar:
    organisation: str
    module: str
    revision: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        end = f"-{self.classifier}" if self.classifier else ""
        return f"{self.module}-{self.revision}{end}.jar"

    @property
    def artifact(self) -> str:
        """What Ivy is asked for, of the module."""
        more = f" m:classifier={quoteattr(self.classifier)}" if self.classifier else ""
        return f'<artifact name={quoteattr(self.module)} type="jar" ext="jar"{more}/>'


class RestServer:
    """The server as a process that can be killed and started again with the same tables."""

    def __init__(
        self, folder: Path, warehouse: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """Take a port; the catalog is in `folder`. Raises UnavailableError."""
        self._folder, self._warehouse = folder, warehouse
        self._properties = dict(properties or {})
        self._jars = jars()
        # The SQLite driver, and what reaches S3, are those of the runtime.
        groups = ["core", "aws"] if warehouse.startswith("s3:") else ["core"]
        self._more = [
            path
            for path in ivy.jar_paths(groups=groups)
            if "sqlite" in path or "iceberg-aws" in path
        ]
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where clients reach it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens. Raises TimeoutError."""
        given = {
            "uri": f"jdbc:sqlite:{self._folder / 'served.db'}?busy_timeout=30000",
            "warehouse": self._warehouse,
            **self._properties,
        }
        path = os.pathsep.join([f"{self._jars}/*", *self._more])
        command = [
            str(find_java().executable), *_SMALL, "-cp", path, str(_HERE / "IcebergRest.java"),
            str(self.port), *(f"{name}={value}" for name, value in given.items()),
        ]  # fmt: skip
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.kill()
        said = (self._folder / "server.log").read_text(errors="replace")[-2000:]
        raise TimeoutError(f"the REST server did not start: {said}")

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def rest_server(
    folder: Path, warehouse: str, properties: Mapping[str, str] | None = None
) -> Iterator[RestServer]:
    """A server that runs; it ends with the block."""
    server = RestServer(folder, warehouse, properties)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def jars() -> Path:
    """The folder of the server's jars, fetched when they are missing. Raises UnavailableError."""
    document = json.loads((_HERE / "iceberg_rest.lock.json").read_text(encoding="utf-8"))
    wanted = [_Jar(**entry) for entry in document["jars"]]
    folder = cache_root() / "test-parts" / f"iceberg-rest-{VERSION}"
    missing = [jar for jar in wanted if not (folder / jar.file_name).is_file()]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            _fetch(missing, Path(scratch), folder)
    return folder


def _fetch(missing: list[_Jar], scratch: Path, folder: Path) -> None:
    modules: dict[tuple[str, str, str], str] = {}
    for jar in missing:
        module = (jar.organisation, jar.module, jar.revision)
        modules[module] = modules.get(module, "") + jar.artifact
    lines = (
        f"<dependency org={quoteattr(organisation)} name={quoteattr(module)} "
        f'rev={quoteattr(revision)} transitive="false" conf="default->default">{artifacts}'
        "</dependency>"
        for (organisation, module, revision), artifacts in modules.items()
    )
    asked = scratch / "ivy.xml"
    asked.write_text(_MODULE.format("".join(lines)), encoding="utf-8")
    try:
        ivy_jar = next(ivy.spark_jars_directory().glob("ivy-*.jar"))
    except PolynyaError as error:
        raise UnavailableError(str(error)) from error
    done = subprocess.run(
        [
            str(find_java().executable), "-jar", str(ivy_jar), "-ivy", str(asked),
            "-types", "jar", "bundle", "-confs", "default", "-cache", str(scratch / "cache"),
            "-retrieve", str(scratch / "[artifact]-[revision](-[classifier]).[ext]"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    for jar in missing:
        path = scratch / jar.file_name
        if not path.is_file():
            why = f"the jars of the REST server cannot be had: {done.stdout[-500:]}"
            raise UnavailableError(why)
        if ivy.sha256_of(path) != jar.sha256:
            raise UnavailableError(f"{jar.file_name} is not the jar that the lock file pins")
        path.replace(folder / jar.file_name)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
