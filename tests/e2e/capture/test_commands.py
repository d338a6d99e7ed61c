"""A real PostgreSQL, captured by the commands that people type; its capture process is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.postgresql import PostgresServer
from tests.postgresql import connect, postgres_server
from tests.projects import write_project

pytestmark = pytest.mark.slow

CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: shop_db
connection: shop
tables: {include: ["public.*"]}
load: {chunk_rows: 1000}
write: {roll: {age: 1s}}
errors: {environment: {from: 1s, to: 5s}}
mask: {public.people: {ssn: drop, mail: {truncate: 1}}}
"""
STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop_db, format: debezium}
"""
_PATIENCE = 240.0


class Lab:
    """A project beside a server, and commands over it."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        write_project(folder, shop_db=CAPTURE, shop=STORAGE)
        connect(folder, server)
        self._environment = {**os.environ, "SHOP_PW": server.password}

    def sql(self, *statements: str) -> Any:
        return self.server.run(*statements, database="shop")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "polynya", *arguments, "--project", str(self.folder)]
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def call(self, *arguments: str) -> list[dict[str, Any]]:
        process = self.start(*arguments, "--json")
        out, err = process.communicate(timeout=_PATIENCE)
        assert process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def rows(self, statement: str) -> list[dict[str, Any]]:
        return self.call("query", statement)

    def states(self) -> dict[str, str]:
        status = self.call("landing", "status", "--offline")[-1]
        return {one["table"]: one["state"] for one in status.get("tables", [])}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with postgres_server() as server:
        server.run("CREATE DATABASE shop TEMPLATE template0")
        found = Lab(server, tmp_path / "project")
        found.sql(
            "CREATE TABLE orders (id bigint PRIMARY KEY, name text, amount numeric(12,2))",
            "INSERT INTO orders SELECT g, 'n' || g, g * 1.5 FROM generate_series(1, 20000) g",
            "CREATE TABLE people (id int PRIMARY KEY, ssn text, mail text)",
            "INSERT INTO people VALUES (1, '123', 'ana@b'), (2, '456', 'bob@d')",
        )
        yield found


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not what():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.5)


def worker_of(run: subprocess.Popen[str]) -> int | None:
    """The capture process that a run has started."""
    for entry in Path("/proc").iterdir():
        try:
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status[1]) == run.pid and b"polynya.capture.worker" in command:
            return int(entry.name)
    return None


def test_a_run_captures_and_makes_tables_while_its_capture_is_killed(lab: Lab) -> None:
    assert lab.call("connection", "test", "shop")[-1]["ok"]
    run = lab.start("run")
    until(lambda: set(lab.states().values()) == {"running"})

    lab.sql("UPDATE orders SET name = 'changed' WHERE id <= 100")
    killed = worker_of(run)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    lab.sql("DELETE FROM orders WHERE id > 19990", "INSERT INTO people VALUES (3, '7', 'eve@f')")
    until(lambda: worker_of(run) not in {None, killed})
    lab.sql("UPDATE orders SET amount = 0 WHERE id = 7")
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=_PATIENCE)
    assert lab.sql("SELECT active FROM pg_replication_slots") == [[False]]
    lab.call("run", "--once", "--apply", "always")

    [found] = lab.rows(
        "SELECT count(*) n, sum(amount) total, sum(CASE WHEN name = 'changed' THEN 1 ELSE 0 END) c "
        "FROM shop.orders"
    )
    [[count, total]] = lab.sql("SELECT count(*), sum(amount)::text FROM orders")
    assert (found["n"], f"{float(found['total']):.2f}", found["c"]) == (count, total, 100)
    assert lab.rows("SELECT * FROM shop.people ORDER BY id") == [
        {"id": 1, "mail": "a"}, {"id": 2, "mail": "b"}, {"id": 3, "mail": "e"},
    ]  # fmt: skip


def test_a_capture_without_spark_is_stopped_resumed_and_dropped(lab: Lab) -> None:
    assert lab.call("landing", "run", "--once")[-1]["landed"] >= 20_002
    lab.call("landing", "stop", "shop_db")
    lab.sql("INSERT INTO people VALUES (3, '7', 'eve@f')")
    assert lab.call("landing", "run", "--once")[-1]["landed"] == 0

    lab.call("landing", "resume", "shop_db")
    assert lab.call("landing", "run", "--once")[-1]["landed"] >= 1
    lab.call("landing", "drop", "shop_db", "--yes")

    assert lab.sql("SELECT * FROM pg_replication_slots") == []
    assert lab.sql("SELECT * FROM pg_publication") == []
