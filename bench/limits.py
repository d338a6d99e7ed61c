"""How far a round of changes is from the least that it must do: `python -m bench.limits --help`.

Whoever applies changes finds the rows that change and writes new ones. DuckDB and plain Spark read
the key of the same data files and look for the same keys; pyarrow writes the landed events once.
The limit is the faster of the two scans and that write: it keeps no order and commits nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec

import duckdb
import pyarrow.parquet as pq

from bench.floors.floor import Measured
from bench.floors.lake import Lake, lake_in, take_in, work_of
from bench.floors.records import land_changes, land_load
from bench.floors.sizes import Sizes
from bench.floors.tasks import task
from bench.measurements import circumstances
from polynya.lake.spark.api import SparkSession

P = ParamSpec("P")

_HEADS = (
    "changes", "rows", "Polynya", "DuckDB finds the keys", "Spark finds the keys",
    "pyarrow writes the rows", "Polynya, in limits",
)  # fmt: skip
_FILES = 8
#: Limits that an apply may take at most, by the sizes of the floors from small to large.
FLOORS = (5, 3)


@dataclass(slots=True)
class Rounds:
    """Seconds of each round, for a table of `rows` rows and files of `count` events."""

    rows: int
    count: int
    polynya: list[float] = field(default_factory=list)
    duckdb: list[float] = field(default_factory=list)
    spark: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)

    def limits(self) -> list[float]:
        """The limit of each round."""
        sides = zip(self.duckdb, self.spark, self.write, strict=True)
        return [min(duck, spark) + write for duck, spark, write in sides]

    def row(self) -> str:
        """The line of the table, of medians."""
        ours, duck, spark, write = (
            statistics.median(one) for one in (self.polynya, self.duckdb, self.spark, self.write)
        )
        limit = min(duck, spark) + write
        seconds = (f"{one:.2f} s" for one in (ours, duck, spark, write))
        cells = (f"{self.count:,}", f"{self.rows:,}", *seconds, f"{ours / limit:.1f}")
        return f"| {' | '.join(cells)} |"


def measure(lake: Lake, *, rows: int, count: int, rounds: int, warm_up: int) -> Rounds:
    """Load a table, then take in file after file; each is first looked for by the others."""
    name = f"limit_{rows}_{count}"
    folder, found = lake.landing / name, Rounds(rows, count)
    land_load(folder / "load", "parquet", rows=rows, files=_FILES)
    declared = task(name, "parquet", schema=lake.schema)
    declared["datasets"][0]["columns"] = {"ts": "timestamp"}
    context = lake.engine()
    work = work_of(context, declared)
    take_in(context, work)
    for version in range(1, warm_up + rounds + 1):
        file = land_changes(folder / "changes", "parquet", rows=rows, count=count, version=version)
        stored = current_files(lake, name)
        took = (
            _seconds(take_in, context, work),
            _seconds(_found_by_duckdb, stored, file),
            _seconds(_found_by_spark, lake.spark, stored, file),
            _seconds(_written, file, folder / "written.parquet"),
        )
        if version > warm_up:
            sides = (found.polynya, found.duckdb, found.spark, found.write)
            for side, seconds in zip(sides, took, strict=True):
                side.append(seconds)
    return found


def floors(lake: Lake, sizes: Sizes) -> Iterator[Measured]:
    """The lines of the floors: applies, as multiples of the limit."""
    for rows, most in zip(sizes.limit_rows, FLOORS, strict=False):
        count = max(1, int(rows * sizes.apply_fraction))
        found = measure(lake, rows=rows, count=count, rounds=sizes.rounds, warm_up=sizes.warm_up)
        yield Measured(
            f"{count:,} changes on {rows:,} rows, in limits",
            found.polynya,
            found.limits(),
            "the limit: DuckDB or Spark finds the keys, pyarrow writes the rows",
            1 / most,
            f"at most {most} limits; median of {sizes.rounds} rounds after {sizes.warm_up}",
        )


def current_files(lake: Lake, name: str) -> list[str]:
    """Paths of the data files of Current."""
    table = lake.catalog.load_table(f"{lake.schema}_internal.{name}_internal")
    tasks = table.scan(row_filter="hdr__partition = 'current'").plan_files()
    return [one.file.file_path.removeprefix("file:") for one in tasks]


def _seconds(work: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> float:
    began = time.perf_counter()
    work(*arguments, **named)
    return time.perf_counter() - began


def _found_by_duckdb(stored: Sequence[str], file: Path) -> None:
    files = ", ".join(f"'{one}'" for one in stored)
    duckdb.sql(
        f"SELECT count(*), sum(file_row_number) FROM read_parquet([{files}], file_row_number=true) "
        f"WHERE id IN (SELECT id FROM read_parquet('{file}'))"
    ).fetchall()


def _found_by_spark(spark: SparkSession, stored: Sequence[str], file: Path) -> None:
    keys = spark.read.parquet(str(file)).select("id").distinct()
    rows = spark.read.parquet(*stored).select("id", "_metadata.row_index")
    rows.join(keys.hint("broadcast"), "id", "left_semi").agg({"row_index": "sum"}).collect()


def _written(file: Path, path: Path) -> None:
    pq.write_table(pq.read_table(file), path, compression="zstd")


def main() -> None:
    """Print each line when it is known."""
    parser = argparse.ArgumentParser(prog="python -m bench.limits", description=__doc__)
    sizes = [1_000_000, 6_000_000, 24_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes, help="rows of the tables")
    parser.add_argument("--changes", type=int, help="events in a file; one percent unless told")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before them")
    parser.add_argument("--memory", default="6g", help="heap of the JVM; default 6g")
    given = parser.parse_args()
    os.environ.setdefault("POLYNYA_DRIVER_MEMORY", given.memory)
    began = circumstances()
    print(f"| {' | '.join(_HEADS)} |\n{'|---' * len(_HEADS)}|")
    with tempfile.TemporaryDirectory() as folder, lake_in(Path(folder)) as lake:
        for rows in given.rows:
            count = given.changes or max(1, rows // 100)
            found = measure(
                lake, rows=rows, count=count, rounds=given.rounds, warm_up=given.warm_up
            )
            print(found.row(), flush=True)
    print(f"\nBegan {began}; ended {circumstances()}")


if __name__ == "__main__":
    main()
