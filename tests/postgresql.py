"""A PostgreSQL server of a test's own, with a password, on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.servers import postgresql
from examples.servers.postgresql import PostgresServer
from tests.absent import absent

USER_VARIABLE, PASSWORD_VARIABLE = "POLYNYA_TEST_DB_USER", "POLYNYA_TEST_DB_PASSWORD"


@contextmanager
def postgres_server(*, settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server with a user that owns everything; without one the test is skipped, in CI failed."""
    try:
        with postgresql.postgres_server(settings=settings) as server:
            yield server
    except postgresql.UnavailableError as error:
        absent(str(error))


def connect(project: Path, server: PostgresServer, database: str = "shop") -> None:
    """Write the connection `shop` of a project; the password is in the variable SHOP_PW."""
    folder = project / "connections"
    folder.mkdir()
    (folder / "shop.yml").write_text(
        f"""\
type: postgresql
host: 127.0.0.1
port: {server.port}
database: {database}
user: {server.user}
password: {{env: SHOP_PW}}
tls: {{mode: disable}}
""",
        encoding="utf-8",
    )


@contextmanager
def postgis_server() -> Iterator[PostgresServer]:
    """A server that has PostGIS; without one the test is skipped, in CI too.

    It is looked for in the folder of programs that POLYNYA_TEST_POSTGIS names, and among those of
    the system. Debian has it as `postgresql-15-postgis-3`, which need not be installed: see
    CONTRIBUTING.md.
    """
    named = os.environ.get("POLYNYA_TEST_POSTGIS")
    for programs in [Path(named)] if named else postgresql.installed():
        # .../lib/postgresql/15/bin and .../share/postgresql/15/extension
        extensions = programs.parents[3] / "share/postgresql" / programs.parent.name / "extension"
        if (extensions / "postgis.control").exists():
            with postgresql.postgres_server(programs=programs) as server:
                yield server
            return
    pytest.skip("there is no PostgreSQL server with PostGIS; POLYNYA_TEST_POSTGIS may name one")


@contextmanager
def icu_server() -> Iterator[PostgresServer]:
    """A server that was built with ICU, whose collations may take different texts for equal.

    That of the package is not; those of systems are.
    """
    for programs in postgresql.installed():
        linked = subprocess.run(
            ["ldd", str(programs / "postgres")], capture_output=True, text=True, check=False
        )
        if "libicui18n" in linked.stdout:
            with postgresql.postgres_server(programs=programs) as server:
                yield server
            return
    pytest.skip("there is no PostgreSQL server with ICU; that of the system has it")


def environment(server: PostgresServer) -> dict[str, str]:
    """The variables by which the projects of tests name the user of a server."""
    return {USER_VARIABLE: server.user, PASSWORD_VARIABLE: server.password}
