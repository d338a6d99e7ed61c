"""Who writes a group of files again: the driver, executors, or the cores of this machine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from polynya.lake.iceberg.files import DataFile
from polynya.lake.maintenance.rewrite_plan import (
    LARGE_BYTES,
    MAX_CLUSTER_TASKS,
    MAX_LOCAL_TASKS,
    GroupBatch,
    RewriteCandidate,
    RewriteGroup,
    TaskCapacity,
    batches,
)

HERE, CLUSTER = TaskCapacity(8, on_cluster=False), TaskCapacity(64, on_cluster=True)


def group(number: int, size: int) -> RewriteGroup:
    file = DataFile(None, f"file {number}", "current", 1000, size)
    return RewriteGroup("fold", (RewriteCandidate(number, file),), 1, "a test")


def groups(*sizes: int) -> list[RewriteGroup]:
    return [group(number, size) for number, size in enumerate(sizes)]


def numbers(found: Sequence[GroupBatch]) -> list[tuple[list[int], str]]:
    return [
        ([one.files[0].number for one in batch.groups], "tasks" if batch.by_tasks else "driver")
        for batch in found
    ]


SMALL, LARGE = LARGE_BYTES - 1, LARGE_BYTES


@pytest.mark.parametrize("engine", [HERE, CLUSTER])
def test_small_groups_are_written_by_the_driver_one_by_one(engine: TaskCapacity) -> None:
    found = batches(groups(SMALL, 10, SMALL), engine)

    assert numbers(found) == [([0], "driver"), ([1], "driver"), ([2], "driver")]
    assert found[1].reason == "10 bytes are written before a task would begin"


def test_executors_write_large_ones_also_a_single_one() -> None:
    (found,) = batches(groups(LARGE), CLUSTER)

    assert numbers([found]) == [([0], "tasks")]
    assert found.reason == f"{LARGE:,} bytes are written by 1 task of the cluster"


def test_cores_of_this_machine_are_worth_it_for_two_or_more() -> None:
    assert numbers(batches(groups(LARGE), HERE)) == [([0], "driver")]
    assert numbers(batches(groups(LARGE, LARGE), HERE)) == [([0, 1], "tasks")]
    one_core = TaskCapacity(1, on_cluster=False)
    assert numbers(batches(groups(LARGE, LARGE), one_core)) == [([0], "driver"), ([1], "driver")]


def test_what_gains_most_still_comes_first() -> None:
    found = batches(groups(SMALL, LARGE, 10, LARGE), HERE)

    assert numbers(found) == [([0], "driver"), ([1, 3], "tasks"), ([2], "driver")]


@pytest.mark.parametrize(
    ("engine", "most"), [(HERE, MAX_LOCAL_TASKS), (CLUSTER, MAX_CLUSTER_TASKS)]
)
def test_no_more_at_a_time_than_memory_is_for(engine: TaskCapacity, most: int) -> None:
    found = batches(groups(*[LARGE] * (2 * most + 1)), engine)

    assert [len(one.groups) for one in found] == [most, most, 1]
    assert [one for batch in found for one in batch.groups] == groups(*[LARGE] * (2 * most + 1))
