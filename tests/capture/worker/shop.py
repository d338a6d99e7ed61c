"""A shop in PostgreSQL that is written to without pause, and what a capture of it has landed."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pg8000.native

from examples.servers.postgresql import PostgresServer
from polynya.capture.postgresql.session import FAILURES
from polynya.capture.source import Access
from polynya.capture.wire import WorkerSettings
from polynya.store.object_store import LocalObjectStore
from tests.capture.deadly_store import folded, landed_values
from tests.postgresql import postgres_server

ROWS = 3000
TABLES = ("a", "b", "c")


@contextmanager
def a_shop(rows: int = ROWS) -> Iterator[PostgresServer]:
    """A server with three tables that have rows."""
    with postgres_server() as one:
        for name in TABLES:
            one.run(
                f"CREATE TABLE {name} (id int PRIMARY KEY, v text)",
                f"INSERT INTO {name} SELECT i, 'first ' || i FROM generate_series(1, {rows}) i",
            )
        yield one


def settings_of(server: PostgresServer, folder: Path, **changes: Any) -> WorkerSettings:
    access = Access(
        "postgresql", server.host, server.port, server.database, server.user, server.password,
        tls="disable", task="shop",
    )  # fmt: skip
    usual: dict[str, Any] = {
        "task": "shop", "mode": "follow", "access": access, "landing": str(folder / "landing"),
        "folder": "shop", "include": ("public.%",), "parallel": 2, "chunk_rows": 500,
        "roll_seconds": 0.2,
    }  # fmt: skip
    return WorkerSettings(**{**usual, **changes})


class Writer:
    """Writes without pause: long transactions, changes of keys, COPY, rollbacks, truncates."""

    def __init__(self, server: PostgresServer, seed: int) -> None:
        self._server, self._random = server, random.Random(seed)
        self._stop = threading.Event()
        self.next_id = 1_000_000 * (seed + 1)
        self.transactions = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            # A server that is killed comes back.
            with suppress(*FAILURES):
                session = self._server.connect()
                self._write(session)
                session.close()
            self._stop.wait(0.1)

    def _write(self, session: Any) -> None:
        while not self._stop.is_set():
            try:
                self._step(session)
            except pg8000.native.DatabaseError:
                session.run("ROLLBACK")  # Two writers waited for each other.
            self.transactions += 1
            self._stop.wait(0.02)

    def _step(self, session: Any) -> None:
        draw = self._random
        session.run("BEGIN")
        for _ in range(draw.randrange(1, 12)):
            table, key = draw.choice(TABLES), draw.randrange(1, ROWS)
            self.next_id += 1
            what = draw.randrange(10)
            if what < 4:
                session.run(f"UPDATE {table} SET v = v || '.' WHERE id = {key}")
            elif what < 6:
                session.run(f"INSERT INTO {table} VALUES ({self.next_id}, 'new')")
            elif what < 7:
                session.run(f"DELETE FROM {table} WHERE id = {key}")
            elif what < 8:
                session.run(f"UPDATE {table} SET id = {self.next_id} WHERE id = {key}")
            else:
                lines = "".join(f"{self.next_id + n}\tcopied\n" for n in range(30))
                self.next_id += 30
                session.run(f"COPY {table} FROM STDIN", stream=io.StringIO(lines))
        session.run("ROLLBACK" if draw.randrange(10) == 0 else "COMMIT")
        if draw.randrange(200) == 0:
            session.run("TRUNCATE a, b")


def in_the_database(server: PostgresServer) -> dict[str, dict[int, str]]:
    with server.connect() as session:
        return {f"public.{name}": dict(session.run(f"SELECT id, v FROM {name}")) for name in TABLES}


def landed(folder: Path) -> list[dict[str, Any]]:
    return landed_values(LocalObjectStore(folder / "landing"), "shop")


def assert_same(server: PostgresServer, folder: Path) -> None:
    """What the log makes of the tables is what the database has; no event lacks or came twice."""
    values = landed(folder)
    found: Mapping[str, Mapping[int, str]] = folded(values)
    for name, rows in in_the_database(server).items():
        assert found[name] == rows, name
    for transaction, orders in transactions(values).items():
        assert sorted(orders) == list(range(1, len(orders) + 1)), (transaction, orders)


def transactions(values: Sequence[Mapping[str, Any]]) -> Mapping[str, list[int]]:
    """The numbers of the events of each transaction that was streamed, as they landed."""
    found: dict[str, list[int]] = {}
    for value in values:
        if said := value.get("transaction"):
            found.setdefault(said["id"].split(":")[0], []).append(said["total_order"])
    return found
