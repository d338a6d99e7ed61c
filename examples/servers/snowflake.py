"""A stand-in for Snowflake on this machine, to which Snowflake's own Python connector connects.

fakesnow answers Snowflake's SQL with DuckDB; `snowflake_shim.py` adds the statements about external
Iceberg tables. Both run in an environment of their own, which is made once from the lock file
`requirements/snowflake.txt` and stays in the cache of the user. Nothing here is Snowflake: names
of columns, types and messages of errors differ from the service's.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from examples.servers.mariadb import UnavailableError
from polynya.lake.spark.cache import cache_root

_ROOT: Final = Path(__file__).parents[2]
_LOCK: Final = _ROOT / "requirements" / "snowflake.txt"
_SHIM: Final = Path(__file__).with_name("snowflake_shim.py")
_START_SECONDS: Final = 60.0
_INSTALL_SECONDS: Final = 600.0


class SnowflakeServer:
    """The stand-in as a process. What it holds is in memory and ends with it."""

    def __init__(self, folder: Path, catalog: Path) -> None:
        """`catalog` is the SQLite file that stands for the catalog of every integration.

        Raises UnavailableError.
        """
        self._python = environment() / "bin" / "python"
        self._log, self._catalog = folder / "snowflake.log", catalog
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers. Raises TimeoutError."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-P", str(_SHIM), str(self.port), str(self._catalog)],
                stdout=log, stderr=log,
                # It has packages of its own and must not see the project's.
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.close()
        raise TimeoutError(f"the stand-in for Snowflake did not start; see {self._log}")

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def snowflake_server(folder: Path, catalog: Path) -> Iterator[SnowflakeServer]:
    """A stand-in that runs; it ends with the block. Raises UnavailableError."""
    server = SnowflakeServer(folder, catalog)
    server.start()
    try:
        yield server
    finally:
        server.close()


def environment() -> Path:
    """The environment of the stand-in, made when it is missing. Raises UnavailableError."""
    digest = hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_root() / "test-parts" / f"snowflake-{version}-{digest}"
    if not (folder / "complete").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    """Install the locked packages. An environment cannot be moved, so a mark says it is whole."""
    with tempfile.TemporaryFile() as log:
        try:
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder)],
                [
                    str(folder / "bin" / "pip"), "install", "--quiet", "--require-hashes",
                    "--no-deps", "--only-binary", ":all:", "--requirement", str(_LOCK),
                ],
            ):  # fmt: skip
                subprocess.run(
                    command, check=True, stdout=log, stderr=log, timeout=_INSTALL_SECONDS
                )
        except (OSError, subprocess.SubprocessError) as error:
            log.seek(0)
            said = log.read()[-500:].decode(errors="replace")
            raise UnavailableError(
                f"the stand-in for Snowflake cannot be had: {error}; {said}"
            ) from error
    (folder / "complete").touch()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
