"""Long values of a real server, under a limit, are the same in load and stream."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.capture.mysql.capturing import Process, finish, folded, settings_of
from tests.mariadb import new_server

pytestmark = pytest.mark.slow
TABLE = "CREATE TABLE docs (id INT PRIMARY KEY, b LONGBLOB NOT NULL, t LONGTEXT, v VARCHAR(9))"
LONG = "INSERT INTO docs VALUES ({}, REPEAT(x'00ff', 40000), REPEAT('é', 30000), 'v')"
SHORT = "INSERT INTO docs VALUES ({}, x'00ff', 'é', 'v')"


def test_long_values_are_cut_left_out_or_end_the_capture(tmp_path: Path) -> None:
    server = new_server(tmp_path / "server")
    try:
        server.start()
        server.execute("CREATE DATABASE shop")
        server.execute(TABLE, LONG.format(1), SHORT.format(2), database="shop")
        for then in ("truncate", "null"):
            finish(server, tmp_path / then, lob_bytes=4097, lob_then=then)
        server.execute("DELETE FROM docs WHERE id = 1", database="shop")
        finish(server, tmp_path / "stop", lob_bytes=4097, lob_then="stop")

        server.execute(LONG.format(3), SHORT.format(4), LONG.format(1), database="shop")

        for then in ("truncate", "null"):
            finish(server, tmp_path / then, lob_bytes=4097, lob_then=then)
        ends = {"lob_bytes": 4097, "lob_then": "stop", "table_retries": 0, "table_then": "stop"}
        stopped = Process(settings_of(server, tmp_path / "stop", **ends))
        assert stopped.wait() == 3
        assert stopped.events[-1]["error"]["code"] == "POLYNYA-GTW-054"
    finally:
        server.close()

    cut, without = (rows_of(tmp_path / then) for then in ("truncate", "null"))
    for key in (1, 3):
        assert base64.b64decode(cut[key]["b"]) == bytes([0, 255]) * 2048 + b"\0"
        assert cut[key]["t"] == "é" * 2048
        assert without[key] == {"id": key, "b": None, "t": None, "v": "v"}
    assert cut[2] == cut[4] | {"id": 2} == {"id": 2, "b": "AP8=", "t": "é", "v": "v"}
    assert list(rows_of(tmp_path / "stop")) == [2]


def rows_of(landing: Path) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in folded(landing)["shop.docs"].values()}
