"""A PostgreSQL server of a test's own, with a password, on this machine."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.absent import absent

#: Where Debian puts the programs of the server, which are not on the path.
_FOLDERS = "/usr/lib/postgresql"
USER_VARIABLE, PASSWORD_VARIABLE = "POLYNYA_TEST_DB_USER", "POLYNYA_TEST_DB_PASSWORD"


@dataclass(frozen=True)
class Postgres:
    """A server that runs. `uri` is the address of its database for JDBC."""

    port: int
    password: str
    programs: Path
    data: Path
    user: str = "lake"

    @property
    def uri(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def environment(self) -> dict[str, str]:
        return {USER_VARIABLE: self.user, PASSWORD_VARIABLE: self.password}

    def stop(self) -> None:
        _run(self.programs / "pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def start(self) -> None:
        place = f"-c port={self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        sockets = f"-c unix_socket_directories={self.data}"
        log = self.data / "server.log"
        _run(self.programs / "pg_ctl", "-D", self.data, "-w", "-l", log,
             "-o", f"{place} {sockets}", "start")  # fmt: skip


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A server with a user that owns everything; without one the test is skipped, in CI failed."""
    programs = _programs()
    if programs is None or (os.geteuid() == 0 and not _has_user("postgres")):
        absent("there is no PostgreSQL server, without which its catalog is not tested")
    folder = Path(tempfile.mkdtemp(prefix="polynya-pg-"))
    try:
        password = secrets.token_hex(12)
        said = folder / "password"
        said.write_text(password)
        if os.geteuid() == 0:
            for path in (folder, said):
                shutil.chown(path, "postgres")
        server = Postgres(_free_port(), password, programs, folder / "data")
        _run(programs / "initdb", "-D", server.data, "-U", server.user, "--auth=scram-sha-256",
             f"--pwfile={said}", "--no-sync", "-E", "UTF8", "--locale=C")  # fmt: skip
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    return next((one.parent for one in sorted(Path(_FOLDERS).glob("*/bin/initdb"))), None)


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


def _run(*command: object) -> None:
    """Run a program of the server, which refuses to run as root."""
    as_root = os.geteuid() == 0
    line = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if as_root else []
    # No pipe: the server that `pg_ctl` starts would keep it open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            [*line, *map(str, command)], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/"
        )
        said.seek(0)
        assert done.returncode == 0, said.read()
