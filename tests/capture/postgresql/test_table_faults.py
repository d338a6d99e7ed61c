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


#: Types whose arrays Debezium turns into lists of NULL where they have several dimensions.
KINDS = {
    "int": "1", "smallint": "1", "bigint": "1", "float8": "1.5", "numeric": "1", "bool": "t",
    "date": "2026-11-28", "timestamptz": "2026-11-28", "time": "10:00", "bytea": "a", "oid": "1",
}  # fmt: skip


def test_lists_of_several_dimensions_leave_out_their_table_in_load_and_stream(
    shop: Shop, tmp_path: Path
) -> None:
    shop.run(
        "CREATE TABLE boards (id int PRIMARY KEY, cells int[][], v int)",
        "INSERT INTO boards VALUES (1, '{{1,2},{3,4}}', 1)",
        "CREATE TABLE loaded (id int PRIMARY KEY, v int[])",
        "INSERT INTO loaded VALUES (1, '[0:1]={5,6}'), (2, '{{1,2},{3,4}}')",
        "CREATE TABLE streamed (id int PRIMARY KEY, v int[])",
        "INSERT INTO streamed VALUES (1, '{NULL}')",
        "CREATE TABLE texts (id int PRIMARY KEY, v text[])",
        *(f'CREATE TABLE "{kind}" (id int PRIMARY KEY, "v {kind}" {kind}[])' for kind in KINDS),
        "CREATE TABLE dropped (id int PRIMARY KEY, v int[])",
        "INSERT INTO dropped VALUES (1, '{{1,2},{3,4}}')",
        "CREATE TABLE orders (id int PRIMARY KEY, v text)",
    )
    (tmp_path / "landing").mkdir()
    masks = {"public.dropped": {"v": "drop"}}
    more = {"table_retries": 0, "masks": masks}
    capture = CaptureProcess(tmp_path / "landing", shop.access(), more)
    capture.start()
    capture.wait_for("streaming")
    capture.wait_for("loaded", times=5 + len(KINDS))

    for kind, value in KINDS.items():
        several = f"{{{{{value},{value}}},{{{value},{value}}}}}"
        shop.run(f"""INSERT INTO "{kind}" VALUES (1, '{{NULL,NULL}}'), (2, '{several}')""")
    shop.run(
        "INSERT INTO texts VALUES (1, '{NULL}'), (2, '{{a,b},{c,d}}')",
        "INSERT INTO boards VALUES (2, '{{1},{2}}', 2)",
        "INSERT INTO dropped VALUES (2, '{{{1}}}')",
        "INSERT INTO streamed VALUES (2, '{NULL,NULL}')",
        "INSERT INTO orders VALUES (1, 'goes on')",
    )
    capture.wait_for_line("orders", id=1)
    capture.end()

    failed = {
        one["table"]: one["error"] for one in capture.events() if one["type"] == "table_failed"
    }
    kinds = {f"public.{kind}" for kind in KINDS}
    assert failed.keys() == {"public.loaded", "public.texts"} | kinds
    assert {one["code"] for one in failed.values()} == {"POLYNYA-GTW-058"}
    assert "public.loaded.v" in failed["public.loaded"]["message"]
    assert "[1:2][1:2]" in failed["public.loaded"]["message"]
    assert "public.texts.v" in failed["public.texts"]["message"]
    tables = capture.tables()
    assert [row["v"] for row in tables["public.streamed"].values()] == [[None], [None, None]]
    # The column is declared with two dimensions, so it is left out.
    assert {row["id"]: row["v"] for row in tables["public.boards"].values()} == {1: 1, 2: 2}
    assert all("cells" not in row for row in tables["public.boards"].values())
    assert sorted(row["id"] for row in tables["public.dropped"].values()) == [1, 2]
    assert "public.loaded" not in tables
