"""Find touched keys in large tables: every key read, or looked up in an index. No Spark.

For each size: what building the indexes takes, their bytes, what a look-up takes in a process that
has not opened them yet, and afterwards. Keys are 64-bit numbers in no order, so that no range of
keys helps. Seconds, median of RUNS, with processor seconds in brackets. `POLYNYA_BENCH_ROWS` names
other sizes, with commas.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.apply.build import IndexSource
from polynya.lake.apply.key_index import Costs, Folder, KeyIndexes
from polynya.lake.apply.probe import NeededOrder, Probe
from polynya.lake.apply.records import TouchedRecords
from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import TableFile
from polynya.model import headers as h
from polynya.store.data_files import LocalFiles

SIZES = [int(one) for one in os.environ.get("POLYNYA_BENCH_ROWS", "").split(",") if one] or [
    1_000_000, 6_000_000, 24_000_000,
]  # fmt: skip
TOUCHED = (10_000, 240_000)
FILE_ROWS, GROUP_ROWS = 6_000_000, 1_000_000
RUNS = 5
#: Keys go through all numbers below a prime, in no order.
PRIME, FACTOR = 2_147_483_647, 1_103_515_245
TIME = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {
    "id": "long",
    h.INSERTED_TIMESTAMP: "timestamptz",
    h.CHANGE_IDENTIFIER: "string",
    h.SEQUENCE_TAIL: "string",
    h.OPERATION: "string",
    h.FROM_TIMESTAMP: "timestamptz",
}
COLUMNS = {
    name: {"id": number, "name": name, "type": kind, "required": False}
    for number, (name, kind) in enumerate(TYPES.items(), 1)
}
#: Indexes are used wherever there is one, and only the benchmark builds them.
ALWAYS = Costs(read_ns=10**6, build_ns=10**9)


def main() -> None:
    """Print the table."""
    print("| rows | touched | keys read | built | bytes a row | first look-up | look-up | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rows in SIZES:
            for line in lines(Path(folder) / str(rows), rows):
                print(f"| {' | '.join(line)} |", flush=True)


def lines(folder: Path, rows: int) -> Iterator[list[str]]:
    """A line for each number of touched keys."""
    files = [written(folder / f"{start}.parquet", start, min(start + FILE_ROWS, rows))
             for start in range(0, rows, FILE_ROWS)]  # fmt: skip
    plain = Probe(LocalFiles(), files, COLUMNS, [COLUMNS["id"]])
    where = Folder(folder / "keys", 1 << 40)
    building = timed(lambda: build(KeyIndexes(where), plain), 1)
    size = sum(one.stat().st_size for one in where.path.iterdir())
    for count in TOUCHED:
        touched = TouchedRecords([keys(0, rows).take(pa.array(range(0, rows, rows // count)))])
        indexes = KeyIndexes(where, costs=ALWAYS)
        probe = Probe(LocalFiles(), files, COLUMNS, [COLUMNS["id"]], indexes)
        read = timed(lambda: plain.find(touched, WANTED), RUNS)  # noqa: B023 - called at once
        first = timed(lambda: probe.find(touched, WANTED), 1)  # noqa: B023
        then = timed(lambda: probe.find(touched, WANTED), RUNS)  # noqa: B023
        cells = [read, building, first, then]
        shown = [f"{wall:.3f} ({cpu:.3f})" for wall, cpu in cells]
        shown.insert(2, f"{size / rows:.1f}")
        yield [f"{rows:,}", f"{count:,}", *shown, f"{read[0] / then[0]:.1f}"]


WANTED = NeededOrder("9", TIME)


def build(indexes: KeyIndexes, probe: Probe) -> None:
    """Build all indexes, one after the other."""
    for file, stored in probe.files:
        indexes.build(IndexSource(file, stored, probe.keys, [COLUMNS[h.INSERTED_TIMESTAMP]]))


def keys(start: int, end: int) -> pa.Array:
    """The keys of some rows."""
    numbers = pa.array(range(start + 1, end + 1), pa.int64())
    spread = pc.multiply(numbers, FACTOR)
    return pc.subtract(spread, pc.multiply(pc.divide(spread, PRIME), PRIME))


def written(path: Path, start: int, end: int) -> tuple[DataFile, TableFile]:
    """A data file of Current with the keys of some rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    time_of = pa.scalar(TIME, pa.timestamp("us", "UTC"))
    same: dict[str, Any] = {
        h.INSERTED_TIMESTAMP: time_of, h.CHANGE_IDENTIFIER: pa.scalar("0" * 35),
        h.SEQUENCE_TAIL: pa.scalar("0"), h.OPERATION: pa.scalar("L"), h.FROM_TIMESTAMP: time_of,
    }  # fmt: skip
    rows = {
        "id": keys(start, end),
        **{name: pa.repeat(one, end - start) for name, one in same.items()},
    }
    pq.write_table(as_stored(pa.table(rows), list(COLUMNS.values())), path,
                   row_group_size=GROUP_ROWS, compression="zstd", compression_level=1)  # fmt: skip
    file = DataFile(None, str(path), "current", end - start, path.stat().st_size)
    return file, TableFile(LocalFiles(), str(path))


def timed(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median seconds, and processor seconds, of some runs."""
    walls, cpus = [], []
    for _ in range(runs):
        began, used = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - began)
        cpus.append(time.process_time() - used)
    return statistics.median(walls), statistics.median(cpus)
