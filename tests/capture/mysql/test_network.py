"""A network that delays, cuts and refuses between capture and MariaDB: nothing lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.servers.door import Door, door
from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import Process, fill, finish, settings_of
from tests.capture.mysql.test_boundaries import assert_same
from tests.capture.mysql.writing import writers


@pytest.fixture
def own(own: Server) -> Server:
    """With rows."""
    fill(own)
    return own


def capture(server: Server, landing: Path, way: Door, **more: Any) -> Process:
    """One that reaches the server through a door."""
    access = {"port": way.port}
    return Process(settings_of(server, landing, chunk_rows=100, access=access, **more))


def assert_ends_to_begin_again(process: Process) -> None:
    assert process.wait(240) == 3
    failed = process.events[-1]
    assert failed["type"] == "failed"
    assert failed["error"]["retryable"], failed


@pytest.mark.slow
def test_a_cut_within_the_load_loses_and_doubles_nothing(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    with door(own.port) as way, writers(own, 1):
        process = capture(own, landing, way)
        process.wait_until_landed(4)
        way.cut()
        assert_ends_to_begin_again(process)

    finish(own, landing)

    assert_same(own, landing)


@pytest.mark.slow
def test_a_network_that_delays_and_cuts_loses_and_doubles_nothing(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    with door(own.port) as way, writers(own) as busy:
        way.delay = 0.005
        for batches in (4, 30, 30):
            process = capture(own, landing, way)
            process.wait_for("landed")
            process.wait_until_landed(process.landed() + batches)
            way.cut()
            assert_ends_to_begin_again(process)
        way.is_shut = True
        assert_ends_to_begin_again(capture(own, landing, way))
        way.is_shut, way.delay = False, 0.0
        process = capture(own, landing, way)
        process.wait_for("streaming")
        process.wait_for("landed")
        process.kill()

    finish(own, landing)

    assert sum(one.transactions for one in busy) > 50
    assert_same(own, landing)
