"""A capture of MariaDB or MySQL as a whole: load and stream, statements, kills of both."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from examples.servers.mariadb import Server
from tests.capture.mysql.capturing import (
    FOLDER,
    Process,
    fill,
    finish,
    folded,
    header,
    lines,
    same,
    settings_of,
)
from tests.capture.mysql.writing import writers

pytestmark = [pytest.mark.slow, pytest.mark.also_mysql]


def test_load_and_stream_at_once_give_the_tables_of_the_source(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    fill(own)

    with writers(own) as busy:
        process = Process(settings_of(own, landing, chunk_rows=100))
        process.wait_for("streaming")
        while sum(one["type"] == "loaded" for one in process.events) < 2:
            time.sleep(0.05)
        time.sleep(3)
        assert process.stop() == 0
    finish(own, landing)

    assert sum(one.transactions for one in busy) > 50
    same(own, landing, "shop.orders", "shop.notes")


def test_kills_of_the_capture_and_the_server_lose_and_double_nothing(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    fill(own)

    with writers(own):
        for round_ in range(4):
            process = Process(settings_of(own, landing, chunk_rows=100))
            process.wait_for("landed")
            seen = process.landed()
            deadline = time.monotonic() + 60
            while process.landed() < seen + 5 and time.monotonic() < deadline:
                time.sleep(0.02)
            if round_ == 1:
                own.kill()
                own.start()
            process.kill()
    finish(own, landing)

    same(own, landing, "shop.orders", "shop.notes")
    changed = [
        (one["value"]["source"]["file"], one["value"]["source"]["pos"],
         one["value"]["source"]["row"], one["value"]["op"])
        for one in lines(landing)
        if one["value"].get("op") in ("c", "u", "d")
    ]  # fmt: skip
    # Landed and offset are one: what a restart reads again had not landed.
    assert len(changed) == len(set(changed))


def test_statements_that_change_tables_while_they_are_captured(own: Server, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    fill(own)
    finish(own, landing)

    own.execute(
        "ALTER TABLE orders ADD COLUMN extra DECIMAL(10,2) NOT NULL DEFAULT 1.5 AFTER id",
        "UPDATE orders SET extra = 2.5 WHERE id <= 10",
        "INSERT INTO orders VALUES (9001, 3, 's', 1, NULL)",
        "ALTER TABLE orders DROP COLUMN s, CHANGE n number BIGINT UNSIGNED",
        "UPDATE orders SET number = 18446744073709551615 WHERE id = 9001",
        "TRUNCATE TABLE notes",
        "INSERT INTO notes VALUES (1, 1, 'after')",
        "RENAME TABLE notes TO remarks",
        "INSERT INTO remarks VALUES (2, 2, 'renamed')",
        "CREATE TABLE later (id INT PRIMARY KEY, j JSON)",
        """INSERT INTO later VALUES (1, '{"a": [1, 2.50]}')""",
        "FLUSH BINARY LOGS",
        database="shop",
    )
    finish(own, landing)

    tables = folded(landing)
    assert tables["shop.notes"].keys() == {'{"a": 1, "b": 1}'}
    same(own, landing, "shop.remarks", "shop.later")
    # Rows that were there have the default of the new column, which no event says.
    same(own, landing, "shop.orders")
    assert tables["shop.orders"]['{"id": 77}']["extra"] == "AJY="
    schemas = json.dumps([one for one in lines(landing) if "ddl" in one["value"]])
    assert "RENAME TABLE notes TO remarks" in schemas


def test_a_binlog_that_was_deleted_meanwhile_ends_the_capture_by_name(
    own: Server, tmp_path: Path
) -> None:
    landing = tmp_path / "landing"
    fill(own)
    finish(own, landing)
    own.execute("FLUSH BINARY LOGS", "INSERT INTO orders VALUES (9001, '', 1, NULL)",
                "FLUSH BINARY LOGS", database="shop")  # fmt: skip
    first = header(landing)["position"]["stream"]["offset"]["file"]
    while len(files := own.execute("SHOW BINARY LOGS")) > 1:
        own.execute(f"PURGE BINARY LOGS TO '{files[-1][0]}'")

    process = Process(settings_of(own, landing, mode="once"))

    assert process.wait() == 3
    assert process.events[-1]["error"]["code"] == "POLYNYA-GTW-008"
    assert first in process.events[-1]["error"]["message"]
    assert header(landing)["position"]["stream"]["offset"]["file"] == first
    assert (landing / FOLDER / "_history").is_dir()
