"""Every contender of `make bench-floors` gets the same rows, in tiny sizes; no time is asserted.

Each `measure` holds the results against each other, read by DuckDB from the committed files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import limits, reads
from bench.floors import beside, ctas, loads, merges, reloads, small, views, waiting
from bench.floors.__main__ import NAMED, PARTS
from bench.floors.floor import Measured, table
from bench.floors.lake import Lake
from bench.floors.records import Kind
from bench.floors.sizes import TINY
from bench.peers.contenders import Contender
from bench.peers.environment import UnavailableError
from bench.peers.process import Process
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import load_project
from tests.lab.commands import InProcessDriver, commands_over, fresh_session, use_everywhere
from tests.lab.lab import next_schema


@pytest.fixture
def lake(spark: SparkSession, shared_project: Path, tmp_path: Path) -> Lake:
    return Lake(spark, load_project(shared_project).target, tmp_path / "landing", next_schema())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_load_and_a_create_table_as_select_get_the_same_rows(
    kind: Kind, spark: SparkSession, tmp_path: Path
) -> None:
    def in_this_process(arguments: Sequence[str]) -> None:
        _, module, *rest = arguments
        if module == "polynya":
            printed = InProcessDriver(spark).call(*rest)
            assert printed.code == 0, printed
            return
        try:
            with commands_over(lambda project: fresh_session(spark, project)):
                ctas.main(*rest)
        finally:
            use_everywhere(spark)

    loads.measure(tmp_path, kind, TINY, in_this_process)


@pytest.mark.slow
def test_reads_without_spark_have_the_rows_of_their_peers(
    spark: SparkSession, tmp_path: Path
) -> None:
    def in_this_process(arguments: Sequence[str]) -> None:
        printed = InProcessDriver(spark).call(*arguments[2:])
        assert printed.code == 0, printed

    lines = list(reads.measure(tmp_path / "reads", TINY.read_rows, 2, in_this_process))

    assert [round(1 / (line.at_least or 0), 2) for line in lines] == [1.3, 1.3, 1.6, 1.6]
    assert all(len(line.ours) == len(line.peer) == 2 for line in lines)


FLOORS = [case for case in merges.cases(TINY) if case.at_least is not None]


@pytest.mark.parametrize("case", FLOORS, ids=lambda case: case.name)
def test_changes_and_a_merge_leave_the_same_rows(case: merges.Case, lake: Lake) -> None:
    merges.measure(lake, case, TINY)


@pytest.mark.slow
def test_a_reload_and_its_peer_take_in_each_extract(lake: Lake) -> None:
    line = reloads.measure(lake, TINY)

    assert (len(line.ours), len(line.peer), line.at_least) == (TINY.rounds, TINY.rounds, 0.5)


@pytest.mark.slow
def test_a_view_has_the_rows_of_current_before_and_after_an_apply(lake: Lake) -> None:
    lines = list(views.measure(lake, TINY))

    assert [line.at_least for line in lines] == [0.85, 0.65, 0.65]
    assert "the view takes scans: 1," in lines[0].settings


@pytest.mark.slow
def test_a_small_dataset_is_copied_while_another_one_is_loaded(lake: Lake) -> None:
    waiting.measure(lake, TINY)


@pytest.mark.slow
def test_a_round_is_told_as_a_multiple_of_the_limit(lake: Lake) -> None:
    found = limits.measure(lake, rows=1_000, count=50, rounds=1, warm_up=0)

    (line,) = limits.floors(lake, TINY)
    assert (line.at_least, len(line.ours), len(line.peer)) == (1 / 5, 2, 2)
    assert len(found.polynya) == len(found.duckdb) == len(found.spark) == len(found.write) == 1
    known = limits.Rounds(1_000, 50, [3.0, 1.0, 9.0], [0.5], [0.25], [0.75])
    assert known.row() == "| 50 | 1,000 | 3.00 s | 0.50 s | 0.25 s | 0.75 s | 3.0 |"


def test_a_small_step_is_told_in_kilobytes_and_requests(tmp_path: Path) -> None:
    requests = {"PUT manifest": 3.0, "GET others": 1.5, "Glue GetTable": 4.0}

    kept, asked = small.measure(tmp_path, lambda _: {"stays": 58_000, "requests": requests})

    assert kept.row().startswith("| bytes that a small step leaves | 58.00 kB | 60.00 kB |")
    assert kept.row().endswith("| 1.03 | ≥ 1.00 | reached |")
    assert "| 4.50 requests | 32.90 requests |" in asked.row()


def test_a_peer_that_cannot_be_run_has_no_line(tmp_path: Path) -> None:
    def nobody(contender: Contender, folder: Path, memory: str) -> Process:
        raise UnavailableError(f"no {contender.jars} for {memory}")

    lines = [
        line for case in beside.cases(TINY) for line in beside.measure(tmp_path, case, TINY, nobody)
    ]

    assert lines == []


def test_what_takes_long_runs_when_it_is_named() -> None:
    assert not {*NAMED} & {*PARTS}
    assert {"cold", "reads", "bytes", "reload", "views"} <= {*PARTS}


def test_the_table_says_which_floors_are_reached() -> None:
    fast = Measured("fast", [1.0, 1.5, 9.0], [3.0], "a peer", 2.0, "three rounds")
    slow = Measured("slow", [4.0], [3.0], "a peer", 1.0, "one round")
    known = Measured("known", [4.0], [3.0], "a peer", None, "one round")

    rows = table([fast, slow, known]).splitlines()[2:]

    assert rows[0] == "| fast | 1.50 s (1.00 to 9.00) | 3.00 s | a peer | 2.00 | ≥ 2.00 | reached |"
    assert rows[1].endswith("| 0.75 | ≥ 1.00 | **not reached** |")
    assert rows[2].endswith("| 0.75 |  |  |")
    assert rows[-1] == "- known: one round"
