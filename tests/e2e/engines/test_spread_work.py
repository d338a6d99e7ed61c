"""A copy and an apply whose rows and places two workers of a cluster hold, and not the driver."""

from __future__ import annotations

import base64
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.killing import Running, running
from tests.e2e.spark_cluster import kill_executor, python_workers, spark_cluster
from tests.oracle.packs.driver import CliDriver
from tests.oracle.packs.read_back import (
    duckdb_with_iceberg,
    internal_table,
    metadata_location,
)
from tests.projects import write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]
#: Records, files of changes that touch each of them, and characters of a changed record.
ROWS, CHANGES, TEXT = 200_000, 4, 300
#: Of the driver, in MiB: Spark starts with no less.
HEAP = 512
TASK = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: orders, format: parquet}
datasets:
  - name: orders
    keys: [id]
    sequence_by: [at]
    initial_load: "load/*.parquet"
    path: "changes/*.parquet"
    apply_as_deletes: "op = 'D'"
engine: {mode: spark, master: MASTER, memory: 600m}
"""
_SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.int64()), ("op", pa.string()), ("note", pa.string())]
)
#: The newest event of each record, and what Current holds of it.
_WANTED = """
SELECT id, "at", note FROM (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY "at" DESC) AS place FROM read_parquet(?)
) WHERE place = 1 AND op <> 'D'"""
_STORED = """SELECT id, "at", note FROM iceberg_scan(?) WHERE hdr__partition = 'current'"""


@pytest.mark.parametrize("version", [2, 3])
def test_two_workers_copy_and_apply_what_the_driver_need_not_hold(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYNYA_DRIVER_MEMORY", f"{HEAP}m")
    workers, shop = tmp_path / "workers", tmp_path / "shop"
    with spark_cluster(workers) as master:
        task = TASK.replace("MASTER", f"'{master}'")
        task += f"defaults: {{format_version: {version}}}\n" if version > 2 else ""
        write_project(shop, shop=task)
        landed = shop / "landing" / "orders"
        _land(landed / "load" / "0.parquet", at=0, text=10)
        CliDriver().run_project(shop)
        for number in range(1, CHANGES + 1):
            _land(landed / "changes" / f"{number}.parquet", at=number, text=TEXT)

        copied = CliDriver(timeout_seconds=3000).run_project(shop, apply="never")
        with running(shop, "run", "--once", "--apply", "always", "--debug") as run:
            _wait_for(run, "tasks write the deletes in")
            kill_executor(workers, "one")
            assert run.wait(3000) == 0, run.text()

    reasons = [event["reason"] for event in copied.events if event["type"] == "load.progress"]
    assert reasons
    assert all(reason.startswith("change files of") for reason in reasons)
    assert python_workers(workers) == ["one", "two"]
    table = metadata_location(shop, *internal_table("shop", "orders"))
    with duckdb_with_iceberg() as duckdb:
        files = [str(path) for path in sorted(landed.rglob("*.parquet"))]
        for one, other in ((_WANTED, _STORED), (_STORED, _WANTED)):
            given = [files, table] if one is _WANTED else [table, files]
            differing = f"SELECT count(*) FROM ({one} EXCEPT ALL {other})"
            assert duckdb.execute(differing, given).fetchone() == (0,)
        assert duckdb.execute(f"SELECT count(*) FROM ({_STORED})", [table]).fetchone() != (0,)


def _land(path: Path, *, at: int, text: int) -> None:
    """A record of each key; the newest file deletes those that a thousand divides."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, _SCHEMA, compression="none") as writer:
        for begin in range(0, ROWS, 50_000):
            keys = range(begin, begin + 50_000)
            notes = [base64.b64encode(os.urandom(text * 3 // 4)).decode() for _ in keys]
            ops = ["D" if at == CHANGES and key % 1000 == 0 else "U" for key in keys]
            writer.write_table(
                pa.table({"id": keys, "at": [at] * len(keys), "op": ops, "note": notes}, _SCHEMA)
            )


def _wait_for(run: Running, text: str) -> None:
    deadline = time.monotonic() + 2400
    while text not in run.output.read_text("utf-8", "replace"):
        assert time.monotonic() < deadline, run.text()
        assert run.process.poll() is None, run.text()
        time.sleep(0.2)
