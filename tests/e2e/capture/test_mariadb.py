"""From a real MariaDB to the live views in short: load, stream, and `polynya compare` of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from tests.mariadb import busy_neighbour, new_server
from tests.oracle.packs.driver import CommandDriver
from tests.projects import write_project

CAPTURE = """\
apiVersion: polynya/v1
kind: landing
name: shop_db
connection: shop
tables: {include: ["shop.*"]}
write: {roll: {age: 1s}}
"""
STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop_db, format: debezium}
"""
CONNECTION = """\
type: mariadb
host: 127.0.0.1
port: {port}
user: root
password: {{env: SHOP_PW}}
tls: {{mode: disable}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = new_server(tmp_path / "server")
    try:
        made.start()
        made.execute(
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20), n DECIMAL(12,2))",
            "INSERT INTO orders SELECT seq, CONCAT('n', seq), seq / 4 FROM seq_1_to_500",
        )
        yield made
    finally:
        made.close()


@pytest.fixture
def project(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_project(tmp_path / "project", shop_db=CAPTURE, shop=STORAGE)
    (folder / "connections").mkdir()
    (folder / "connections" / "shop.yml").write_text(CONNECTION.format(port=server.port), "utf-8")
    monkeypatch.setenv("SHOP_PW", server.password)
    return folder


def compared(driver: CommandDriver, project: Path, code: int) -> dict[str, Any]:
    """What `polynya compare` says of the table."""
    printed = driver.call("compare", "shop_db", "--json", "--wait", "20", "--project", str(project))
    assert printed.code == code, printed
    said = [json.loads(line) for line in printed.output.splitlines()]
    (found,) = (one for one in said if one["type"] == "table.compared")
    return dict(found)


@pytest.mark.slow
def test_what_was_loaded_and_streamed_is_what_the_database_has(
    server: Server, project: Path, driver: CommandDriver
) -> None:
    once = ("run", "--once", "--project", str(project))
    assert driver.call(*once).code == 0
    server.execute(
        "UPDATE shop.orders SET v = 'changed' WHERE id <= 10",
        "DELETE FROM shop.orders WHERE id = 20",
        "INSERT INTO shop.orders VALUES (900, 'new', 1.25)",
    )
    assert driver.call(*once).code == 0

    found = compared(driver, project, 0)

    assert (found["source_rows"], found["current_rows"]) == (500, 500)
    # A change that the binlog does not have is one that compare finds.
    server.execute("SET sql_log_bin = 0", "UPDATE shop.orders SET v = 'unseen' WHERE id = 7")
    assert [one["key"] for one in compared(driver, project, 1)["differences"]] == ["7"]


@pytest.mark.slow
def test_tables_that_are_made_again_and_swapped_are_what_the_database_has(
    server: Server, project: Path, driver: CommandDriver
) -> None:
    made = "CREATE TABLE shop.{0} (id INT PRIMARY KEY, a INT, b INT)"
    names = ("dropped", "replaced", "swapped", "back")
    server.execute(
        *(made.format(name) for name in names),
        *(f"INSERT INTO shop.{name} VALUES (1, 1, 10), (2, 2, 20)" for name in names),
        "CREATE TABLE shop.texts (k VARCHAR(80) COLLATE utf8mb4_unicode_ci PRIMARY KEY, n INT)",
        "INSERT INTO shop.texts SELECT CONCAT(ELT(1 + seq % 4, 'ä', 'Z', 'b', 'ß'), seq), seq"
        " FROM seq_1_to_60000",
        database="shop",
    )
    once = ("run", "--once", "--project", str(project))
    assert driver.call(*once).code == 0
    server.execute("DROP TABLE shop.back")
    with busy_neighbour(server):
        assert driver.call(*once).code == 0
    server.execute(
        "DROP TABLE shop.dropped",
        made.format("dropped"),
        "CREATE OR REPLACE TABLE shop.replaced (id INT PRIMARY KEY, b INT, a INT)",
        made.format("other"),
        "INSERT INTO shop.other VALUES (7, 7, 70)",
        "RENAME TABLE shop.swapped TO shop.old, shop.other TO shop.swapped",
        made.format("back"),
        *(f"REPLACE INTO shop.{name} (id, a, b) VALUES (2, 3, 30), (3, 4, 40)" for name in names),
        "DELETE FROM shop.texts WHERE n % 7 = 0",
    )

    assert driver.call(*once).code == 0

    wait = ("--wait", "60", "--project", str(project))
    printed = driver.call("compare", "shop_db", "--json", *wait)
    said = [json.loads(line) for line in printed.output.splitlines()]
    found = {one["table"]: one["differences"] for one in said if one["type"] == "table.compared"}
    assert {name: found[f"shop.{name}"] for name in names} == {name: [] for name in names}
    assert found["shop.texts"] == []
    (rows,) = driver.query(project, ["SELECT id, a, b FROM shop.replaced ORDER BY id"])
    assert rows == [{"id": 2, "a": 3, "b": 30}, {"id": 3, "a": 4, "b": 40}]
