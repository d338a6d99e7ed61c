"""Load and stream together are the database, whoever writes meanwhile and whoever is killed.

The argument is in `docs/capture-postgresql.md`; here writers try to refute it. A short form is in
`test_network.py`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from examples.servers.postgresql import PostgresServer
from polynya.capture.postgresql.database import PostgresDatabase
from polynya.capture.postgresql.session import FAILURES
from tests.capture.postgresql.captured import UNSENT, CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.postgresql import postgres_server

pytestmark = pytest.mark.slow

ROWS = 3000
TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, v int, paid numeric(12, 2), note text)",
    "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL",
    "CREATE TABLE lines (order_id int, no text, n int DEFAULT 5, PRIMARY KEY (order_id, no))",
    "CREATE TABLE queue (id int PRIMARY KEY, v int)",
    f"INSERT INTO orders SELECT i, 0, i / 7.0, repeat('x', 3000) FROM generate_series(1, {ROWS}) i",
    f"INSERT INTO lines SELECT i, 'a' || i % 5, NULL FROM generate_series(1, {ROWS}) i",
    "INSERT INTO queue SELECT i, 0 FROM generate_series(1, 300) i",
)


class Writer(threading.Thread):
    """Changes rows at random until it is told to end; goes on when the server is back."""

    def __init__(
        self, server: PostgresServer, database: str, seed: int, *, truncates: bool = True
    ) -> None:
        super().__init__(daemon=True)
        self._server, self._database = server, database
        self._truncates = truncates
        self._random = random.Random(seed)
        self._next = 1_000_000 * (seed + 1)
        self._end = threading.Event()
        self.written = 0

    def run(self) -> None:
        while not self._end.is_set():
            with suppress(*FAILURES):
                session = self._server.connect(database=self._database)
                while not self._end.is_set():
                    session.run("BEGIN")
                    for _ in range(self._random.choice([1, 1, 1, 2, 5])):
                        session.run(self._statement())
                    session.run(self._random.choice(["COMMIT"] * 9 + ["ROLLBACK"]))
                    self.written += 1
                    time.sleep(0.005)
                session.close()
            time.sleep(0.1)

    def end(self) -> None:
        self._end.set()
        self.join(60)

    def _statement(self) -> str:
        row, self._next = self._random.randint(1, ROWS), self._next + 1
        return self._random.choices(
            [
                f"UPDATE orders SET v = {self._next} WHERE id = {row}",
                f"UPDATE orders SET note = repeat('{row}', 2000) WHERE id = {row}",
                f"DELETE FROM orders WHERE id = {row}",
                f"INSERT INTO orders VALUES ({self._next}, 1, 2.5, NULL)",
                f"UPDATE lines SET order_id = {self._next} WHERE order_id = {row}",
                f"UPDATE lines SET n = NULL, no = no || 'é' WHERE order_id = {row}",
                f"INSERT INTO lines (order_id, no) VALUES ({self._next}, '')",
                f"INSERT INTO queue VALUES ({self._next}, 0) ON CONFLICT (id) DO NOTHING",
                "TRUNCATE queue",
            ],
            weights=[30, 10, 8, 10, 10, 8, 10, 13, int(self._truncates)],
        )[0]


def now_there(shop: Shop) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of the database, written as those of a load are."""
    database = PostgresDatabase(shop.access())
    tables = database.tables(("public.*",), ())
    view = database.resume(tables)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for table in tables:
        rows, after, is_last = found.setdefault(table.name, {}), None, False
        while not is_last:
            chunk = view.read(table, after, 10_000, None)
            events = [json.loads(one) for one in chunk.lines.splitlines()]
            rows |= {json.dumps(one["key"]): one["value"]["after"] for one in events}
            after, is_last = chunk.last, chunk.is_last
    view.close()
    database.close()
    return found


def assert_landed_is_there(capture: CaptureProcess, shop: Shop) -> None:
    assert_tables_are_there(capture, shop)
    assert wrong_looks(capture) == []


def assert_tables_are_there(capture: CaptureProcess, shop: Shop) -> None:
    landed, there = capture.tables(), now_there(shop)
    for name, rows in there.items():
        wrong = {key for key in {*rows, *landed[name]} if rows.get(key) != landed[name].get(key)}
        told = [(key, rows.get(key), landed[name].get(key)) for key in sorted(wrong)[:3]]
        assert not wrong, (name, len(wrong), str(told)[:2000])
    streamed = [
        (value["transaction"]["id"], value["transaction"]["total_order"])
        for line in capture.landed()
        if (value := line["value"]).get("transaction")
    ]
    assert len(streamed) == len(set(streamed))


def wrong_looks(capture: CaptureProcess) -> list[Any]:
    """Loaded rows that show something else than the changes before their place have made."""
    known: dict[Any, dict[str, Any] | None] = {}
    wrong = []
    for line in capture.ordered():
        value, source = line["value"], line["value"]["source"]
        table, after = source["table"], value["after"]
        if value["op"] == "t":
            known.update({key: None for key in known if key[0] == table})
            continue
        key = (table, json.dumps(line["key"]))
        before = known.get(key, {})
        if value["op"] == "r" and (
            before is None or any(after[name] != one for name, one in before.items())
        ):
            wrong.append((line, before))
        unsent = [name for name, one in (after or {}).items() if one == UNSENT]
        rest = {name: before[name] for name in unsent if before and name in before}
        sent = {name: one for name, one in (after or {}).items() if name not in unsent}
        known[key] = None if value["op"] == "d" else {**sent, **rest}
    return wrong


@pytest.mark.parametrize("seed", [1, 2])
def test_what_landed_is_the_database_after_kills_of_capture_and_server(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(*TABLES)
        (tmp_path / "landing").mkdir()
        capture = CaptureProcess(tmp_path / "landing", shop.access())
        writers = [Writer(server, "postgres", seed * 10 + number) for number in range(3)]
        for one in writers:
            one.start()

        capture.start()
        for killed in range(4):
            capture.wait_for("streaming", times=killed + 1)
            time.sleep(chance.random() * 3)
            if killed == 1:
                fill = "INSERT INTO later SELECT i, 'first' FROM generate_series(1, 900) i"
                shop.run("CREATE TABLE later (id int PRIMARY KEY, v text)", fill)
            if killed == 2:
                server.kill()
                server.start()
                assert capture.process is not None
                capture.process.wait(120)
            else:
                capture.kill()
            capture.start()
        capture.wait_for("streaming", times=5)
        time.sleep(2)
        capture.kill()
        for one in writers:
            one.end()
        assert sum(one.written for one in writers) > 100
        capture.finish()

        assert_landed_is_there(capture, shop)
        shop.close()


def test_the_first_change_after_a_later_view_wins_over_its_rows(shop: Shop, tmp_path: Path) -> None:
    shop.run(*TABLES)
    (tmp_path / "landing").mkdir()
    capture = CaptureProcess(tmp_path / "landing", shop.access())
    capture.finish()
    for change in range(3):
        # What commits last before the view is of no captured table, so the stream has no place.
        shop.run("DROP TABLE IF EXISTS apart", "CREATE UNLOGGED TABLE apart (n int)")
        capture.settings = {"exclude": ("public.apart",)}
        new = f"new_{change}"
        shop.run(
            f"CREATE TABLE {new} (id int PRIMARY KEY, v int)",
            f"INSERT INTO {new} SELECT i, 0 FROM generate_series(1, 500) i",
        )
        capture.start()
        capture.wait_for("streaming", times=1 + 2 * change + 1)
        shop.run(f"UPDATE {new} SET v = 1")
        capture.kill()
        capture.finish()

        assert_landed_is_there(capture, shop)
