"""What a warm step of a few records costs, in counts. Seconds say little on a busy machine."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from bench.step import counted_calls, engine_counts
from polynya.engine.runner import units
from polynya.engine.unit import TimeSlice, Unit
from polynya.lake.spark.api import SparkSession
from polynya.observe import trace
from polynya.store.data_files import LocalFiles
from tests.lab.lab import Lab, put

#: What the table's metadata has of one snapshot.
ENTRY_BYTES = 2000


def brought_up(unit: Unit) -> int:
    """Let a unit work until nothing is left; the number of its steps."""
    for steps in range(1, 10):
        ended = unit.step(TimeSlice())
        assert ended.error is None
        if not ended.more:
            return steps
    raise AssertionError("it does not end")


@pytest.mark.parametrize("history", [True, False])
def test_a_warm_step_takes_few_calls_and_no_job(
    lab: Lab, spark: SparkSession, *, history: bool
) -> None:
    users = lab.feed(history=history)
    (unit,) = units(lab.context("always"), [users.task])
    for sequence in (1, 2):
        users.land(*(put(key, sequence, name="x") for key in range(5)))
        brought_up(unit)
    before = engine_counts(spark)

    users.land(put(1, 3, name="y"), put(9, 3, name="z"))
    with counted_calls() as calls:
        steps = brought_up(unit)

    assert steps == 2
    assert engine_counts(spark) == before
    assert calls.count <= 110
    assert calls.all <= 200
    assert users.current("id", "name") == [
        (0, "x"),
        (1, "y"),
        (2, "x"),
        (3, "x"),
        (4, "x"),
        (9, "z"),
    ]


def test_a_step_costs_as_much_after_many_steps_as_after_few(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In files that it opens and writes. A snapshot that stays costs later commits its entry."""
    opened: list[str] = []
    real = LocalFiles.open

    def recorded(files: LocalFiles, location: str) -> AbstractContextManager[Any]:
        # A look of a server that an earlier test has left may open files of other tables.
        if lab.schema in location:
            opened.append(location)
        return real(files, location)

    monkeypatch.setattr(LocalFiles, "open", recorded)
    users = lab.feed()
    (unit,) = units(lab.context("always"), [users.task])
    counts = []
    trace.begin(str(tmp_path / "trace.json"))
    for sequence in range(1, 7):
        opened.clear()
        users.land(*(put(key, sequence, name="x") for key in (1, 10 * sequence)))
        brought_up(unit)
        counts.append(len(opened))
    trace.end()

    assert counts[-1] <= counts[2]
    events = json.loads((tmp_path / "trace.json").read_text())
    steps = [one["args"] for one in events if one["name"] == "copy"]
    assert len(steps) == 6
    assert not [one for one in events if one["name"] == "apply"], "one commit does both"
    # The first ones take the table over and give it columns.
    warm = steps[2:]
    # Rows of Current and of Prior, the deletes of either, and both states.
    assert max(one["files_written"] for one in warm) <= 6
    # Manifests, their list, the metadata of the table.
    assert max(one["metadata_files"] for one in warm) <= 7
    sizes = [one["metadata_bytes"] for one in warm]
    assert max(sizes) <= 56 * 1024
    assert sizes[-1] - sizes[0] <= 3 * ENTRY_BYTES, sizes


def written(folder: Path, before: set[Path]) -> dict[str, int]:
    """Sizes of the files of a table that are new."""
    files = {file for file in folder.rglob("*") if file.is_file() and file.suffix != ".crc"}
    return {file.name: file.stat().st_size for file in files - before}


def test_a_small_step_writes_few_bytes(lab: Lab) -> None:
    """A hundred events on two thousand rows: what comes with them must not grow unseen."""
    users = lab.feed(history=False)
    (unit,) = units(lab.context("always"), [users.task])
    values: dict[str, Any] = {"name": "x" * 16, "city": "Rome", "amount": 1.5, "quantity": 3}
    users.land(*(put(key, 1, **values) for key in range(2000)))
    brought_up(unit)
    folder = Path(str(users.table().table.java.location()).removeprefix("file:"))
    sizes = []
    for sequence in range(2, 6):
        before = {file for file in folder.rglob("*") if file.is_file()}
        # So few rows of the first file that it is not written again.
        keys = range(sequence, 2000, 20)
        users.land(*(put(key, sequence, **values) for key in keys))
        brought_up(unit)
        sizes.append(written(folder, before))

    # Rows of Current, the deletes, both states; manifests, their list, the metadata of the table.
    assert max(map(len, sizes)) <= 9, sizes
    assert max(sum(step.values()) for step in sizes) <= 50_000, sizes


def test_views_are_looked_for_again_once_somebody_else_has_committed(
    lab: Lab, spark: SparkSession
) -> None:
    users = lab.feed()
    (unit,) = units(lab.context("never"), [users.task])
    users.land(put(1, 1, name="Ann"))
    brought_up(unit)

    spark.sql(f"DROP VIEW {users.view}")
    spark.sql(
        f"INSERT INTO {users.internal} (hdr__partition, hdr__change_identifier) "
        "VALUES ('reload', 'foreign')"
    )
    users.land(put(2, 2, name="Ben"))
    brought_up(unit)

    assert users.current("id") == [(1,), (2,)]
