"""From a real PostgreSQL to the live views in short: load, stream, a kill, `polynya compare`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.oracle.packs.driver import CommandDriver
from tests.postgresql import connect, postgres_server
from tests.projects import write_project

CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: shop
connection: shop
tables: {include: ["public.*"]}
load: {chunk_rows: 200}
write: {roll: {age: 1s}}
"""
STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: sales
schema: shop
landing: {path: shop, format: debezium}
"""
TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, v text NOT NULL, n numeric(12,2), at timestamptz)",
    "INSERT INTO orders SELECT i, 'n' || i, i / 4.0, '2026-01-01' FROM generate_series(1, 500) i",
    "CREATE TABLE basket (id int PRIMARY KEY, v text)",
    "INSERT INTO basket SELECT i, 'b' FROM generate_series(1, 50) i",
)
#: While a capture follows; it is killed as soon as some of it has landed.
SEEN = (
    "UPDATE orders SET v = 'changed' WHERE id <= 10",
    "DELETE FROM orders WHERE id BETWEEN 20 AND 29",
    "INSERT INTO orders VALUES (900, 'new', 1.25, NULL)",
)
UNSEEN = (
    "UPDATE orders SET id = id + 1000 WHERE id BETWEEN 30 AND 39",
    "TRUNCATE basket",
    "INSERT INTO basket VALUES (7, 'after')",
    "ALTER TABLE orders ADD COLUMN state text DEFAULT 'open'",
    "INSERT INTO orders VALUES (901, 'own', 2, NULL, 'closed'), (902, 'none', 3, NULL, NULL)",
    "DELETE FROM orders WHERE id = 900",
)
#: The comparison has its view of the database.
WAITS = (
    "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' "
    "AND query LIKE '%pg_current_wal_insert_lsn%server_encoding%'"
)


@pytest.fixture
def shop() -> Iterator[Shop]:
    with postgres_server() as server:
        server.run("CREATE DATABASE shop")
        made = Shop(server, "shop")
        made.run(*TABLES)
        yield made
        made.close()


@pytest.fixture
def project(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_project(tmp_path / "project", shop=CAPTURE, sales=STORAGE)
    connect(folder, shop.server)
    monkeypatch.setenv("SHOP_PW", shop.server.password)
    return folder


@contextmanager
def comparing(shop: Shop, project: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """What `polynya compare` says of each table, which waits in the block for what there is now."""
    found: dict[str, dict[str, Any]] = {}
    command = [sys.executable, "-m", "polynya", "compare", "shop", "--json", "--wait", "300"]
    with subprocess.Popen(
        [*command, "--project", str(project)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        while process.poll() is None and not shop.run(WAITS):
            time.sleep(0.2)
        try:
            yield found
        except BaseException:
            process.kill()
            raise
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    said = [json.loads(line) for line in printed.splitlines()]
    found.update({one["table"]: one for one in said if one["type"] == "table.compared"})


@pytest.mark.slow
def test_a_live_view_is_its_table_though_the_capture_was_killed(
    shop: Shop, project: Path, driver: CommandDriver
) -> None:
    once = ("run", "--once", "--project", str(project))
    assert driver.call(*once).code == 0
    capture = CaptureProcess(project / "landing", shop.access())
    capture.start()
    capture.wait_for("streaming")
    shop.run(*SEEN)
    capture.wait_for_line("orders", id=900)
    shop.run(*UNSEEN)
    capture.kill()

    with comparing(shop, project) as found:
        assert driver.call(*once).code == 0

    rows = {name: (one["source_rows"], one["current_rows"]) for name, one in found.items()}
    assert rows == {"public.orders": (492, 492), "public.basket": (1, 1)}
    assert "state" in found["public.orders"]["compared"]
    assert found["public.orders"]["not_compared"] == []
