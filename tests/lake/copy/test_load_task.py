"""How the splits of a load become tasks."""

from __future__ import annotations

import pytest

from polynya.formats.loads import Split
from polynya.lake.copy.load import tasks_of

MEBIBYTE = 2**20


@pytest.mark.parametrize(
    ("sizes", "cores", "expected"),
    [
        ([1, 1, 1], 2, [1, 1, 1]),
        ([5] * 4, 2, [10, 10]),
        ([11] * 8, 2, [22] * 4),
        ([32] * 16, 2, [64] * 8),
        ([32] * 32, 2, [64] * 16),
        ([32] * 32, 16, [32] * 32),
        ([300, 10, 10], 2, [300, 20]),
        ([30], 4, [30]),
    ],
)
def test_tasks_are_short_and_as_many_for_each_core(
    sizes: list[int], cores: int, expected: list[int]
) -> None:
    splits = [
        Split(number, "f", 0, 0, before=0, size=size * MEBIBYTE)
        for number, size in enumerate(sizes)
    ]

    tasks = tasks_of(splits, cores)

    assert [split for task in tasks for split in task] == splits
    assert [sum(split.size for split in task) // MEBIBYTE for task in tasks] == expected
