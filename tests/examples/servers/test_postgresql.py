"""The PostgreSQL server of tests and demos, and the door before it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pg8000.native
import pytest

from examples.servers.door import certificate, door
from examples.servers.postgresql import PostgresServer
from tests.postgresql import postgres_server

FAILURES = (pg8000.native.Error, OSError)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as found:
        yield found


def test_what_was_committed_is_there_after_it_was_killed_and_started(
    server: PostgresServer,
) -> None:
    server.run("CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1), (2)")
    session = server.connect()

    server.kill()
    server.start()

    assert server.run("SELECT count(*) FROM kept") == [[2]]
    with pytest.raises(FAILURES):
        session.run("SELECT 1")


def test_it_asks_for_a_password_and_writes_what_logical_decoding_needs(
    server: PostgresServer,
) -> None:
    with pytest.raises(pg8000.native.DatabaseError, match="28P01"):
        server.connect(password="wrong")

    assert server.run("SHOW wal_level") == [["logical"]]
    server.run("SELECT pg_create_logical_replication_slot('one', 'pgoutput', true)")


def test_through_the_door_goes_tls_only_and_its_certificate_holds(
    server: PostgresServer, tmp_path: Path
) -> None:
    shown = certificate(tmp_path)
    trusted = ssl.create_default_context(cafile=str(shown))

    with door(server.port, certificate=shown) as tls:
        session = server.connect(port=tls.port, ssl_context=trusted)
        assert session.run("SELECT 1") == [[1]]
        session.close()
        with pytest.raises(FAILURES):
            server.connect(port=tls.port, ssl_context=ssl.create_default_context())
        with pytest.raises(FAILURES):
            server.connect(port=tls.port, ssl_context=False)


def test_a_door_cuts_shuts_and_slows(server: PostgresServer) -> None:
    with door(server.port) as way:
        session = server.connect(port=way.port)
        way.shut()
        with pytest.raises(FAILURES):
            session.run("SELECT 1")
        with pytest.raises(FAILURES):
            server.connect(port=way.port)

        way.is_shut = False
        session = server.connect(port=way.port)
        way.delay, begun = 0.1, time.monotonic()
        assert session.run("SELECT 1") == [[1]]
        session.close()

    assert time.monotonic() - begun >= 0.1
