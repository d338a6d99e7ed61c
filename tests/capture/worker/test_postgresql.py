"""The capture process beside a real PostgreSQL that is written to, killed at any moment."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.capture.compare.postgresql import ComparedPostgres
from polynya.capture.landing.log import CaptureLog
from polynya.store.object_store import LocalObjectStore
from tests.capture.worker.process import CaptureProcess
from tests.capture.worker.shop import Writer, a_shop, assert_same, landed, settings_of, transactions

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with a_shop() as one:
        yield one


def test_what_is_loaded_and_followed_is_what_the_database_has(
    server: PostgresServer, tmp_path: Path
) -> None:
    writer = Writer(server, 1)
    capture = CaptureProcess(settings_of(server, tmp_path), tmp_path / "log")
    capture.wait_for("loaded", 3)
    writer.stop()
    assert capture.stop() == 0, capture.told[-1:]

    once = CaptureProcess(settings_of(server, tmp_path, mode="once"), tmp_path / "log")

    assert once.ended() == 0, once.told[-1:]
    assert_same(server, tmp_path)
    assert transactions(landed(tmp_path))


def test_a_quiet_capture_says_how_far_it_is_when_a_comparison_asks(
    server: PostgresServer, tmp_path: Path
) -> None:
    settings = settings_of(server, tmp_path)
    capture = CaptureProcess(settings, tmp_path / "log")
    capture.wait_for("loaded", 3)
    log = CaptureLog(LocalObjectStore(tmp_path / "landing"), settings.folder)

    for _ in range(3):
        moment = ComparedPostgres(settings.access).moment()
        asked = time.monotonic()
        while (newest := log.newest()) is not None:
            if moment.is_reached(newest.position["stream"]["offset"]):
                break
            # It says it by itself once a minute.
            assert time.monotonic() < asked + 20
            time.sleep(0.1)
        moment.close()

    assert capture.stop() == 0


def test_kills_at_any_moment_lose_and_double_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    draw = random.Random(7)
    writers = [Writer(server, seed) for seed in (1, 2)]
    for batches in (1, 2, 3, 4, 6, 9):
        capture = CaptureProcess(settings_of(server, tmp_path), tmp_path / "log")
        capture.wait_for("landed", batches)
        threading.Event().wait(draw.random())
        capture.kill()
    for writer in writers:
        writer.stop()

    once = CaptureProcess(settings_of(server, tmp_path, mode="once"), tmp_path / "log")

    assert once.ended() == 0, once.told[-1:]
    assert_same(server, tmp_path)
    assert transactions(landed(tmp_path))


def test_a_server_that_is_killed_ends_the_capture_by_name(
    server: PostgresServer, tmp_path: Path
) -> None:
    capture = CaptureProcess(settings_of(server, tmp_path), tmp_path / "log")
    capture.wait_for("loaded", 3)
    server.kill()

    assert capture.ended() == 3
    error = capture.told[-1]["error"]
    assert error["retryable"]
    assert server.password not in str(capture.told)

    server.start()
    server.run("INSERT INTO a VALUES (0, 'after')")
    once = CaptureProcess(settings_of(server, tmp_path, mode="once"), tmp_path / "log")
    assert once.ended() == 0, once.told[-1:]
    assert_same(server, tmp_path)
    assert transactions(landed(tmp_path))
