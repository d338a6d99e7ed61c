"""What differs in MySQL: its settings, GTIDs, views, passwords and columns."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from examples.servers.mariadb import Server
from examples.servers.mysql import MysqlServer
from polynya.capture.mysql import health, snapshot
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.mysql.session import MysqlSession
from polynya.capture.mysql.types import document
from polynya.model.errors import DependencyError, OperationError
from tests.capture.mysql.capturing import Process, finish, header, same, settings_of
from tests.mariadb import access_to, busy_neighbour, new_server


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = new_server(tmp_path_factory.mktemp("mysql"), kind=MysqlServer.kind)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def empty(mysql: Server) -> Server:
    mysql.execute("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    return mysql


@pytest.mark.parametrize(
    ("version", "statement"),
    [((8, 0), "SHOW MASTER STATUS"), ((8, 2), "SHOW BINARY LOG STATUS"),
     ((8, 4), "SHOW BINARY LOG STATUS"), ((9, 1), "SHOW BINARY LOG STATUS")],
)  # fmt: skip
def test_the_end_of_the_binlog_is_asked_for_by_its_present_name(
    version: tuple[int, int], statement: str
) -> None:
    assert health.status_statement("mysql", version) == statement
    assert health.status_statement("mariadb", (11, 4)) == "SHOW MASTER STATUS"


def test_settings_of_mysql_under_which_changes_are_missing_are_named() -> None:
    good = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL",
            "gtid_mode": "ON", "binlog_row_value_options": "",
            "binlog_transaction_compression": "OFF"}  # fmt: skip
    bad = {"gtid_mode": "OFF_PERMISSIVE", "binlog_row_value_options": "PARTIAL_JSON",
           "binlog_transaction_compression": "ON"}  # fmt: skip

    assert [one.what for one in health.of_binlog(good) if not one.ok] == []
    for name, value in bad.items():
        (wrong,) = [one for one in health.of_binlog({**good, name: value}) if not one.ok]
        assert (wrong.what, name in wrong.fix) == (f"{name} is {value}", True)


def test_transactions_that_are_being_committed_are_read_from_what_the_server_says() -> None:
    one, other = (f"3e11fa47-71ca-11e1-9e33-{end:012x}" for end in (1, 2))

    owned = snapshot.owned_gtids(f"{one}:23#4:24#5,\n{other}:7#9")

    assert owned == {(one, "23"), (one, "24"), (other, "7")}
    assert snapshot.owned_gtids("") == set()


@pytest.mark.parametrize(
    ("there", "landed"),
    [("1.5", "1.5"), ("1.50", "1.50"), ("0.0009",
      "0.00089999999999999997536692664112933925935067236423492431640625"),
     ("10000000.0", "10000000"), ("-0.0", "-0.0"), ("1e-7", None), ("9007199254740993", None)],
)  # fmt: skip
def test_numbers_of_a_document_are_the_same_numbers(there: str, landed: str | None) -> None:
    written = json.loads(document(there.encode()))

    assert written == landed or landed is None
    assert float(written) == float(there)


@pytest.mark.slow
def test_a_view_has_each_transaction_up_to_its_place(empty: Server) -> None:
    empty.execute("CREATE TABLE a (id INT PRIMARY KEY)", database="shop")
    uuid = empty.execute("SELECT @@server_uuid")[0][0]
    owner = empty.connect("shop")
    with owner.cursor() as cursor:
        # As a transaction does between its write to the binlog and its commit.
        cursor.execute(f"SET gtid_next = '{uuid}:99999'")
        cursor.execute("BEGIN")
        session, opened = MysqlSession(access_to(empty)), threading.Event()

        def open_it() -> None:
            snapshot.open_view(session, "mysql")
            opened.set()

        threading.Thread(target=open_it, daemon=True).start()
        time.sleep(0.5)
        was_open = opened.is_set()
        cursor.execute("INSERT INTO a VALUES (1)")
        cursor.execute("COMMIT")
    assert opened.wait(20)
    assert not was_open
    assert session.rows("SELECT id FROM shop.a") == [("1",)]
    session.close()
    owner.close()


@pytest.mark.slow
def test_a_commit_that_does_not_end_is_told(empty: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_COMMIT_SECONDS", 0.2)
    uuid = empty.execute("SELECT @@server_uuid")[0][0]
    owner = empty.connect("shop")
    with owner.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{uuid}:88888'")
        session = MysqlSession(access_to(empty))
        with pytest.raises(DependencyError, match="88888 does not end its commit"):
            snapshot.open_view(session, "mysql")
        cursor.execute("ROLLBACK")
    session.close()
    owner.close()


@pytest.mark.slow
def test_a_place_is_found_again_or_its_loss_is_told(own_mysql: Server) -> None:
    own_mysql.execute("CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY)")
    database = MysqlDatabase(access_to(own_mysql))
    offset = database.begin(database.tables(["shop.a"], [])).offset
    own_mysql.execute("INSERT INTO shop.a VALUES (1)", "FLUSH BINARY LOGS")
    uuid = own_mysql.execute("SELECT @@server_uuid")[0][0]

    assert database.lost(offset) is None
    events = own_mysql.execute(f"SHOW BINLOG EVENTS IN '{offset['file']}'")
    (first, *_) = (event[1] for event in events if event[2] == "Gtid")
    assert "another server" in (database.lost({**offset, "pos": first}) or "")
    other = uuid.replace(uuid[:8], "01234567")
    assert "does not have all of" in (database.lost({**offset, "gtids": f"{other}:1"}) or "")
    behind = {**offset, "gtids": f"{uuid}:1-999"}
    assert "was reset, or it is another" in (database.lost(behind) or "")
    newest = own_mysql.execute("SHOW BINARY LOGS")[-1][0]
    own_mysql.execute(f"PURGE BINARY LOGS TO '{newest}'")
    assert "has deleted" in (database.lost({**offset, "file": newest, "pos": 4}) or "")
    database.close()


@pytest.fixture
def own_mysql(tmp_path: Path) -> Iterator[Server]:
    made = new_server(tmp_path / "server", kind=MysqlServer.kind)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_settings_of_a_server_are_refused_at_the_start(empty: Server, tmp_path: Path) -> None:
    empty.execute("CREATE TABLE a (id INT PRIMARY KEY, j JSON)", database="shop")
    database = MysqlDatabase(access_to(empty))
    empty.execute("SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'")
    try:
        with pytest.raises(OperationError, match="binlog_row_value_options is PARTIAL_JSON") as one:
            database.begin(database.tables(["shop.%"], []))
    finally:
        empty.execute("SET GLOBAL binlog_row_value_options = ''")
        database.close()

    assert one.value.code == "POLYNYA-GTW-050"


@pytest.mark.slow
def test_a_password_without_tls_is_refused_by_name(
    empty: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The driver has no library for it where Polynya is installed.
    monkeypatch.setattr(pymysql._auth, "_have_cryptography", False)
    # The server remembers users that it has seen, and takes a hash of their passwords.
    empty.execute("FLUSH PRIVILEGES")

    with pytest.raises(OperationError) as caught:
        MysqlSession(access_to(empty, tls="disable"))

    assert caught.value.code == "POLYNYA-GTW-059"
    MysqlSession(access_to(empty)).close()


@pytest.mark.slow
def test_columns_that_are_added_in_an_instant_and_computed_ones(
    own_mysql: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    own_mysql.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY, j JSON)",
        """INSERT INTO shop.t VALUES (1, '{"a": [1, 2.50]}'), (2, NULL)""",
    )
    finish(own_mysql, landing)

    own_mysql.execute(
        "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 7, ALGORITHM = INSTANT",
        "ALTER TABLE t ADD COLUMN v INT AS (n + 1) VIRTUAL, ADD COLUMN s INT AS (n * 2) STORED",
        "INSERT INTO t (id, j) VALUES (3, JSON_OBJECT('k', 1e-5, 'd', CAST(2.50 AS DECIMAL(9,2))))",
        "UPDATE t SET j = JSON_SET(j, '$.a[0]', 'x') WHERE id = 1",
        "CREATE TABLE later (id INT PRIMARY KEY, e ENUM('a', 'b'), y YEAR, g POINT)",
        "INSERT INTO later VALUES (1, 'b', 2024, POINT(1, 2))",
        database="shop",
    )
    finish(own_mysql, landing)

    same(own_mysql, landing, "shop.t", "shop.later")
    gtids = header(landing)["position"]["stream"]["offset"]["gtids"]
    assert gtids.startswith(own_mysql.execute("SELECT @@server_uuid")[0][0])


@pytest.mark.slow
def test_a_table_without_key_is_suspended_by_name(own_mysql: Server, tmp_path: Path) -> None:
    own_mysql.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.log (n INT)",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
    )
    more = {"mode": "once", "table_retries": 0}
    with busy_neighbour(own_mysql):
        process = Process(settings_of(own_mysql, tmp_path / "landing", **more))
        process.wait()

    failed = [one for one in process.events if one["type"] == "table_failed"]
    assert {one["table"] for one in failed} == {"shop.log"}
    assert {one["error"]["code"] for one in failed} == {"POLYNYA-GTW-051"}
    same(own_mysql, tmp_path / "landing", "shop.t")
