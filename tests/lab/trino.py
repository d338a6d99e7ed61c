"""A Trino that runs, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from examples.servers.maven import UnavailableError
from examples.servers.trino import TrinoServer, trino_server
from tests.absent import absent


@contextmanager
def running_trino() -> Iterator[TrinoServer]:
    """A server that runs; without one the test is skipped, in CI failed."""
    try:
        with trino_server() as server:
            yield server
    except UnavailableError as error:
        absent(str(error))
