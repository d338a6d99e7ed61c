"""Read a table without Spark, beside PyIceberg's and DuckDB's own scans of the applied rows.

The table has 1,000,000 rows of eight columns. `polynya.open` and PyIceberg read all of them as
Arrow; the engine of `polynya query` and DuckDB answer one statement, DuckDB over the data files,
which it is told. All in turns in one warm process: with nothing pending, and with changes of 1 % of
the records, which only Polynya shows. Seconds, median of RUNS. `POLYNYA_BENCH_ROWS` names another
size. `make bench-floors ARGS=reads` has a floor for each line.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

import polynya
from bench.floors.floor import Measured
from bench.floors.loads import Start, new_process
from polynya.engine.answers import answer_embedded
from polynya.model.loader import load_project

ROWS = int(os.environ.get("POLYNYA_BENCH_ROWS", "1000000"))
RUNS = 9
#: What is pending → times the scan that a read may take at most.
FLOORS: Final = {"nothing": 1.3, "1 %": 1.6}
STATEMENT: Final = "SELECT count(*), count(name), count(city), sum(visits), max(visits) FROM {}"
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
    with tempfile.TemporaryDirectory() as name:
        for line in measure(Path(name), ROWS):
            print(line.row(), flush=True)


def measure(
    folder: Path, rows: int, runs: int = RUNS, start: Start = new_process
) -> Iterator[Measured]:
    """Two lines with nothing pending, and two with pending changes."""
    (folder / "tasks").mkdir(parents=True)
    (folder / "polynya.yml").write_text(PROJECT)
    (folder / "tasks" / "shops.yml").write_text(TASK)
    steps = (("nothing", 1, "always"), ("1 %", 100, "never"))
    for number, (pending, step, apply) in enumerate(steps, 1):
        land(folder, str(number), 0, rows, step)
        command = ("-m", "polynya", "run", "--once", "--apply", apply, "--quiet", "--project")
        start((*command, str(folder)))
        yield _read(folder, rows, pending, runs)
        yield _answered(folder, rows, pending, runs)


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


def _read(folder: Path, rows: int, pending: str, runs: int) -> Measured:
    """All rows as Arrow."""
    catalog = load_catalog(
        "polynya", type="sql", uri=f"sqlite:///{folder}/warehouse/catalog.db",
        warehouse=f"file://{folder}/warehouse",
    )  # fmt: skip
    shops = polynya.open(folder).table("shop.shops")

    def peer() -> int:
        table = catalog.load_table("shop_internal.shops_internal")
        scan = table.scan("hdr__partition == 'current'", selected_fields=FIELDS)
        return int(scan.to_arrow().num_rows)

    def own() -> int:
        return int(shops.current(FIELDS).to_arrow().num_rows)

    assert own() == peer() == rows
    what = f"`polynya.open` of {rows:,} rows, {pending} pending"
    return _line(what, *_in_turns(own, peer, runs), "PyIceberg's scan", pending)


def _answered(folder: Path, rows: int, pending: str, runs: int) -> Measured:
    """One statement over all rows."""
    project = load_project(folder)
    table = load_catalog(
        "polynya", type="sql", uri=f"sqlite:///{folder}/warehouse/catalog.db",
        warehouse=f"file://{folder}/warehouse",
    ).load_table("shop_internal.shops_internal")  # fmt: skip
    planned = table.scan("hdr__partition == 'current'").plan_files()
    files = ", ".join(f"'{one.file.file_path.removeprefix('file:')}'" for one in planned)

    def peer() -> object:
        return duckdb.sql(STATEMENT.format(f"read_parquet([{files}])")).fetchone()

    def own() -> object:
        _, batches = answer_embedded(project, STATEMENT.format("shop.shops"))
        return tuple(batches[0].to_pylist()[0].values())

    # Pending changes give the records the same values again.
    assert own() == peer()
    what = f"a statement over {rows:,} rows, {pending} pending"
    return _line(what, *_in_turns(own, peer, runs), "DuckDB over the data files", pending)


def _in_turns(
    own: Callable[[], object], peer: Callable[[], object], runs: int
) -> tuple[list[float], list[float]]:
    """Seconds of both in each run, each first equally often."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(runs):
        sides = list(zip((own, peer), seconds, strict=True))
        for work, taken in sides if number % 2 else sides[::-1]:
            began = time.perf_counter()
            work()
            taken.append(time.perf_counter() - began)
    return seconds


def _line(
    what: str, ours: Sequence[float], peer: Sequence[float], peer_is: str, pending: str
) -> Measured:
    most = FLOORS[pending]
    settings = f"at most {most} times the scan; in one warm process, median of {len(ours)} in turns"
    return Measured(what, ours, peer, peer_is, 1 / most, settings)


if __name__ == "__main__":
    main()
