"""MariaDB as a database that is captured: its tables, its beginning, its binlog, its test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.source import open_database
from polynya.model.errors import OperationError
from tests.capture.mysql.capturing import LIMITED, rights
from tests.mariadb import access_to, new_server


@pytest.fixture
def database(server: Server, shop: str) -> Iterator[MysqlDatabase]:
    made = MysqlDatabase(access_to(server))
    yield made
    made.close()


@pytest.fixture
def limited(server: Server, shop: str) -> Iterator[MysqlDatabase]:
    """As a user with the rights of the page, and no other."""
    server.execute(*rights(server))
    made = MysqlDatabase(access_to(server, **LIMITED))
    yield made
    made.close()
    server.execute("DROP USER polynya@'%'")


def test_the_type_of_a_connection_leads_here(server: Server) -> None:
    database = open_database(access_to(server))

    assert (type(database), database.connector) == (MysqlDatabase, "mariadb")


def test_tables_are_chosen_by_patterns_of_their_names(
    server: Server, database: MysqlDatabase
) -> None:
    names = ("orders", "order_lines", "tmp_a", "tmp.b")
    tables = [f"CREATE TABLE `{name}` (id INT PRIMARY KEY)" for name in names]
    server.execute(*tables, "CREATE VIEW seen AS SELECT * FROM orders", database="shop")

    found = database.tables(["shop.*"], ["shop.tmp_%"])

    assert [one.name for one in found] == ["shop.order_lines", "shop.orders", "shop.tmp.b"]
    assert [one.name for one in database.tables(["shop.order*s", "shop.o"], ["*.lines"])] == [
        "shop.order_lines", "shop.orders"
    ]  # fmt: skip


def test_a_beginning_has_the_place_of_its_view_and_the_definitions_of_then(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, `u``x` UUID, kind ENUM('a','b''c') NOT NULL)",
        "CREATE TABLE b (n DECIMAL(5,2) UNSIGNED, t TEXT CHARACTER SET latin1)",
        database="shop",
    )

    beginning = database.begin(database.tables(["shop.a"], []))

    (file, position), (gtids,) = (
        server.execute("SHOW MASTER STATUS")[0][:2],
        server.execute("SELECT @@gtid_binlog_pos")[0],
    )
    assert beginning.offset == {"file": file, "pos": position, "gtids": gtids}
    assert beginning.snapshot.source["pos"] == position
    lines = [json.loads(line) for line in beginning.history.splitlines()]
    first, second = (one["ddl"] for one in lines if one["databaseName"] == "shop")
    assert first == (
        "CREATE TABLE `shop`.`a` (`id` int(11) NOT NULL, `u``x` binary(16) NULL, "
        "`kind` enum('a','b''c') CHARACTER SET utf8mb4 NOT NULL, PRIMARY KEY (`id`))"
    )
    assert second == (
        "CREATE TABLE `shop`.`b` (`n` decimal(5,2) unsigned NULL, "
        "`t` text CHARACTER SET latin1 NULL)"
    )
    assert lines[0]["position"] == beginning.offset


def test_a_column_that_fills_the_rows_that_are_there_is_told(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT)", database="shop")
    (before,) = database.tables(["shop.a"], [])
    found = []
    for column in ("b INT", "c INT DEFAULT NULL", "d INT DEFAULT 5", "e INT NOT NULL",
                   "f INT AS (n) VIRTUAL", "g DATETIME DEFAULT NOW()"):  # fmt: skip
        server.execute(f"ALTER TABLE a ADD COLUMN {column}", database="shop")
        (after,) = database.tables(["shop.a"], [])
        found.append(after.columns_filled - before.columns_made)
        before = after

    assert found == [0, 0, 1, 1, 1, 1]


def test_what_would_be_captured_wrongly_is_refused_by_name(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", database="shop"
    )  # fmt: skip

    with pytest.raises(OperationError, match=r"shop\.a have system versioning") as caught:
        database.begin(database.tables(["shop.%"], []))

    assert caught.value.code == "POLYNYA-GTW-048"


def test_the_stream_follows_the_same_patterns_as_the_load(database: MysqlDatabase) -> None:
    database.tables(["shop.*", "a-b.c"], ["shop.tmp_%"])

    given = database.engine_properties([])

    assert given["table.include.list"] == (
        r"(?!(?:shop\x{2e}tmp_.*)$)(?:shop\x{2e}.*|a\x{2d}b\x{2e}c)"
    )
    assert given["connector.class"] == "io.debezium.connector.mariadb.MariaDbConnector"


def test_the_rights_of_the_page_are_enough(server: Server, limited: MysqlDatabase) -> None:
    server.execute(
        "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", database="shop"
    )

    findings = limited.findings()
    tables = limited.tables(["%"], [])
    beginning = limited.begin(tables)
    chunk = beginning.snapshot.read(tables[0], None, 10, None)
    beginning.snapshot.close()

    assert [one.what for one in findings if not one.ok] == []
    assert [one.name for one in tables] == ["shop.a"]
    assert chunk.rows == 1
    assert limited.lag(beginning.offset).bytes == 0
    assert limited.lost(beginning.offset) is None


def test_a_missing_right_and_a_wrong_setting_are_findings_with_what_helps(
    server: Server, limited: MysqlDatabase
) -> None:
    server.execute("REVOKE BINLOG MONITOR ON *.* FROM polynya@'%'")
    server.execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
    try:
        findings = limited.findings()
    finally:
        server.execute("SET GLOBAL binlog_row_image = 'FULL'")

    assert [(one.what, one.fix) for one in findings if not one.ok] == [
        ("binlog_row_image is MINIMAL",
         "SET GLOBAL binlog_row_image = 'FULL', and in its settings"),
        ("the right BINLOG MONITOR, to see the binlog",
         "GRANT BINLOG MONITOR ON *.* TO the user of the connection"),
    ]  # fmt: skip


def test_compressed_rows_and_databases_that_the_binlog_leaves_out_are_found(
    tmp_path: Path,
) -> None:
    server = new_server(tmp_path, {"log_bin_compress": "ON", "binlog_ignore_db": "shop"})
    try:
        server.start()
        findings = MysqlDatabase(access_to(server)).findings()
    finally:
        server.close()

    wrong = {one.what: one.fix for one in findings if not one.ok}
    assert "log_bin_compress is ON" in wrong
    assert "the binlog leaves databases out: only all, not shop" in wrong
    assert all(wrong.values())


def test_a_connection_that_fails_is_one_finding(server: Server) -> None:
    (finding,) = MysqlDatabase(access_to(server, password="wrong")).findings()

    assert not finding.ok
    assert "refuses the login" in finding.what
    assert "wrong" not in finding.what


def test_the_way_to_the_end_of_the_binlog_is_told_in_bytes(
    server: Server, database: MysqlDatabase
) -> None:
    server.execute("CREATE TABLE a (id INT PRIMARY KEY)", database="shop")
    offset = database.begin(database.tables(["shop.a"], [])).offset

    server.execute("INSERT INTO a VALUES (1)", "FLUSH BINARY LOGS", database="shop")
    lag = database.lag({**offset, "ts_sec": 1_600_000_000})

    assert lag.bytes is not None
    assert 300 < lag.bytes < 2000
    assert lag.seconds is not None
    assert lag.seconds > 1000


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose binlog may be deleted."""
    made = new_server(tmp_path_factory.mktemp("alone"))
    try:
        made.start()
        made.execute("CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY)")
        yield made
    finally:
        made.close()


def purge(server: Server, oldest: str) -> None:
    """Delete older files; the server keeps one until the commits in it are all on the disk."""
    deadline = time.monotonic() + 30
    while server.execute("SHOW BINARY LOGS")[0][0] != oldest:
        assert time.monotonic() < deadline
        server.execute(f"PURGE BINARY LOGS TO '{oldest}'")


def test_a_binlog_that_was_deleted_under_us_is_told(alone: Server) -> None:
    database = MysqlDatabase(access_to(alone))
    offset = database.begin(database.tables(["shop.a"], [])).offset

    alone.execute("FLUSH BINARY LOGS")
    purge(alone, "binlog.000002")

    assert database.lost(offset) == (
        "the server has deleted binlog.000001 of its binlog; "
        "the oldest that it has is binlog.000002"
    )
    assert database.lag(offset).notes == ("binlog.000001 is not on the server any more",)
    database.close()


def test_a_binlog_that_was_reset_or_is_of_another_server_is_told(alone: Server) -> None:
    alone.execute("RESET MASTER", "INSERT INTO shop.a VALUES (1)")
    database = MysqlDatabase(access_to(alone))
    offset = database.begin(database.tables(["shop.a"], [])).offset

    assert database.lost(offset) is None
    assert "ends before 4096" in (database.lost({**offset, "pos": 4096}) or "")
    assert "another server" in (database.lost({**offset, "gtids": "0-9-77"}) or "")
    database.close()


def test_an_empty_binlog_is_no_beginning(alone: Server) -> None:
    alone.execute("RESET MASTER")
    database = MysqlDatabase(access_to(alone))

    with pytest.raises(OperationError, match="no transaction yet"):
        database.begin(database.tables(["shop.a"], []))
    database.close()


def test_a_session_that_was_lost_is_opened_again(server: Server, database: MysqlDatabase) -> None:
    server.execute("CREATE TABLE a (id INT PRIMARY KEY)", database="shop")
    database.tables(["shop.a"], [])

    for (number,) in server.execute("SELECT id FROM information_schema.PROCESSLIST WHERE"
                                    " id != CONNECTION_ID() AND command = 'Sleep'"):  # fmt: skip
        server.execute(f"KILL {number}")

    assert [one.name for one in database.tables(["shop.a"], [])] == ["shop.a"]
