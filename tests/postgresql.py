"""A PostgreSQL server of a test's own, with a password, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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


def environment(server: PostgresServer) -> dict[str, str]:
    """The variables by which the projects of tests name the user of a server."""
    return {USER_VARIABLE: server.user, PASSWORD_VARIABLE: server.password}
