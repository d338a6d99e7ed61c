"""Extractions by a column, and tables that are compared on a schedule, as whole processes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from polynya.capture.wire import GrowingSettings
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop
from tests.e2e.capture.test_reloads_of_postgresql import STORAGE, rows, versions
from tests.oracle.packs.driver import CliDriver
from tests.postgresql import postgres_server
from tests.projects import write_project

pytestmark = pytest.mark.slow


def test_an_extraction_makes_versions_of_what_changed_and_a_compare_finds_deletes(
    tmp_path: Path,
) -> None:
    project = write_project(tmp_path / "project", shop=STORAGE)
    (project / "landing").mkdir()
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(
            "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz, n int)",
            "INSERT INTO orders SELECT i, now(), i % 3 FROM generate_series(1, 500) i",
            "CREATE VIEW totals AS SELECT n, max(at) AS at, count(*) AS orders FROM orders"
            " GROUP BY n",
        )
        settings = {
            "include": ("public.orders", "public.totals"),
            "growing": {"*": GrowingSettings("at", overlap_seconds=60.0)},
            "reload_schedule": "0 0 1 1 *",
            "chunk_rows": 200,
        }
        access = shop.access(follows=False, keys={"public.totals": ("n",)})
        capture = CaptureProcess(project / "landing", access, settings)
        seen = []
        for change in (
            ("SELECT 1",),
            ("SELECT 1",),
            ("UPDATE orders SET n = 7, at = now() WHERE id = 3",
             "INSERT INTO orders VALUES (1000, now(), 7)", "DELETE FROM orders WHERE id = 5"),
        ):  # fmt: skip
            shop.run(*change)
            capture.finish("reload")
            CliDriver().run_project(project, apply="always")
            seen.append(versions(project, "orders"))
        before = rows(project, "orders", "id", "n")
        whole = CaptureProcess(
            project / "landing", access, {**settings, "growing": {"*": GrowingSettings("id")}}
        )
        # Another column: all rows are read, and compared.
        shop.run("DROP VIEW totals", "CREATE VIEW totals AS SELECT 1 AS id, 1 AS n, 5 AS orders")
        whole.finish("reload")
        CliDriver().run_project(project, apply="always")

        orders = [tuple(row) for row in shop.run("SELECT id, n FROM orders ORDER BY 1")]
        assert seen == [{"L": 500}, {"L": 500}, {"L": 500, "u": 1, "i": 1}]
        assert set(before) - set(orders) == {(5, 2)}
        assert rows(project, "orders", "id", "n") == orders
        assert versions(project, "orders") == {"L": 500, "u": 1, "i": 1, "d": 1}
        assert rows(project, "totals", "n", "orders") == [(1, 5)]
        assert shop.run("SELECT slot_name FROM pg_replication_slots") == []
        shop.close()


def test_a_table_that_lacks_changes_is_repaired_by_its_scheduled_reload(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", shop=STORAGE)
    (project / "landing").mkdir()
    with postgres_server() as server:
        shop = Shop(server, "postgres")
        shop.run(
            "CREATE TABLE orders (id int PRIMARY KEY, n int)",
            "INSERT INTO orders SELECT i, i % 3 FROM generate_series(1, 500) i",
        )
        settings = {
            "include": ("public.orders",), "reload_schedule": "* * * * *", "chunk_rows": 200,
        }  # fmt: skip
        capture = CaptureProcess(project / "landing", shop.access(), settings)
        capture.finish("once")
        minute = time.time() // 60
        (publication,) = shop.run("SELECT pubname FROM pg_publication")[0]
        # Changes that are not in the stream, and nobody can tell.
        shop.run(
            f"ALTER PUBLICATION {publication} DROP TABLE orders",
            "UPDATE orders SET n = 9 WHERE id = 1",
            "DELETE FROM orders WHERE id = 2",
            f"ALTER PUBLICATION {publication} ADD TABLE orders",
        )
        while time.time() // 60 == minute:
            time.sleep(1)
        capture.finish("once")
        CliDriver().run_project(project, apply="always")

        orders = [tuple(row) for row in shop.run("SELECT id, n FROM orders ORDER BY 1")]
        found = versions(project, "orders")
        assert rows(project, "orders", "id", "n") == orders
        assert (found["u"], found["d"]) == (1, 1)
        assert found["L"] == 500
        shop.close()
