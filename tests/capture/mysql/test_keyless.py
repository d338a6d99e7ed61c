"""Tables without key beside a real MariaDB: rows that many insert land once, kills or not."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import Process, finish, header, lines, settings_of
from tests.mariadb import new_server

pytestmark = pytest.mark.slow

ROWS = 5000


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of a test's own, with a log of rows that has no key."""
    server = new_server(tmp_path / "server")
    try:
        server.start()
        server.execute("CREATE DATABASE shop")
        a_log(server, "log")
        server.execute(
            "CREATE TABLE keyed (id INT PRIMARY KEY, v VARCHAR(200))",
            "INSERT INTO keyed SELECT seq, 'x' FROM seq_1_to_500",
            database="shop",
        )
        yield server
    finally:
        server.close()


def a_log(server: Server, name: str) -> None:
    server.execute(
        f"CREATE TABLE {name} (n BIGINT, v VARCHAR(20))",
        f"INSERT INTO {name} SELECT seq, 'first' FROM seq_1_to_{ROWS}",
        database="shop",
    )


class Inserter(threading.Thread):
    """Inserts in transactions of many lengths until it is told to end."""

    def __init__(self, server: Server, seed: int) -> None:
        super().__init__(daemon=True)
        self._server, self._draw, self.tables = server, random.Random(seed), ["log"]
        self._next = 1_000_000 * (seed + 1)
        self._ended = threading.Event()
        self.transactions = 0

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                session = self._server.connect("shop", autocommit=False)
                with session.cursor() as cursor:
                    while not self._ended.is_set():
                        self._step(session, cursor)
            except Exception:
                time.sleep(0.2)

    def end(self) -> None:
        self._ended.set()
        self.join(60)

    def _step(self, session: Any, cursor: Any) -> None:
        for _ in range(self._draw.choice((1, 1, 3, 20))):
            self._next += 1
            table = self._draw.choice(self.tables)
            cursor.execute(f"INSERT INTO {table} VALUES ({self._next}, 'new')")
        self._ended.wait(self._draw.choice((0, 0, 0.01, 0.3)))
        (session.rollback if self._draw.random() < 0.1 else session.commit)()
        self.transactions += 1


def inserters(server: Server) -> list[Inserter]:
    made = [Inserter(server, seed) for seed in range(3)]
    for one in made:
        one.start()
    return made


def assert_each_once(server: Server, landing: Path, *tables: str) -> None:
    """Each row of the tables has landed, and once."""
    found = [one["value"] for one in lines(landing) if one["value"].get("op") in ("c", "r")]
    for table in tables:
        rows = server.execute(f"SELECT n FROM {table}", database="shop")
        there = Counter(int(row[0]) for row in rows)
        here = Counter(one["after"]["n"] for one in found if one["source"]["table"] == table)
        assert (list(here - there)[:5], list(there - here)[:5]) == ([], []), table


def test_kills_before_during_and_after_its_load(own: Server, tmp_path: Path) -> None:
    landing, draw = tmp_path / "landing", random.Random(5)
    writers = inserters(own)
    for batches in (1, 1, 2, 2, 3, 4, 6):
        process = Process(settings_of(own, landing, chunk_rows=100, roll_seconds=0.0))
        process.wait_for("landed")
        seen, deadline = process.landed(), time.monotonic() + 20
        while process.landed() < seen + batches and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(draw.choice((0, 0, 0.01, 0.1)))
        process.kill()
    for one in writers:
        one.end()

    finish(own, landing)

    assert sum(one.transactions for one in writers) > 30
    assert_each_once(own, landing, "log")


def test_a_table_that_comes_while_others_are_followed(own: Server, tmp_path: Path) -> None:
    """Its rows are in the stream from its first on, before anybody has looked for tables."""
    landing = tmp_path / "landing"
    writers = inserters(own)
    process = Process(settings_of(own, landing))
    process.wait_for("loaded")
    for number in range(2):
        a_log(own, f"later{number}")
        for one in writers:
            one.tables.append(f"later{number}")
        if number == 0:
            until(lambda: "shop.later0" in header(landing)["position"].get("left_out", {}))
            process.kill()
            process = Process(settings_of(own, landing, chunk_rows=100))
            process.wait_for("streaming")
    time.sleep(2)
    process.kill()
    for one in writers:
        one.end()

    finish(own, landing)

    assert_each_once(own, landing, "log", "later0", "later1")
    assert "left_out" not in json.dumps(header(landing)["position"])


def test_one_of_an_engine_without_transactions_is_suspended_by_name(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    own.execute(
        "CREATE TABLE old (n BIGINT) ENGINE = MyISAM", "INSERT INTO old VALUES (1)", database="shop"
    )

    finish(own, landing)

    progress = header(landing)["position"]["tables"]
    assert progress["shop.old"]["state"] == "suspended"
    assert progress["shop.old"]["why"].startswith("POLYNYA-GTW-051")
    assert progress["shop.log"]["state"] == "loaded"
    assert_each_once(own, landing, "log")


def until(what: Any) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)
