"""The real PostgreSQL capture, shuffled: Current and History equal the fold of its events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.packs.captured import capture_folder, events, records
from tests.oracle.packs.datasets import Dataset
from tests.oracle.packs.driver import Driver
from tests.oracle.packs.pack import Landing, Pack, alternating

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COLUMNS = {
    "accounts": (("id",), ("owner", "balance", "note", "updated", "tier")),
    "lines": (("a", "b"), ("qty", "price")),
}


def shuffled_steps() -> list[list[dict[str, Any]]]:
    """Records of the capture in random order, of which a third comes in each step."""
    landed = list(records(capture_folder() / "postgres_workload.jsonl.gz"))
    random.Random(3).shuffle(landed)
    return [landed[i::3] for i in range(3)]


def mismatches(driver: Driver, directory: Path, steps: Sequence[list[dict[str, Any]]]) -> list[str]:
    """What the views of a project show other than the fold of the events."""
    tables = [
        Dataset(
            "w",
            name,
            keys,
            columns,
            [events(step).get(f"w.{name}", []) for step in steps],
            format="debezium",
        )
        for name, (keys, columns) in COLUMNS.items()
    ]
    results = driver.query(directory, [sql for table in tables for sql in table.statements()])
    return [
        text
        for number, table in enumerate(tables)
        for text in table.mismatches(results[2 * number : 2 * number + 2])
    ]


def test_views_equal_the_fold(driver: Driver, tmp_path: Path) -> None:
    """Two thirds arrive in random order before the rest; the captured duplicates stay in."""
    steps = shuffled_steps()
    settings = {"history": True}
    landings = [
        Landing("w", "accounts", steps, settings, format="debezium"),
        Landing("w", "lines", [[], [], []], settings, format="debezium"),
    ]

    Pack(tmp_path, landings).run(driver, alternating)

    found = mismatches(driver, tmp_path, steps)
    assert not found, "\n".join(found)[:8000]
