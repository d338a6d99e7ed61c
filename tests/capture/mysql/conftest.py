"""A MariaDB server for the tests of its captures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from tests.mariadb import new_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests of a process; each has a database of its own."""
    made = new_server(tmp_path_factory.mktemp("mariadb"))
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
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of a test's own, with an empty database: its binlog has no other changes."""
    made = new_server(tmp_path / "server")
    try:
        made.start()
        made.execute("CREATE DATABASE shop")
        yield made
    finally:
        made.close()
