"""Loads without changes, again and again: a table is what the newest load held."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.oracle.packs.driver import CliDriver
from tests.oracle.packs.read_back import internal_table, read_pyiceberg
from tests.postgresql import postgres_server
from tests.projects import write_project

pytestmark = pytest.mark.slow

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: debezium}
defaults: {history: true}
"""
NAMES = ("public.orders", "public.log", "public.totals")


def rows(project: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    namespace, table = internal_table("shop", name)
    where = "hdr__partition = 'current'"
    found = read_pyiceberg(project, namespace, table, columns=columns, where=where)
    return sorted(tuple(row[one] for one in columns) for row in found)


def versions(project: Path, name: str) -> Counter[str]:
    """How many versions of a table each operation has made."""
    namespace, table = internal_table("shop", name)
    where = "hdr__partition IN ('current', 'prior')"
    found = read_pyiceberg(project, namespace, table, columns=["hdr__operation"], where=where)
    return Counter(row["hdr__operation"] for row in found)


def test_tables_views_and_tables_without_key_are_what_the_newest_load_held(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", shop=STORAGE)
    (project / "landing").mkdir()
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(
            "CREATE TABLE orders (id int PRIMARY KEY, n int)",
            "INSERT INTO orders SELECT i, i % 3 FROM generate_series(1, 500) i",
            "CREATE TABLE log (line text)",
            "INSERT INTO log VALUES ('a'), ('a'), ('b')",
            "CREATE VIEW totals AS SELECT n, count(*) AS orders FROM orders GROUP BY n",
        )
        capture = CaptureProcess(project / "landing", shop.access(), {"include": NAMES})

        once: Counter[str] = Counter(L=500)
        changes = (
            "UPDATE orders SET n = 7 WHERE id = 3",
            "INSERT INTO orders VALUES (1000, 5)",
            "DELETE FROM orders WHERE n = 1",
        )
        for change, left in (
            (["SELECT 1"], once),
            (["SELECT 1"], once),
            (changes, once + Counter(u=1, i=1, d=167)),
            (["SELECT 1"], once + Counter(u=1, i=1, d=167)),
        ):
            shop.run(*change, "DELETE FROM log WHERE line = 'b'")
            capture.finish("reload")
            CliDriver().run_project(project, apply="always")

            orders = shop.run("SELECT id, n FROM orders ORDER BY 1")
            totals = shop.run("SELECT n, orders FROM totals ORDER BY 1")
            assert rows(project, "orders", "id", "n") == [tuple(row) for row in orders]
            assert rows(project, "totals", "n", "orders") == [tuple(row) for row in totals]
            assert rows(project, "log", "line") == [("a",), ("a",)]
            assert versions(project, "orders") == left
            assert versions(project, "log") == {"L": 2}
        assert shop.run("SELECT slot_name FROM pg_replication_slots") == []
        shop.close()
