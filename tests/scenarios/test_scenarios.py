"""Random lives of a dataset: its views equal the independent fold at every step, and it is sound.

`make scenarios` takes many; `POLYNYA_TEST_SEED` is the first seed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from polynya.lake import compare
from polynya.lake.session import SparkSession
from tests.lake.lab import Lab, next_schema
from tests.oracle.histories import seeded
from tests.scenarios.life import Life

FIRST = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
COUNT = int(os.environ.get("POLYNYA_TEST_SCENARIOS", "4"))
STEPS = int(os.environ.get("POLYNYA_TEST_STEPS", "6"))


def life(spark: SparkSession, project: Path, folder: Path, seed: int) -> Life:
    """A dataset of its own for each seed."""
    return Life(Lab(spark, project, folder / str(seed), next_schema()), seeded(seed))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_random_life(
    spark: SparkSession, shared_project: Path, tmp_path: Path, seed: int
) -> None:
    found = life(spark, shared_project, tmp_path, seed).live(STEPS)

    assert not found, "\n".join(found)[:6000]


def test_a_reload_that_takes_all_values_for_equal_would_be_seen(
    spark: SparkSession, shared_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first seed reloads, and compares."""
    monkeypatch.setattr(compare, "comparable", lambda expression, datatype: "1")

    assert life(spark, shared_project, tmp_path, 1).live(6)
