"""Tables of MariaDB that are dropped, made again and swapped: what lands is what they are now."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.formats.debezium.ddl import table_ddl
from polynya.formats.debezium.order import native_position
from tests.capture.mysql.capturing import Process, finish, header, lines, settings_of, source_rows
from tests.mariadb import busy_neighbour

pytestmark = pytest.mark.slow
MADE = "CREATE TABLE t (id INT PRIMARY KEY, n INT, b BIGINT)"
FIRST = "INSERT INTO t VALUES (1, 1, 10), (2, 2, 20)"
AFTER = "REPLACE INTO t (id, n, b) VALUES (2, 22, 200), (3, 33, 300)"
CHANGES = {
    "dropped and made": ["DROP TABLE t", MADE, AFTER],
    "dropped and made with other columns": [
        "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(9), n INT)", AFTER,
    ],
    "replaced": [MADE.replace("CREATE", "CREATE OR REPLACE"), AFTER],
    "replaced with other columns": [
        "CREATE OR REPLACE TABLE shop.t (b BIGINT, n INT, id INT PRIMARY KEY)", AFTER,
        "REPLACE INTO t (id, n, b) VALUES (4, 44, 400)",
    ],
    "replaced twice": [
        "CREATE OR REPLACE TABLE `t` (id INT PRIMARY KEY, b INT, n INT)", AFTER,
        "CREATE OR REPLACE TABLE t (n INT, b INT, id INT PRIMARY KEY)", AFTER,
    ],
    "replaced from a query": [
        "CREATE OR REPLACE TABLE t (PRIMARY KEY (id)) AS SELECT 7 AS id, 'x' AS b, 70 AS n",
    ],
    "truncated": ["TRUNCATE t", AFTER],
    "swapped": [
        "CREATE TABLE new LIKE t", "INSERT INTO new VALUES (5, 55, 500)",
        "RENAME TABLE t TO old, new TO t", AFTER,
    ],
    "swapped for a copy": [
        "CREATE TABLE `_t_new` LIKE t", "ALTER TABLE _t_new ADD COLUMN m INT DEFAULT 7",
        "INSERT INTO _t_new (id, n, b) SELECT id, n, b FROM t",
        "RENAME TABLE t TO _t_old, _t_new TO t", "DROP TABLE _t_old", AFTER,
    ],
    "renamed away and another renamed": [
        "ALTER TABLE t RENAME TO old", "CREATE TABLE new LIKE old",
        "INSERT INTO new VALUES (6, 1, 1)",
        "ALTER TABLE new RENAME t", AFTER,
    ],
    "with its database": ["DROP DATABASE shop", "CREATE DATABASE shop", "USE shop", MADE, AFTER],
    "parts exchanged": [
        "ALTER TABLE t PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (100))",
        "CREATE TABLE part (id INT PRIMARY KEY, n INT, b BIGINT)",
        "INSERT INTO part VALUES (9, 9, 9)",
        "ALTER TABLE t EXCHANGE PARTITION a WITH TABLE part", AFTER,
    ],
}  # fmt: skip


def current(landing: Path, name: str) -> dict[str, dict[str, Any]]:
    """A table as the tables of a task have it: a table that is made begins without rows."""
    found = []
    for number, event in enumerate(lines(landing)):
        place = native_position(event["value"])
        assert place is not None
        found.append((place[0], number, event))
    rows: dict[str, dict[str, Any]] = {}
    for _, _, event in sorted(found, key=lambda one: one[:2]):
        value, key = event["value"], json.dumps(event["key"], sort_keys=True)
        if "ddl" in value:
            if any(one.is_made and one.table == name for one in table_ddl(value)):
                rows.clear()
        elif f"{value['source']['db']}.{value['source']['table']}" != name:
            continue
        elif value["op"] == "t":
            rows.clear()
        elif value["op"] == "d":
            rows.pop(key, None)
        else:
            rows[key] = value["after"]
    return rows


def has_what_is_there(server: Server, landing: Path) -> None:
    there, here = source_rows(server, "shop.t"), current(landing, "shop.t")
    assert here == there
    names = {one: [*row] for one, row in here.items()}
    assert names == {one: [*row] for one, row in there.items()}


@pytest.mark.parametrize("include", ["shop.%", "shop.t"])
@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_there_before_goes(own: Server, tmp_path: Path, kind: str, include: str) -> None:
    own.execute(MADE, FIRST, database="shop")
    landing = tmp_path / "landing"
    finish(own, landing, include=(include,))

    own.execute(*CHANGES[kind], database="shop")
    finish(own, landing, include=(include,))

    has_what_is_there(own, landing)
    assert header(landing)["position"]["tables"]["shop.t"]["state"] == "loaded"


def test_a_table_that_comes_back_later_begins_without_its_former_rows(
    own: Server, tmp_path: Path
) -> None:
    own.execute(MADE, FIRST, "CREATE TABLE other (id INT PRIMARY KEY)", database="shop")
    landing = tmp_path / "landing"
    finish(own, landing)
    own.execute("DROP TABLE t", database="shop")
    finish(own, landing)

    own.execute(
        "CREATE TABLE new (id INT PRIMARY KEY, n INT, b BIGINT)",
        "INSERT INTO new VALUES (5, 55, 500)", "RENAME TABLE new TO t", database="shop",
    )  # fmt: skip
    finish(own, landing)

    has_what_is_there(own, landing)


def test_a_running_capture_loads_a_table_again_that_was_swapped(
    own: Server, tmp_path: Path
) -> None:
    own.execute(MADE, FIRST, database="shop")
    landing = tmp_path / "landing"
    process = Process(settings_of(own, landing))
    process.wait_for("loaded")
    with busy_neighbour(own):
        own.execute(*CHANGES["swapped"], database="shop")
        own.execute(*CHANGES["replaced with other columns"], database="shop")
        own.execute("INSERT INTO t (id, n, b) VALUES (8, 88, 800)", database="shop")
        deadline = time.monotonic() + 120
        while not any(row["id"] == 8 for row in current(landing, "shop.t").values()):
            assert time.monotonic() < deadline
            time.sleep(0.5)

    process.stop()

    finish(own, landing)
    has_what_is_there(own, landing)
