"""From a real MariaDB to the live views in short: load, stream, and `polynya compare` of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from tests.mariadb import new_server
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
