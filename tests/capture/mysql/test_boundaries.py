"""A capture is killed at each of its boundaries, beside a real server that is written to.

What its log then makes of the tables must be what the database has, each change once.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import Process, fill, finish, lines, same, settings_of
from tests.capture.mysql.writing import writers
from tests.capture.worker.deadly import BOUNDARIES
from tests.mariadb import numbers

MODULE = "tests.capture.worker.deadly"
TABLES = ("shop.orders", "shop.notes")


@pytest.fixture
def own(own: Server) -> Server:
    """With rows."""
    fill(own)
    return own


def large_transaction(server: Server) -> None:
    """Its batches end inside of it."""
    session = server.connect("shop", autocommit=False)
    with session.cursor() as cursor:
        cursor.execute("DELETE FROM notes WHERE a < 20")
        cursor.execute(
            f"REPLACE INTO notes SELECT seq % 50, 10000 + seq, 'large' FROM {numbers(3000)}"
        )
        cursor.execute("UPDATE IGNORE notes SET b = b + 100000 WHERE b > 12000")
    session.commit()
    session.close()


def killed(server: Server, landing: Path, *how: str, **more: Any) -> None:
    """A capture that dies as it is told; in a large transaction where it has to."""
    given = {"chunk_rows": 200, "roll_bytes": 2**16, "roll_seconds": 0.0}
    process = Process(settings_of(server, landing, **given | more), MODULE, *how)
    if how[0] == "inside":
        process.wait_for("streaming")
        large_transaction(server)
    assert process.wait() == -signal.SIGKILL, process.events[-1]


def assert_same(server: Server, landing: Path) -> None:
    same(server, landing, *TABLES)
    changed = [
        (one["value"]["source"]["file"], one["value"]["source"]["pos"],
         one["value"]["source"]["row"], one["value"]["op"])
        for one in lines(landing)
        if one["value"].get("op") in ("c", "u", "d")
    ]  # fmt: skip
    assert len(changed) == len(set(changed))


@pytest.mark.slow
@pytest.mark.also_mysql
def test_a_kill_inside_of_a_large_transaction_loses_and_doubles_nothing(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    killed(own, landing, "inside", "2")

    finish(own, landing)

    assert_same(own, landing)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_kill_at_a_boundary_loses_and_doubles_nothing(
    own: Server, tmp_path: Path, boundary: str
) -> None:
    landing = tmp_path / "landing"
    if boundary == "resumed":
        killed(own, landing, "chunk", "3")
    with writers(own):
        for count in ("1", "1") if boundary in {"begun", "resumed"} else ("2", "5", "9"):
            killed(own, landing, boundary, count)

    finish(own, landing)

    assert_same(own, landing)
