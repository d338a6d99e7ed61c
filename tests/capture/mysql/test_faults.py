"""A capture of MariaDB whose binlog fails it: each is named, and a load of all tables helps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from examples.servers.mariadb import Server
from polynya.capture.wire import CaptureRequest
from tests.capture.mysql.capturing import Process, fill, finish, folded, same, settings_of

pytestmark = pytest.mark.slow
VERSIONED = (
    "CREATE TABLE other (id INT PRIMARY KEY, x INT WITHOUT SYSTEM VERSIONING)"
    " WITH SYSTEM VERSIONING"
)
TABLES = ("shop.orders", "shop.notes")


@pytest.fixture
def own(own: Server) -> Server:
    """With rows."""
    fill(own)
    return own


def failed(server: Server, landing: Path) -> dict[str, Any]:
    """What a capture says when it ends by an error; nobody asks it for anything."""
    process = Process(settings_of(server, landing))
    assert process.wait() == 3
    error: dict[str, Any] = process.events[-1]["error"]
    return error


def load_anew(server: Server, landing: Path) -> None:
    """What `polynya landing reload` does: the request comes after the start."""
    process = Process(settings_of(server, landing, mode="once"))
    process.ask(CaptureRequest(reload=True))
    assert process.wait() == 0, process.events[-1]["error"]


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE notes ADD COLUMN address INET6",),
        (VERSIONED, "DROP TABLE other"),
    ],
    ids=["unknown type", "unknown statement"],
)
def test_a_stream_that_cannot_be_read_goes_on_after_a_load_of_all_tables(
    own: Server, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    landing = tmp_path / "landing"
    finish(own, landing)

    own.execute(*statements, "UPDATE orders SET n = 5 WHERE id = 1", database="shop")
    error = failed(own, landing)
    own.execute("DELETE FROM orders WHERE id = 2", database="shop")
    load_anew(own, landing)

    assert (error["code"], error["retryable"]) == ("POLYNYA-GTW-049", False)
    own.execute("UPDATE orders SET n = 6 WHERE id = 1", database="shop")
    finish(own, landing)
    same(own, landing, *TABLES)


def test_a_table_whose_statement_is_not_in_the_log_is_left_out_until_all_are_loaded_again(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    finish(own, landing)
    own.execute("SET sql_log_bin = 0", "ALTER TABLE orders ADD COLUMN unseen INT FIRST",
                "SET sql_log_bin = 1", "INSERT INTO orders (id, unseen) VALUES (9000, 1)",
                "UPDATE notes SET t = 'z' WHERE a = 1", database="shop")  # fmt: skip

    process = Process(settings_of(own, landing, mode="once", table_retries=1))
    assert process.wait() == 0

    told = [one for one in process.events if one["type"] == "table_failed"]
    assert [(one["table"], one["suspended"]) for one in told] == [
        ("shop.orders", False), ("shop.orders", True),
    ]  # fmt: skip
    assert {one["error"]["code"] for one in told} == {"POLYNYA-GTW-049"}
    same(own, landing, "shop.notes")
    load_anew(own, landing)
    own.execute("UPDATE orders SET n = 6 WHERE id = 1", database="shop")
    finish(own, landing)
    same(own, landing, *TABLES)


def purged(server: Server) -> None:
    server.execute("FLUSH BINARY LOGS", "INSERT INTO orders VALUES (9001, '', 1, NULL)",
                   "FLUSH BINARY LOGS", database="shop")  # fmt: skip
    deadline = time.monotonic() + 60
    while len(server.execute("SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline
        server.execute("PURGE BINARY LOGS TO 'binlog.000003'")


def reset(server: Server) -> None:
    server.execute("DELETE FROM orders WHERE id < 10", "RESET MASTER",
                   "UPDATE notes SET t = REPEAT('y', 200)", database="shop")  # fmt: skip


def taken_over(server: Server) -> None:
    """As after a switch of the primary: another server's transactions follow in the domain."""
    server.execute("DELETE FROM orders WHERE id < 10", "SET GLOBAL server_id = 2",
                   "SET SESSION server_id = 2", "UPDATE notes SET t = 'y'",
                   database="shop")  # fmt: skip


@pytest.mark.parametrize("lose", [purged, reset, taken_over])
def test_a_binlog_that_is_lost_is_named_and_goes_on_after_a_load_of_all_tables(
    own: Server, tmp_path: Path, lose: Any
) -> None:
    landing = tmp_path / "landing"
    finish(own, landing)

    lose(own)
    error = failed(own, landing)
    own.execute("DELETE FROM notes WHERE a = 3", database="shop")
    load_anew(own, landing)

    assert error["code"] == "POLYNYA-GTW-008"
    own.execute("UPDATE orders SET n = 6 WHERE id = 11", database="shop")
    finish(own, landing)
    same(own, landing, *TABLES)


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [("binlog_row_image", "MINIMAL", "FULL"), ("binlog_format", "MIXED", "ROW"),
     ("log_bin_compress", "ON", "OFF")],
)  # fmt: skip
def test_a_setting_that_spoils_the_binlog_ends_the_capture_while_it_runs(
    own: Server, tmp_path: Path, name: str, wrong: str, right: str
) -> None:
    landing = tmp_path / "landing"
    process = Process(settings_of(own, landing))
    process.wait_for("streaming")

    own.execute(f"SET GLOBAL {name} = '{wrong}'")
    own.execute("UPDATE orders SET n = 5 WHERE id = 1", database="shop")

    assert process.wait() == 3
    assert process.events[-1]["error"]["code"] == "POLYNYA-GTW-050"
    assert name in process.events[-1]["error"]["message"]
    again = failed(own, landing)
    assert again["code"] == "POLYNYA-GTW-050"
    assert f"{name} is {wrong}" in again["message"]
    own.execute(f"SET GLOBAL {name} = '{right}'")
    load_anew(own, landing)
    same(own, landing, *TABLES)


def test_transactions_of_another_domain_and_in_two_parts_are_followed(
    own: Server, tmp_path: Path
) -> None:
    landing, domain = tmp_path / "landing", "SET SESSION gtid_domain_id = 5, server_id = 77"
    finish(own, landing)

    own.execute(domain, "UPDATE orders SET n = 5 WHERE id = 1", database="shop")
    finish(own, landing)
    own.kill()
    own.start()
    own.execute(domain, "UPDATE orders SET n = 7 WHERE id = 1", "DELETE FROM notes WHERE a = 1",
                "XA START 'a'", "UPDATE orders SET n = 8 WHERE id = 2", "XA END 'a'",
                "XA PREPARE 'a'", "XA COMMIT 'a'", "UPDATE orders SET n = 9 WHERE id = 3",
                database="shop")  # fmt: skip
    finish(own, landing)

    same(own, landing, *TABLES)


def test_long_values_are_the_same_in_load_and_stream(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    own.execute("SET GLOBAL max_allowed_packet = 64 << 20")
    table = "CREATE TABLE long_ones (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT)"
    row = "INSERT INTO long_ones VALUES ({}, REPEAT(x'00ff', 4000000), REPEAT('é', 3000000))"
    own.execute(table, row.format(1), database="shop")
    finish(own, landing)

    own.execute(row.format(2), "UPDATE long_ones SET t = 'x' WHERE id = 1", database="shop")
    finish(own, landing)

    rows = {row["id"]: row for row in folded(landing)["shop.long_ones"].values()}
    assert len(rows[2]["b"]) == 10_666_668
    assert rows[1]["b"] == rows[2]["b"]
    assert rows[2]["t"] == "é" * 3_000_000
    same(own, landing, "shop.long_ones")
