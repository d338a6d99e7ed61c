"""Loads without changes: what has no changes in a binlog, from a server that may have none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.compare.mysql import ComparedMysql
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.source import Chunk, Key, SourceSnapshot, SourceTable
from polynya.model.errors import OperationError
from tests.capture.mysql.capturing import Process, folded, header, lines, settings_of
from tests.mariadb import access_to, new_server

READER = {"user": "reader", "password": "r"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without binlog."""
    made = new_server(tmp_path_factory.mktemp("plain"), {"skip_log_bin": "1"})
    try:
        made.start()
        made.execute("CREATE USER reader@'%' IDENTIFIED BY 'r'")
        yield made
    finally:
        made.close()


@pytest.fixture
def database(plain: Server) -> Iterator[MysqlDatabase]:
    """An empty database, as somebody sees it who may only read."""
    plain.execute(
        "DROP DATABASE IF EXISTS shop",
        "CREATE DATABASE shop",
        "GRANT SELECT ON shop.* TO reader@'%'",
    )
    made = MysqlDatabase(access_to(plain, **READER, follows=False))
    yield made
    made.close()


def read_all(view: SourceSnapshot, table: SourceTable, rows: int) -> list[Chunk]:
    found: list[Chunk] = []
    after: Key | None = None
    while not found or not found[-1].is_last:
        found.append(view.read(table, after, rows, None))
        after = found[-1].last
    return found


def rows(many: Sequence[Chunk]) -> list[dict[str, Any]]:
    events = [json.loads(line) for chunk in many for line in chunk.lines.splitlines()]
    return [one["value"]["after"] for one in events]


def test_views_and_tables_without_key_are_read_by_somebody_who_may_only_read(
    plain: Server, database: MysqlDatabase
) -> None:
    plain.execute(
        "CREATE TABLE log (n INT, t TEXT)",
        "INSERT INTO log SELECT seq, 'ä' FROM seq_1_to_250",
        "CREATE TABLE old (n INT PRIMARY KEY) ENGINE = MyISAM",
        "INSERT INTO old VALUES (7)",
        "CREATE VIEW sums AS SELECT n % 3 AS rest, COUNT(*) AS n FROM log GROUP BY 1",
        "CREATE VIEW unnamed AS SELECT 1",
        database="shop",
    )
    assert [one.what for one in database.findings() if not one.ok] == []

    tables = database.tables(["shop.%", "shop.sums"], [])
    view = database.look(tables, None).snapshot
    first = view.read(tables[0], None, 100, None)
    plain.execute("DELETE FROM log", database="shop")
    rest = view.read(tables[0], first.last, 1000, None)
    others = {one.name: rows(read_all(view, one, 2)) for one in tables[1:2]}
    view.close()

    assert [one.name for one in tables] == ["shop.log", "shop.old", "shop.sums"]
    assert [row["polynya_row"] for row in rows([first, rest])] == list(range(1, 251))
    assert sorted(row["n"] for row in rows([first, rest])) == list(range(1, 251))
    assert others == {"shop.old": [{"n": 7}]}


def test_the_number_of_a_row_is_its_key_and_its_schema_says_so(
    plain: Server, database: MysqlDatabase
) -> None:
    plain.execute("CREATE TABLE log (t TEXT)", "INSERT INTO log VALUES ('a')", database="shop")
    tables = database.tables(["shop.log"], [])
    view = database.look(tables, None).snapshot

    line = json.loads(view.read(tables[0], None, 10, None).lines)
    (_, after, *_) = view.envelope(tables[0])["fields"]
    view.close()

    assert line["key"] == {"polynya_row": 1}
    assert line["value"]["after"] == {"polynya_row": 1, "t": "a"}
    assert [(one["field"], one["optional"]) for one in after["fields"]] == [
        ("polynya_row", False), ("t", True)
    ]  # fmt: skip


def test_a_load_stands_behind_the_one_before_and_behind_the_binlog(
    plain: Server, database: MysqlDatabase, server: Server, shop: str
) -> None:
    plain.execute("CREATE TABLE a (n INT)", database="shop")
    server.execute("CREATE TABLE a (n INT)", database="shop")
    tables = database.tables(["shop.a"], [])
    first = database.look(tables, None).offset
    second = database.look(tables, first).offset
    logged = MysqlDatabase(access_to(server))
    third = logged.look(logged.tables(["shop.a"], []), first).offset
    position = server.execute("SHOW MASTER STATUS")[0][1]

    assert (first["file"], second["pos"] - first["pos"]) == (second["file"], 2)
    assert third["pos"] == int(position)
    # No stream goes on from there.
    assert "a load without changes" in str(logged.lost(third))
    logged.close()


def test_a_view_that_is_gone_in_the_middle_is_not_read_on_from_another_one(
    plain: Server, database: MysqlDatabase
) -> None:
    plain.execute("CREATE TABLE log (n INT)", "INSERT INTO log VALUES (1), (2)", database="shop")
    tables = database.tables(["shop.log"], [])
    view = database.look(tables, None).snapshot
    first = view.read(tables[0], None, 1, None)
    view.close()

    with pytest.raises(OperationError) as caught:
        view.read(tables[0], first.last, 1, None)

    assert caught.value.code == "POLYNYA-GTW-056"


def test_what_has_no_changes_is_refused_where_they_are_to_be_followed(
    server: Server, shop: str
) -> None:
    server.execute("CREATE TABLE a (n INT)", "CREATE VIEW v AS SELECT * FROM a", database="shop")
    followed = MysqlDatabase(access_to(server))

    with pytest.raises(OperationError, match=r"shop\.v are views") as caught:
        followed.begin(followed.tables(["shop.%", "shop.v"], []))
    followed.close()

    assert caught.value.code == "POLYNYA-GTW-048"


def test_a_column_that_has_the_name_of_the_number_is_refused(
    plain: Server, database: MysqlDatabase
) -> None:
    plain.execute("CREATE TABLE log (polynya_row INT)", database="shop")

    with pytest.raises(OperationError, match="a column polynya_row and no key"):
        database.look(database.tables(["shop.log"], []), None)


def test_a_server_without_binlog_is_compared_as_of_now(
    plain: Server, database: MysqlDatabase
) -> None:
    plain.execute("CREATE TABLE log (n INT)", "INSERT INTO log VALUES (1), (1)", database="shop")

    with closing(ComparedMysql(access_to(plain, **READER, follows=False)).moment()) as moment:
        assert (moment.position, moment.count("shop.log", None)) == ("now", 2)


def test_each_load_leaves_each_row_once(
    plain: Server, database: MysqlDatabase, tmp_path: Path
) -> None:
    landing, named = tmp_path / "landing", ("shop.%", "shop.sums")
    plain.execute(
        "CREATE TABLE log (n INT)",
        "INSERT INTO log VALUES (1), (1), (2)",
        "CREATE TABLE orders (id INT PRIMARY KEY)",
        "INSERT INTO orders SELECT seq FROM seq_1_to_10",
        "CREATE VIEW sums AS SELECT COUNT(*) AS n FROM log",
        database="shop",
    )

    for change in ("DO 1", "DO 1", "DELETE FROM log WHERE n = 2"):
        plain.execute(change, "DELETE FROM orders WHERE id = 3", database="shop")
        settings = settings_of(plain, landing, mode="reload", include=named, chunk_rows=2)
        process = Process(settings)
        assert process.wait() == 0, process.events[-1]

        tables = folded(landing)
        there = plain.execute("SELECT n FROM log ORDER BY n", database="shop")
        assert sorted(row["n"] for row in tables["shop.log"].values()) == [row[0] for row in there]
        assert [row["n"] for row in tables["shop.sums"].values()] == [len(there)]
        assert len(tables["shop.orders"]) == 9

    assert {one["state"] for one in header(landing)["position"]["tables"].values()} == {"loaded"}
    assert not any(one["key"] is None for one in lines(landing) if one["value"]["op"] == "r")
