"""A capture is killed at each of its boundaries, beside a real PostgreSQL that is written to.

What its log then makes of the tables must be what the database has, each change once. That a check
would notice the opposite is shown by captures with a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.postgresql import PostgresServer
from tests.capture.worker.deadly import BOUNDARIES, FAULTS
from tests.capture.worker.kills import Kills
from tests.capture.worker.process import CaptureProcess
from tests.capture.worker.shop import Writer, a_shop, assert_same, settings_of


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with a_shop(rows=300) as one:
        yield one


def finish(server: PostgresServer, folder: Path) -> None:
    """A capture that nobody kills, up to where the database is."""
    once = CaptureProcess(settings_of(server, folder, mode="once"), folder / "log")
    assert once.ended() == 0, once.told[-1:]


def large_transaction(server: PostgresServer, rows: int = 3000) -> None:
    """Its batches end inside of it; rows of one COPY and both halves of a key share places."""
    server.run(
        f"INSERT INTO a SELECT 10000 + i, 'large' FROM generate_series(1, {rows}) i; "
        "UPDATE a SET id = id + 100000 WHERE id > 10000; DELETE FROM a WHERE id % 3 = 0"
    )


def killed_inside_of_a_transaction(server: PostgresServer, folder: Path, *how: str) -> None:
    """Load all, then kill while a large transaction lands."""
    settings = settings_of(server, folder, mode="follow", roll_bytes=2**16, roll_seconds=0.0)
    capture = CaptureProcess(settings, folder / "log", *how)
    capture.wait_for("loaded", 3)
    large_transaction(server)
    assert capture.died(), capture.told[-1:]


def test_a_kill_inside_of_a_large_transaction_loses_and_doubles_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    killed_inside_of_a_transaction(server, tmp_path, "inside", "2")

    finish(server, tmp_path)

    assert_same(server, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_kill_at_a_boundary_loses_and_doubles_nothing(
    server: PostgresServer, tmp_path: Path, boundary: str
) -> None:
    if boundary == "resumed":
        CaptureProcess(settings_of(server, tmp_path), tmp_path / "log", "chunk", "3").ended()
    writer = Writer(server, 1)
    small = settings_of(server, tmp_path, chunk_rows=50, roll_bytes=2**16, roll_seconds=0.0)
    for count in ("1", "1") if boundary in {"begun", "resumed"} else ("2", "5", "9"):
        capture = CaptureProcess(small, tmp_path / "log", boundary, count)
        if boundary == "inside":
            capture.wait_for("streaming")
            large_transaction(server)
        assert capture.died(), capture.told[-1:]
    writer.stop()

    finish(server, tmp_path)

    assert_same(server, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_capture_would_be_noticed(
    server: PostgresServer, tmp_path: Path, fault: str
) -> None:
    count = "8" if fault == "position_first" else "2"
    killed_inside_of_a_transaction(server, tmp_path, fault, count)
    finish(server, tmp_path)

    with pytest.raises(AssertionError):
        assert_same(server, tmp_path)


@pytest.mark.slow
def test_of_two_captures_that_begin_at_once_one_stops_by_name(
    server: PostgresServer, tmp_path: Path
) -> None:
    writer = Writer(server, 1)
    settings = settings_of(server, tmp_path, chunk_rows=20)
    both = [CaptureProcess(settings, tmp_path / f"log-{n}") for n in (1, 2)]
    codes = {}
    while not codes:
        for one in both:
            if one.process.poll() is not None:
                codes[one] = one.ended()
    for one in both:
        if one not in codes:
            one.kill()
    writer.stop()
    for one, code in codes.items():
        assert code == 3
        assert one.told[-1]["error"]["code"] in {
            "POLYNYA-GTW-004", "POLYNYA-GTW-006", "POLYNYA-GTW-008", "POLYNYA-GTW-028",
        }  # fmt: skip

    finish(server, tmp_path)

    assert_same(server, tmp_path)


@pytest.mark.slow
def test_kills_that_are_drawn_lose_and_double_nothing(
    server: PostgresServer, tmp_path: Path
) -> None:
    outcome = Kills(server, tmp_path, 2, print).run(8)

    assert sum(outcome.kills.values()) == 8
