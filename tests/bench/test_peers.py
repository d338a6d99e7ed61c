"""The contenders of `make bench-peers` that need no download, in tiny sizes, without times."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.floors import beside
from bench.floors.lake import Lake
from bench.floors.merge_into import MERGE_ON_READ
from bench.floors.records import land_changes
from bench.floors.sizes import TINY
from bench.peers import feed
from bench.peers.__main__ import chosen, options, sizes_of
from bench.peers.contenders import CONTENDERS, POLYNYA, Contender
from bench.peers.environment import UnavailableError
from bench.peers.measure import Sizes, measure
from bench.peers.process import Process
from bench.peers.result import Result, table
from bench.peers.tables.iceberg import COPY_ON_WRITE, Merged, Versioned
from bench.peers.tables.polynya import Polynya
from bench.peers.tables.table import Table
from bench.peers.tree import Peak, processor_seconds, resident
from bench.peers.worker import Worker
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import load_project
from tests.lab.lab import next_schema

SIZES = Sizes(rows=1_000, count=50, warm_up=0, rounds=1)
BY_NAME = {one.name: one for one in CONTENDERS}
RESURRECTED = {
    "upsert older than its delete": 50,
    "upsert older than the delete of a key that was never there": 50,
}


class InThisProcess(Process):
    """A contender on the session of the tests."""

    def __init__(self, contender: Contender, lake: Lake) -> None:
        self.contender = contender
        self.warehouse = lake.landing
        self.peak = Peak(os.getpid())
        self._worker = Worker(lambda name: self._open(lake, name), reads=1, warm_up=0)

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, do: str, table: str, path: Path | None = None) -> Any:
        return json.loads(json.dumps(self._worker.answer(do, table, str(path or ""))))

    def processor_seconds(self) -> float:
        return processor_seconds(os.getpid())

    def _open(self, lake: Lake, name: str) -> Table:
        if self.contender.opens.startswith("polynya:"):
            return Polynya(lake, name, history=self.contender.history)
        place = f"{lake.peer}.{self.contender.name.replace('-', '_')}_{name}"
        modes = COPY_ON_WRITE if self.contender.name == "iceberg-cow" else MERGE_ON_READ
        kind = Versioned if self.contender.history else Merged
        return kind(lake.spark, place, modes)


@pytest.mark.slow
@pytest.mark.parametrize("names", [["polynya", "iceberg-mor"]], ids="-and-".join)
def test_all_get_the_same_rows_and_only_ours_is_right_when_deletes_come_first(
    names: list[str], spark: SparkSession, shared_project: Path, tmp_path: Path
) -> None:
    target = load_project(shared_project).target

    def start(contender: Contender, folder: Path, _: str) -> Process:
        return InThisProcess(contender, Lake(spark, target, folder / "landing", next_schema()))

    ours, theirs = measure([BY_NAME[name] for name in names], SIZES, tmp_path, start)
    # The session is that of all tests: a view would be listed in every schema.
    spark.catalog.dropTempView("events")

    assert (ours.failed, ours.wrong, ours.late) == ("", 0, {})
    assert (theirs.failed, theirs.wrong, theirs.late) == ("", 0, RESURRECTED)
    assert all(len(one.seconds) == len(one.written) == 1 for one in (ours, theirs))
    assert all(one.files for one in (ours, theirs))


@pytest.mark.slow
def test_a_floor_of_history_is_a_line_when_both_have_the_right_rows(
    spark: SparkSession, shared_project: Path, tmp_path: Path
) -> None:
    target = load_project(shared_project).target
    (case,) = [one for one in beside.cases(TINY) if one.ours == "polynya-history"]

    def start(contender: Contender, folder: Path, _: str) -> Process:
        return InThisProcess(contender, Lake(spark, target, folder / "landing", next_schema()))

    (line,) = beside.measure(tmp_path, case, TINY, start)
    spark.catalog.dropTempView("events")

    assert (line.at_least, len(line.ours), len(line.peer)) == (4.0, TINY.rounds, TINY.rounds)


def test_one_that_cannot_be_run_is_named_with_the_reason_and_stops_nobody(tmp_path: Path) -> None:
    def nobody(contender: Contender, folder: Path, memory: str) -> Process:
        raise UnavailableError(f"no {contender.jars} for {memory}")

    sizes = Sizes(rows=10, count=1, warm_up=0, rounds=1, together=1)
    results = list(measure([BY_NAME["delta"], BY_NAME["hudi"]], sizes, tmp_path, nobody))

    assert [one.failed for one in results] == ["no delta for 2g", "no hudi for 2g"]
    assert "| Delta 4.4.0 `MERGE` | not measured: no delta for 2g |" in table(results, 1)


def test_the_table_compares_with_polynya_and_says_what_is_wrong() -> None:
    ours = Result(POLYNYA, [1.0, 2.0], [3.0], [400], 3, [0.5], 2**30, 0, {})
    theirs = Result(BY_NAME["delta"], [3.0], [3.0], [8000], 9, [0.5], 2**30, 7, RESURRECTED)

    first, second = table([ours, theirs], 100).splitlines()[2:]

    assert first == (
        "| Polynya | 1.50 s (1.00 to 2.00) | 1.00 x | 3.00 s | 4 bytes | 3 | 0.50 s | 1,024 MB "
        "| yes | yes |"
    )
    assert "| 2.00 x |" in second
    assert "| **no**: 7 rows | **no**: upsert older than its delete (50 rows), " in second


def test_a_share_and_a_number_of_changes_give_the_count() -> None:
    assert sizes_of(options(["--rows", "6000000", "--percent", "0.1"])).count == 6_000
    assert sizes_of(options(["--rows", "6000000", "--changes", "10000"])).count == 10_000
    assert {one.name for one in chosen(options(["--history"]))} == {
        "polynya-history",
        "iceberg-scd2",
    }


def test_clustered_keys_are_near_each_other(tmp_path: Path) -> None:
    file = land_changes(tmp_path, "parquet", rows=10_000, count=100, version=3, keys="clustered")

    (row,) = duckdb.sql(
        f"SELECT max(id) - min(id), min(id) FROM '{file}' WHERE op <> 'I'"
    ).fetchall()
    assert 100 < row[0] < 200
    assert row[1] > 0


def test_a_wrong_row_is_found_with_what_was_late_for_it(tmp_path: Path) -> None:
    fed = feed.late(tmp_path)
    (tmp_path / "dump").mkdir()
    duckdb.sql(
        f"COPY (SELECT * EXCLUDE (op) FROM '{fed.load}/*.parquet') "
        f"TO '{tmp_path}/dump/rows.parquet' (FORMAT parquet)"
    )

    wrong = feed.by_lateness(feed.wrong_keys(fed, tmp_path / "dump"))

    # The first load lacks all events: 50 keys of each kind but those that it never had.
    assert wrong == {
        "update older than the row": 50,
        "delete older than the row": 50,
        "upsert older than its delete": 50,
        "not late": 200,
    }


def test_the_memory_of_this_process_is_seen() -> None:
    assert resident(os.getpid()) > 10 * 2**20
