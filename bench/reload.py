"""A full extract of which 1 % differs, against the table of the one before, through the engine.

Prints the seconds of each step and what the commit that moved the differences wrote, next to the
size of the table. `POLYNYA_BENCH_ROWS` and `POLYNYA_BENCH_FRACTION` set the sizes.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.session import session_in
from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.lake.spark.api import SparkSession
from polynya.model.config.task import StorageTask
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "1000000"))
FRACTION = float(os.environ.get("POLYNYA_BENCH_FRACTION", "0.01"))
TASK = StorageTask.model_validate(
    {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "bench",
        "schema": "bench",
        "landing": {"path": "users", "format": "parquet"},
        "datasets": [{"name": "users", "keys": ["id"], "history": True, "extracts": {}}],
    }
)


def extract(path: Path, *, changed: int) -> None:
    """Write one extract; every record whose number `changed` divides differs from the others'."""
    ids = range(ROWS)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"customer-{n % 50_000}" for n in ids],
            "city": [f"city-{n % 300}{'x' if changed and n % changed == 0 else ''}" for n in ids],
            "amount": [n * 1.5 for n in ids],
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".tmp")
    pq.write_table(table, partial)
    partial.rename(path)


def run(spark: SparkSession, landing: Path) -> list[tuple[str, float]]:
    """Process what has landed; every event and the seconds since the one before."""
    seen: list[tuple[str, float]] = []
    before = time.monotonic()

    def note(event: Event) -> None:
        nonlocal before
        now = time.monotonic()
        seen.append((event.type, now - before))
        before = now

    context = EngineContext(spark=spark, landing=LocalObjectStore(landing), sink=note)
    for failure in run_once(context, units(context, [TASK])).failures.values():
        raise failure
    return seen


def main() -> None:
    """Take in two extracts, and print what the second one cost."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session_in(folder)
        landing = Path(folder) / "landing"
        for number, changed in ((1, 0), (2, round(1 / FRACTION))):
            extract(landing / "users" / f"{number}.parquet", changed=changed)
            steps = run(spark, landing)
            loading = sum(seconds for kind, seconds in steps if kind == "reload.loaded")
            moving = sum(seconds for kind, seconds in steps if kind == "extract.applied")
            print(
                f"extract {number}: loading {loading:6.1f} s, comparing and moving {moving:6.1f} s"
            )
        (last,) = spark.sql(
            "SELECT summary FROM polynya.bench_internal.users_internal.snapshots "
            "ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        written, whole = (int(last[0][key]) for key in ("added-files-size", "total-files-size"))
        print(
            f"{ROWS:,} rows, {FRACTION:.1%} changed, {os.cpu_count()} cores: the last commit wrote "
            f"{written:,} bytes ({written / whole:.1%} of the table's {whole:,})"
        )


if __name__ == "__main__":
    main()
