"""Long values of a real server, under a limit, are the same in load and stream."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop

pytestmark = pytest.mark.slow
TABLE = "CREATE TABLE docs (id int PRIMARY KEY, t text NOT NULL, b bytea, j jsonb NOT NULL, n int)"
LONG = (
    "INSERT INTO docs VALUES ({}, repeat('é', 30000), decode(repeat('00ff', 40000), 'hex'),"
    " to_jsonb(repeat('x', 9000)), 0)"
)
SHORT = "INSERT INTO docs VALUES ({}, 'é', decode('00ff', 'hex'), '[1]', 0)"


@pytest.mark.parametrize("then", ["truncate", "null"])
def test_long_values_are_cut_or_left_out(shop: Shop, tmp_path: Path, then: str) -> None:
    shop.run(TABLE, LONG.format(1), SHORT.format(2))
    (tmp_path / "landing").mkdir()
    settings = {"lob_bytes": 4097, "lob_then": then}
    capture = CaptureProcess(tmp_path / "landing", shop.access(), settings)
    capture.finish()

    # The long ones of this row are not sent again: they stay cut.
    shop.run("UPDATE docs SET n = 7 WHERE id = 1", LONG.format(3), SHORT.format(4))
    capture.finish()

    rows = {row["id"]: row for row in capture.tables()["public.docs"].values()}
    expected: dict[str, Any] = {"t": None, "b": None, "j": None}
    if then == "truncate":
        content = bytes([0, 255]) * 2048 + b"\0"
        expected = {"t": "é" * 2048, "b": base64.b64encode(content).decode(), "j": None}
    assert rows[1] == {"id": 1, **expected, "n": 7}
    assert rows[3] == {"id": 3, **expected, "n": 0}
    assert rows[2] == rows[4] | {"id": 2} == {"id": 2, "t": "é", "b": "AP8=", "j": "[1]", "n": 0}


def test_a_long_value_of_a_change_ends_the_capture_where_the_task_says_so(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run(TABLE, SHORT.format(2))
    (tmp_path / "landing").mkdir()
    settings = {
        "lob_bytes": 4097, "lob_then": "stop", "table_retries": 0, "table_then": "stop"
    }  # fmt: skip
    capture = CaptureProcess(tmp_path / "landing", shop.access(), settings)
    capture.finish()

    shop.run(LONG.format(1))
    capture.start("once")
    assert capture.process is not None
    assert capture.process.wait(120) == 3

    assert capture.events()[-1]["error"]["code"] == "POLYNYA-GTW-054"
    assert len(capture.tables()["public.docs"]) == 1
    shop.run("DELETE FROM docs WHERE id = 1")
    capture.settings = {"lob_bytes": 200_000, "lob_then": "stop"}
    capture.finish()
    assert len(capture.tables()["public.docs"]) == 1
