"""Servers for the tests of captures of MariaDB and MySQL.

Each test runs with MariaDB. One that is marked `also_mysql` runs with MySQL, too, among the slow
tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from tests.mariadb import new_server

_SCOPES = {"server": "session", "own": "function", "captured": "module", "alone": "module"}
_KINDS = (pytest.param("mariadb"), pytest.param("mysql", marks=pytest.mark.slow))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say for each test with which servers it runs."""
    also = metafunc.definition.get_closest_marker("also_mysql") is not None
    for name, scope in _SCOPES.items():
        if name in metafunc.fixturenames:
            kinds = _KINDS if also else _KINDS[:1]
            metafunc.parametrize(name, kinds, indirect=True, scope=scope)


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One for all tests of a process; each has a database of its own."""
    made = new_server(tmp_path_factory.mktemp(request.param), kind=request.param)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def shop(server: Server) -> Iterator[str]:
    """An empty database."""
    server.execute("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    yield "shop"
    server.execute("DROP DATABASE IF EXISTS shop")


@pytest.fixture
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server of a test's own, with an empty database: its binlog has no other changes."""
    made = new_server(tmp_path / "server", kind=request.param)
    try:
        made.start()
        made.execute("CREATE DATABASE shop")
        yield made
    finally:
        made.close()
