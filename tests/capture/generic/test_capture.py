"""A capture that Debezium alone loads and follows, tried with MariaDB in place of others."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from polynya.capture.wire import CaptureRequest
from tests.capture.mysql.capturing import (
    Process,
    fill,
    folded,
    header,
    lines,
    same,
    settings_of,
    source_rows,
)
from tests.mariadb import new_server

pytestmark = pytest.mark.slow
WORKER = "tests.capture.generic.worker"


def test_rows_and_changes_land_whatever_is_killed(tmp_path: Path) -> None:
    server, landing = new_server(tmp_path / "server"), tmp_path / "landing"
    try:
        server.start()
        server.execute("CREATE DATABASE shop")
        fill(server)
        first = Process(settings_of(server, landing), WORKER)
        first.wait_for("landed")
        first.kill()
        server.execute("UPDATE orders SET n = -1 WHERE id < 100", database="shop")
        second = Process(settings_of(server, landing), WORKER)
        wait_until_same(server, landing)
        second.kill()
        server.execute("DELETE FROM orders WHERE id > 2000", "UPDATE notes SET t = 'x'",
                       "ALTER TABLE notes ADD COLUMN more INT DEFAULT 5",
                       "INSERT INTO notes VALUES (1000, 1, 'new', 7)", database="shop")  # fmt: skip
        third = Process(settings_of(server, landing), WORKER)
        wait_until_same(server, landing)
        before = loaded(landing)
        third.ask(CaptureRequest(("shop.%",), reload=True))
        wait_for_rows(landing, before + 4900)
        server.execute("UPDATE orders SET n = 0", database="shop")
        wait_until_same(server, landing)
        assert third.stop() == 0
    finally:
        server.close()

    assert set(header(landing)["position"]["tables"]) == {"shop.%"}
    assert "snapshot" not in header(landing)["position"]["stream"]["offset"]


def loaded(landing: Path) -> int:
    """How many rows of loads have landed."""
    return sum(one["value"].get("op") == "r" for one in lines(landing))


def wait_for_rows(landing: Path, count: int) -> None:
    """Until so many rows of loads have landed."""
    deadline = time.monotonic() + 120
    while loaded(landing) < count:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def wait_until_same(server, landing) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = folded(landing) if (landing / "shop_db").is_dir() else {}
        if found.get("shop.orders") == source_rows(server, "shop.orders") and (
            marked(found) == marked({"shop.notes": source_rows(server, "shop.notes")})
        ):
            return
        time.sleep(0.5)
    same(server, landing, "shop.orders", "shop.notes")


def marked(tables: dict[str, dict[str, dict[str, object]]]) -> str:
    """Rows without a column that was added later: old rows have no event of it."""
    rows = tables.get("shop.notes", {})
    return json.dumps({key: {**row, "more": 0} for key, row in rows.items()}, sort_keys=True)
