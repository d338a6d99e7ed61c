"""Read a table from Python: `polynya.open` beside PyIceberg's own scan of the applied rows.

The table has 1,000,000 rows of eight columns. Both read all of them as Arrow, in turns in one warm
process: with nothing pending, and with changes of 1 % of the records, which only Polynya shows.
Seconds, median of RUNS. `POLYNYA_BENCH_ROWS` names another size.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

import polynya

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "1000000"))
RUNS = 9
FIELDS = ("id", "name", "city", "amount", "price", "visits", "is_open", "seen")
PROJECT = """apiVersion: polynya/v1
kind: project
name: reads
targets: {local: {landing: ./landing, warehouse: ./warehouse}}
"""
TASK = """apiVersion: polynya/v1
kind: storage
name: shops
schema: shop
landing: {path: shops, format: parquet}
datasets:
  - name: shops
    keys: [id]
    sequence_by: [n]
    except_columns: [n]
"""


def main() -> None:
    """Print the table."""
    print(f"{ROWS:,} rows, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| pending | PyIceberg | Polynya | ratio | rows |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "polynya.yml").write_text(PROJECT)
        (folder / "tasks").mkdir()
        (folder / "tasks" / "shops.yml").write_text(TASK)
        land(folder, "1", 0, ROWS, 1)
        run(folder, "always")
        print_line(folder, "nothing")
        land(folder, "2", 0, ROWS, 100)
        run(folder, "never")
        print_line(folder, "1 %")


def land(folder: Path, name: str, start: int, end: int, step: int) -> None:
    """Land rows of every `step`th key; later files hold newer versions."""
    number = pa.array(range(start, end, step), pa.int64())
    text = number.cast(pa.string())
    rows = {
        "id": number,
        "name": pc.binary_join_element_wise("shop", text, "-"),
        "city": pc.binary_join_element_wise("city", pc.utf8_slice_codeunits(text, 0, 2), " "),
        "amount": number.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "price": number.cast(pa.float64()),
        "visits": number.cast(pa.int32()),
        "is_open": pc.equal(pc.bit_wise_and(number, 1), 0),
        "seen": number.cast(pa.timestamp("us", "UTC")),
        "n": pa.repeat(pa.scalar(int(name), pa.int64()), len(number)),
    }
    (folder / "landing" / "shops").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), folder / "landing" / "shops" / f"{name}.parquet")


def run(folder: Path, apply: str) -> None:
    """Copy what has landed."""
    subprocess.run(
        [sys.executable, "-m", "polynya", "run", "--once", "--apply", apply],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def print_line(folder: Path, pending: str) -> None:
    """Read in turns, and print the medians."""
    catalog = load_catalog(
        "polynya", type="sql", uri=f"sqlite:///{folder}/warehouse/catalog.db",
        warehouse=f"file://{folder}/warehouse",
    )  # fmt: skip
    shops = polynya.open(folder).table("shop.shops")

    def peer() -> pa.Table:
        table = catalog.load_table("shop_internal.shops_internal")
        return table.scan("hdr__partition == 'current'", selected_fields=FIELDS).to_arrow()

    def own() -> pa.Table:
        return shops.current(FIELDS).to_arrow()

    rows = own().num_rows
    peer()
    times: dict[Callable[[], pa.Table], list[float]] = {peer: [], own: []}
    for _ in range(RUNS):
        for read, seconds in times.items():
            began = time.perf_counter()
            read()
            seconds.append(time.perf_counter() - began)
    theirs, ours = (statistics.median(seconds) for seconds in times.values())
    print(f"| {pending} | {theirs:.3f} | {ours:.3f} | {ours / theirs:.2f} | {rows:,} |", flush=True)


if __name__ == "__main__":
    main()
