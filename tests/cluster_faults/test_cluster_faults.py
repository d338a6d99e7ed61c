"""Real agents under real faults; and the check itself, which has to see what a fence prevents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster_faults.__main__ import suffered
from tests.cluster_faults.versions import AGAIN
from tests.cluster_faults.world import Arm
from tests.lab.chosen import slow

#: Agents start in half a minute on a busy machine: times of the protocol are a fifth.
LEASE = 6.0


@pytest.mark.spark
@pytest.mark.parametrize("count", [slow(8), slow(30)])
def test_faults_lose_no_row_and_double_none(tmp_path: Path, count: int) -> None:
    said: list[str] = []

    faults = {"alone": 0, "overlapping": count}
    found = suffered(
        tmp_path / "faults", Arm(LEASE), faults, seed=7, say=said.append, pause=(0.2, 1.5)
    )

    # Whether a node of this version writes a record of the later one again is chance in so few.
    vacuous = [why for why in found.vacuous if AGAIN not in why]
    assert (found.wrong, found.problems, vacuous) == (0, (), []), "\n".join(said)
    # No vacuous pass: answers were lost, rows were copied meanwhile. How many units must have moved
    # is the judge's to say: it is among the vacuous.
    assert found.counts["faults"] == count
    assert found.counts["requests: applied, answer lost"] > 0
    assert found.counts["batches"] > count
    assert found.counts["rows"] > 16 * count


@pytest.mark.spark
@pytest.mark.slow
def test_a_fault_of_each_kind_that_strikes_alone_is_overcome_in_time(tmp_path: Path) -> None:
    said: list[str] = []

    faults = {"alone": 4, "overlapping": 0}
    found = suffered(tmp_path / "faults", Arm(LEASE), faults, seed=7, say=said.append)

    assert (found.wrong, found.problems, found.vacuous) == (0, (), ()), "\n".join(said)
    assert found.late == (), "\n".join(said)


@pytest.mark.spark
@pytest.mark.slow
def test_without_the_fence_tables_are_damaged(tmp_path: Path) -> None:
    """A row is there twice, or the state of a table: then the engine refuses it."""
    said: list[str] = []

    faults = {"alone": 0, "overlapping": 40}
    found = suffered(
        tmp_path / "faults", Arm(LEASE, fenced=False), faults, seed=7, say=said.append, every=0.5
    )

    twice = sum(one.surplus for one in found.verdicts if one.name.startswith("lines"))
    refused = any("POLYNYA-LAKE-006" in problem for problem in found.problems)
    assert twice or refused, "\n".join(said)
