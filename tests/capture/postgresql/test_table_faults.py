"""A change of a real server that cannot be captured: its table is left out, and brought back."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.capture.wire import CaptureRequest
from tests.capture.postgresql.captured import CaptureProcess
from tests.capture.postgresql.shop import Shop

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["numeric(10,2) NOT NULL", "numeric(10,2)", "numeric"])
def test_a_value_that_debezium_cannot_convert_leaves_out_its_table_alone(
    shop: Shop, tmp_path: Path, kind: str
) -> None:
    shop.run(
        f"CREATE TABLE readings (id int PRIMARY KEY, v {kind})",
        "INSERT INTO readings SELECT i, i FROM generate_series(1, 500) i",
        "CREATE TABLE orders (id int PRIMARY KEY, v text)",
    )
    (tmp_path / "landing").mkdir()
    capture = CaptureProcess(tmp_path / "landing", shop.access(), {"table_retries": 1})
    capture.start()
    capture.wait_for("streaming")
    capture.wait_for("loaded", times=2)

    shop.run(
        "UPDATE readings SET v = 0 WHERE id = 1",
        "INSERT INTO readings VALUES (900, 'NaN')",
        "DELETE FROM readings WHERE id = 2",
        "INSERT INTO orders VALUES (1, 'goes on')",
    )
    capture.wait_for_line("orders", id=1)

    failed = [one for one in capture.events() if one["type"] == "table_failed"]
    assert [one["suspended"] for one in failed] == [False, True]
    assert {one["table"] for one in failed} == {"public.readings"}
    assert failed[0]["error"]["code"] == "POLYNYA-GTW-057"
    assert "public.readings.v, of type numeric" in failed[0]["error"]["message"]

    shop.run(
        "UPDATE readings SET v = 900 WHERE id = 900",
        "DELETE FROM readings WHERE id = 3",
    )
    assert capture.process is not None
    assert capture.process.stdin is not None
    capture.process.stdin.write(CaptureRequest(("public.readings",), reload=False).line())
    capture.process.stdin.flush()
    capture.wait_for("loaded", times=3)
    shop.run("INSERT INTO readings VALUES (901, 1)")
    capture.wait_for_line("readings", id=901)
    capture.end()

    found = sorted(row["id"] for row in capture.tables()["public.readings"].values())
    assert found == [row[0] for row in shop.run("SELECT id FROM readings ORDER BY 1")]
    assert [row["v"] for row in capture.tables()["public.orders"].values()] == ["goes on"]
