"""One server for all tests of the folder, and an empty database for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.servers.postgresql import PostgresServer
from tests.capture.postgresql.shop import Shop
from tests.postgresql import postgres_server


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as found:
        yield found


@pytest.fixture
def shop(server: PostgresServer) -> Iterator[Shop]:
    """A database without tables; afterwards its tables, publications and slots are gone."""
    if not server.run("SELECT 1 FROM pg_database WHERE datname = 'shop'"):
        server.run("CREATE DATABASE shop TEMPLATE template0")
    found = Shop(server, "shop")
    try:
        yield found
    finally:
        found.close()
        found.clear()
