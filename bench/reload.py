"""A full extract of which 1 % differs, against the table of the one before, through the engine.

Prints the seconds of each step, those of `CREATE TABLE AS SELECT` of the same file in the same
session right after it, and what the commit that moved the differences wrote, next to the size of
the table. The first extract fills the table, in a session that has done nothing yet (cold); the
others are reloads, in turns with their peer (warm from the second on). `POLYNYA_BENCH_ROWS`,
`POLYNYA_BENCH_FRACTION` and `POLYNYA_BENCH_ROUNDS` (reloads) set the sizes.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from bench.floors.ctas import PROPERTIES
from bench.session import session_in
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.task import StorageTask
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "1000000"))
FRACTION = float(os.environ.get("POLYNYA_BENCH_FRACTION", "0.01"))
ROUNDS = int(os.environ.get("POLYNYA_BENCH_ROUNDS", "3"))


def task_of(schema: str) -> StorageTask:
    """A task that takes in the extracts of `users`."""
    return StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "bench",
            "schema": schema,
            "landing": {"path": "users", "format": "parquet"},
            "datasets": [{"name": "users", "keys": ["id"], "history": True, "extracts": {}}],
        }
    )


def extract(path: Path, *, number: int, rows: int, fraction: float) -> None:
    """Write one extract; in each after the first other records differ from those before it."""
    ids, every = range(rows), round(1 / fraction)
    version = [max((k for k in range(1, number) if n % every == k), default=0) for n in ids]
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"customer-{n % 50_000}" for n in ids],
            "city": [f"city-{n % 300}{'x' * version[n]}" for n in ids],
            "amount": [n * 1.5 for n in ids],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    pq.write_table(table, partial)
    partial.rename(path)


def run(spark: SparkSession, landing: Path) -> list[tuple[str, float]]:
    """Take in what has landed; every event and the seconds since the one before."""
    seen: list[tuple[str, float]] = []
    before = time.monotonic()

    def note(event: Event) -> None:
        nonlocal before
        now = time.monotonic()
        seen.append((event.type, now - before))
        before = now

    context = EngineContext(spark=spark, landing=LocalObjectStore(landing), sink=note)
    for failure in run_once(context, units(context, [task_of("bench")])).failures.values():
        raise failure
    return seen


def peer(spark: SparkSession, file: Path, table: str) -> float:
    """Seconds of `CREATE TABLE AS SELECT` of an extract; the table is dropped."""
    spark.read.parquet(str(file)).createOrReplaceTempView("landed")
    began = time.monotonic()
    spark.sql(
        f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ({PROPERTIES}) AS SELECT * FROM landed"
    )
    seconds = time.monotonic() - began
    spark.sql(f"DROP TABLE {table} PURGE")
    spark.catalog.dropTempView("landed")
    return seconds


def main() -> None:
    """Take in the extracts, and print what each cost."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session_in(folder)
        spark.sql("CREATE NAMESPACE polynya.peer")
        landing = Path(folder) / "landing"
        ratios = []
        for number in range(1, ROUNDS + 2):
            file = landing / "users" / f"{number}.parquet"
            extract(file, number=number, rows=ROWS, fraction=FRACTION)
            began = time.monotonic()
            steps = run(spark, landing)
            whole = time.monotonic() - began
            loading = sum(seconds for kind, seconds in steps if kind == "reload.loaded")
            moving = sum(seconds for kind, seconds in steps if kind == "extract.applied")
            beside = peer(spark, file, "polynya.peer.users")
            if number > 1:
                ratios.append(whole / beside)
            print(
                f"extract {number}: {whole:6.1f} s (loading {loading:6.1f} s, comparing and moving "
                f"{moving:6.1f} s), CREATE TABLE AS SELECT {beside:6.1f} s: {whole / beside:.2f} "
                "times",
                flush=True,
            )
        print(f"a reload takes {median(ratios):.2f} times as long, median of {ROUNDS} rounds")
        (last,) = spark.sql(
            "SELECT summary FROM polynya.bench_internal.users_internal.snapshots "
            "ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        written, total = (int(last[0][key]) for key in ("added-files-size", "total-files-size"))
        print(
            f"{ROWS:,} rows, {FRACTION:.1%} changed, {os.cpu_count()} cores: the last commit wrote "
            f"{written:,} bytes ({written / total:.1%} of the table's {total:,})"
        )


if __name__ == "__main__":
    main()
