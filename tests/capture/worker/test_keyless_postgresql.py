"""Tables without key beside a real PostgreSQL: rows that many write land once, kills or not."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.capture.postgresql.session import FAILURES
from tests.capture.worker.process import CaptureProcess
from tests.capture.worker.shop import landed, settings_of
from tests.postgresql import postgres_server

pytestmark = pytest.mark.slow

ROWS = 4000
#: Without statistics fifty rows count as a block: each chunk is one of the 22 blocks of a table, so
#: that a load has more chunks than any test counts.
CHUNK_ROWS = 50


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as one:
        one.run(
            "CREATE TABLE log (n bigint, v text)",
            "ALTER TABLE log REPLICA IDENTITY FULL",
            f"INSERT INTO log SELECT i, 'first' FROM generate_series(1, {ROWS}) i",
            "CREATE TABLE keyed (id int PRIMARY KEY, v text)",
            "INSERT INTO keyed SELECT i, 'first' FROM generate_series(1, 500) i",
        )
        yield one


class Inserter(threading.Thread):
    """Inserts without pause: short and long transactions, savepoints, rollbacks, prepared ones."""

    def __init__(self, server: PostgresServer, seed: int, tables: tuple[str, ...] = ("log",)):
        super().__init__(daemon=True)
        self._server, self._draw, self.tables = server, random.Random(seed), tables
        self._next = 1_000_000 * (seed + 1)
        self._end = threading.Event()
        self.transactions = 0

    def run(self) -> None:
        while not self._end.is_set():
            with suppress(*FAILURES):
                session = self._server.connect()
                while not self._end.is_set():
                    self._step(session)
                session.close()

    def end(self) -> None:
        self._end.set()
        self.join(60)

    def _step(self, session: object) -> None:
        run = session.run  # type: ignore[attr-defined]
        run("BEGIN")
        for _ in range(self._draw.choice((1, 1, 3, 20))):
            self._next += 1
            if self._draw.random() < 0.2:
                run("SAVEPOINT s")
            run(f"INSERT INTO {self._draw.choice(self.tables)} VALUES ({self._next}, 'new')")
            if self._draw.random() < 0.1:
                run("UPDATE keyed SET v = v || '.' WHERE id = 1")
        # Some are open while a view is taken: what they say before it is seen only after it.
        self._end.wait(self._draw.choice((0, 0, 0.01, 0.5)))
        run("ROLLBACK" if self._draw.random() < 0.1 else "COMMIT")
        self.transactions += 1


def inserters(server: PostgresServer, *tables: str) -> list[Inserter]:
    made = [Inserter(server, seed, tables or ("log",)) for seed in range(3)]
    for one in made:
        one.start()
    return made


def finish(server: PostgresServer, folder: Path) -> None:
    once = CaptureProcess(settings_of(server, folder, mode="once"), folder / "log")
    assert once.ended() == 0, once.told[-1:]


def assert_each_once(server: PostgresServer, folder: Path, *tables: str) -> None:
    """Each row of the tables has landed, and once."""
    values = [one for one in landed(folder) if one.get("op") in ("c", "r")]
    for table in tables:
        with server.connect() as session:
            there = Counter(row[0] for row in session.run(f"SELECT n FROM {table}"))
        here = Counter(one["after"]["n"] for one in values if one["source"]["table"] == table)
        assert (list(here - there)[:5], list(there - here)[:5]) == ([], []), table


@pytest.mark.parametrize(
    ("boundary", "counts"),
    [("begun", "11"), ("chunk", "159"), ("put", "12358"), ("landed", "12358"), ("told", "13")],
)
def test_kills_before_during_and_after_its_load(
    server: PostgresServer, tmp_path: Path, boundary: str, counts: str
) -> None:
    writers = inserters(server)
    small = settings_of(server, tmp_path, chunk_rows=CHUNK_ROWS, roll_seconds=0.0)
    for number in counts:
        assert CaptureProcess(small, tmp_path / "log", boundary, number).died()
    for one in writers:
        one.end()

    finish(server, tmp_path)

    assert sum(one.transactions for one in writers) > 30
    assert_each_once(server, tmp_path, "log")


def test_tables_that_come_while_others_are_followed(server: PostgresServer, tmp_path: Path) -> None:
    writers = inserters(server)
    capture = CaptureProcess(settings_of(server, tmp_path, mode="once"), tmp_path / "log")
    assert capture.ended() == 0
    for number in range(3):
        table = f"later{number}"
        server.run(
            f"CREATE TABLE {table} (n bigint, v text)",
            f"ALTER TABLE {table} REPLICA IDENTITY FULL",
            f"INSERT INTO {table} SELECT i, 'first' FROM generate_series(1, {ROWS}) i",
        )
        for one in writers:
            one.tables = (*one.tables, table)
        small = settings_of(server, tmp_path, chunk_rows=CHUNK_ROWS)
        follow = CaptureProcess(small, tmp_path / "log", *(("chunk", "7") if number else ()))
        if number:
            assert follow.died()
        else:
            follow.wait_for("loaded")
            follow.kill()
    for one in writers:
        one.end()

    finish(server, tmp_path)

    assert_each_once(server, tmp_path, "log", "later0", "later1", "later2")
