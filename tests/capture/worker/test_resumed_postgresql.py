"""A capture of PostgreSQL that continues while transactions of its log overlap."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.store.object_store import LocalObjectStore
from tests.capture.worker.process import CaptureProcess
from tests.capture.worker.shop import landed, settings_of
from tests.postgresql import postgres_server

#: The first number of each round.
ROUNDS = range(100, 400, 100)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["keyed", "log"])
def test_a_transaction_that_writes_right_behind_another_ones_commit_lands_whole(
    tmp_path: Path, table: str
) -> None:
    with postgres_server() as server:
        server.run(
            "CREATE TABLE keyed (n int PRIMARY KEY)",
            "CREATE TABLE log (n int)",
            "ALTER TABLE log REPLICA IDENTITY FULL",
        )
        settings = settings_of(server, tmp_path, roll_seconds=0.0)
        capture = CaptureProcess(settings, tmp_path / "log")
        capture.wait_for("loaded", 2)
        with server.connect() as long, server.connect() as short:
            for begin in ROUNDS:
                long.run("BEGIN")
                long.run(f"INSERT INTO {table} VALUES ({begin + 1}), ({begin + 2})")
                short.run(f"INSERT INTO {table} VALUES ({begin})")
                # Its record begins where that of the commit ends.
                long.run(f"INSERT INTO {table} VALUES ({begin + 3})")
                wait_until_landed(tmp_path, begin)
                capture.kill()
                long.run(f"INSERT INTO {table} VALUES ({begin + 4})")
                long.run("COMMIT")
                capture = CaptureProcess(settings, tmp_path / "log")
                wait_until_landed(tmp_path, begin + 4)
            capture.kill()

        found = Counter(one["after"]["n"] for one in landed(tmp_path) if one["op"] == "c")
        wanted = {begin + number for begin in ROUNDS for number in range(5)}
        assert wanted - set(found) == set()
        if table == "log":
            assert {n for n, count in found.items() if count > 1} == set()


def wait_until_landed(folder: Path, number: int) -> None:
    """Until the row of this number has landed, and the position says that its transaction has."""
    log = CaptureLog(LocalObjectStore(folder / "landing"), "shop")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        newest = log.newest()
        numbers = {one["after"]["n"] for one in landed(folder) if one["op"] == "c"}
        stream = {"passed": None} if newest is None else newest.position["stream"]
        if number in numbers and stream.get("passed") is None:
            return
        time.sleep(0.1)
    raise AssertionError(f"{number} did not land")
