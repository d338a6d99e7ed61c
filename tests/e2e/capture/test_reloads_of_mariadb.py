"""Loads on a schedule of a MariaDB without binlog: a table gets what differs, and no more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.capture.mysql.capturing import FOLDER, Process, settings_of
from tests.e2e.capture.test_reloads_of_postgresql import rows, versions
from tests.mariadb import new_server
from tests.oracle.packs.driver import CliDriver
from tests.projects import write_project

pytestmark = pytest.mark.slow

STORAGE = f"""\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {{path: {FOLDER}, format: debezium}}
defaults: {{history: true}}
"""


def test_each_load_gives_a_table_what_differs(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", shop=STORAGE)
    landing = project / "landing"
    landing.mkdir()
    server = new_server(tmp_path / "server", {"skip_log_bin": "1"})
    try:
        server.start()
        server.execute("CREATE DATABASE shop")
        server.execute(
            "CREATE TABLE orders (id INT PRIMARY KEY, n INT)",
            "INSERT INTO orders SELECT seq, seq % 3 FROM seq_1_to_500",
            database="shop",
        )
        changes = (
            "UPDATE shop.orders SET n = 7 WHERE id = 3",
            "INSERT INTO shop.orders VALUES (1000, 5)",
            "DELETE FROM shop.orders WHERE n = 1",
        )
        once: Counter[str] = Counter(L=500)
        for change, left in (
            (["DO 1"], once),
            (["DO 1"], once),
            (changes, once + Counter(u=1, i=1, d=167)),
            (["DO 1"], once + Counter(u=1, i=1, d=167)),
        ):
            server.execute(*change)
            settings = settings_of(
                server, landing, mode="reload", chunk_rows=200, access={"follows": False}
            )
            process = Process(settings)
            assert process.wait() == 0, process.events[-1]
            CliDriver().run_project(project, apply="always")

            there = server.execute("SELECT id, n FROM shop.orders ORDER BY id")
            assert rows(project, "orders", "id", "n") == [tuple(row) for row in there]
            assert versions(project, "orders") == left
    finally:
        server.close()
