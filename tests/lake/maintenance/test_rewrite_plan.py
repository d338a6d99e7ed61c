"""Which data files are written again: small ones, dirty ones, and never one for long."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from polynya.lake.iceberg.files import DataFile
from polynya.lake.maintenance.rewrite_plan import (
    RewriteCandidate,
    RewriteGroup,
    RewriteRule,
    plan,
    plan_layout,
)

KB, MB = 2**10, 2**20
RULE = RewriteRule()


def file(
    number: int, size: int, *, rows: int = 1000, dead: int = 0, partition: str = "current",
    **more: Any,
) -> RewriteCandidate:  # fmt: skip
    data = DataFile(None, f"file {number}", partition, rows, size, 0)
    return RewriteCandidate(number, data, dead, **more)


def numbers(groups: Sequence[RewriteGroup]) -> list[set[int]]:
    return [{one.number for one in group.files} for group in groups]


def test_large_clean_files_stay() -> None:
    files = [file(n, size * MB) for n, size in enumerate([77, 100, 128, 200, 230])]

    assert plan(files, RULE) == []
    assert plan(files, RULE.thorough()) == []


def test_small_files_become_one() -> None:
    files = [file(n, 10 * KB) for n in range(8)] + [file(8, 100 * MB)]

    (group,) = plan(files, RULE)

    assert group.kind == "join"
    assert numbers([group]) == [set(range(8))]
    assert (group.outputs, group.fewer_files) == (1, 7)
    assert group.read_bytes == group.written_bytes == 80 * KB
    assert group.reason == "8 files of at most 10,240 bytes"


def test_a_few_small_files_wait() -> None:
    assert plan([file(n, 10 * KB) for n in range(7)], RULE) == []


def test_a_larger_file_waits_for_as_much_again() -> None:
    files = [file(n, 10 * KB) for n in range(8)]

    (without,) = plan([*files, file(8, 40 * KB)], RULE)
    (joined,) = plan([*files, file(8, 25 * KB)], RULE)

    assert numbers([without]) == [set(range(8))]
    assert numbers([joined]) == [set(range(9))]


def test_partitions_specs_and_windows_are_kept_apart() -> None:
    spec = file(1, KB)
    other = replace(spec, file=replace(spec.file, spec=1))
    apart = [file(0, KB), other, file(2, KB, partition="prior"), file(3, KB, window=7)]

    assert plan(apart, RULE.thorough()) == []


def test_a_file_of_which_much_is_deleted_is_written_again() -> None:
    files = [file(0, 100 * MB, dead=200), file(1, 100 * MB, dead=199), file(2, 50 * MB, dead=1000)]

    groups = plan(files, RULE)

    assert [(group.kind, group.files[0].number) for group in groups] == [("fold", 2), ("fold", 0)]
    assert [group.outputs for group in groups] == [0, 1]
    assert groups[1].reason == "200 of 1,000 rows are deleted"
    assert groups[1].dead_rows == 200


def test_a_file_that_is_too_large_is_split() -> None:
    (group,) = plan([file(0, 300 * MB), file(1, 220 * MB)], RULE)

    assert (group.kind, group.outputs, group.files[0].number) == ("split", 2, 0)


def test_neighbours_by_key_become_one_file() -> None:
    files = [file(n, 50 * MB, low=n * 37 % 12) for n in range(12)]

    groups = plan(files, RULE)

    lows = sorted(sorted(one.low for one in group.files) for group in groups)
    assert lows == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [group.outputs for group in groups] == [2, 2, 2]


def test_files_of_an_older_spec_are_written_again_whatever_their_size() -> None:
    files = [file(n, size * MB, outdated=True) for n, size in enumerate([1, 200, 100])]

    groups = plan_layout([*files, file(3, 100 * MB)], RULE)

    assert sorted(number for group in numbers(groups) for number in group) == [0, 1, 2]
    assert all(group.kind == "part" and group.moves for group in groups)
    assert groups[0].reason.endswith("without the table's present partition spec")
    # The other action leaves them, but for small ones that it joins with each other.
    assert plan(files, RULE) == []
    small = [file(n, MB, outdated=n % 2 == 0) for n in range(16)]
    joined = plan(small, RULE)
    assert sorted(map(sorted, numbers(joined))) == [list(range(0, 16, 2)), list(range(1, 16, 2))]
    assert sorted(group.moves for group in joined) == [False, True]


def test_large_files_are_sorted_and_small_ones_wait_until_they_are_joined() -> None:
    files = [file(n, size * MB, unsorted=True) for n, size in enumerate([1, 77, 128])]

    (group,) = plan_layout([*files, file(3, 100 * MB)], RULE)

    assert (group.kind, numbers([group]), group.outputs) == ("sort", [{1, 2}], 2)
    assert not group.moves
    assert plan(files, RULE) == []


def test_one_file_keeps_its_order_where_that_is_the_one_of_the_table() -> None:
    files = [file(0, 100 * MB, dead=900), file(1, 100 * MB, dead=900, unsorted=True)]

    keeps = {group.files[0].number: group.keeps_order for group in plan(files, RULE)}

    assert keeps == {0: True, 1: False}


def test_all_that_was_written_for_its_layout_is_never_written_for_it_again() -> None:
    files = [file(n, (20 + n % 200) * MB, outdated=n % 2 == 0, unsorted=True) for n in range(200)]

    written = [one for group in plan_layout(files, RULE) for one in group.files]

    assert len(written) == len({one.number for one in written})
    left = [one for one in files if one not in written]
    assert plan_layout(left, RULE) == []
    assert all(group.read_bytes <= 2 * RULE.group_bytes for group in plan_layout(files, RULE))


def test_what_gains_most_for_its_cost_comes_first() -> None:
    tiny = [file(n, KB) for n in range(10)]
    large = [file(10 + n, 8 * MB, partition="prior") for n in range(10)]

    assert [group.partition for group in plan([*large, *tiny], RULE)] == ["current", "prior"]


def live(sizes: Sequence[int], rule: RewriteRule) -> tuple[int, float]:
    """Files that come one by one: the most that there were, and how often a row was written again.

    The latter as a multiple of what the rule allows.
    """
    files: list[RewriteCandidate] = []
    depth: dict[int, list[tuple[int, int]]] = {}
    most, worst, fresh = 0, 0.0, len(sizes)
    for number, size in enumerate(sizes):
        files.append(file(number, size))
        depth[number] = [(size, 0)]
        while groups := plan(files, rule):
            group = groups[0]
            joined = [one for each in group.files for one in depth.pop(each.number)]
            kept = [one for one in files if one not in group.files]
            for _ in range(group.outputs):
                kept.append(file(fresh, group.written_bytes // group.outputs))
                depth[fresh] = [(first, times + 1) for first, times in joined]
                fresh += 1
            files = kept
        most = max(most, sum(one.file.size_bytes < rule.large * rule.target_bytes for one in files))
    for first, times in (one for each in depth.values() for one in each):
        allowed = 1 + math.log(max(1.0, rule.large * rule.target_bytes / first), RULE.growth)
        worst = max(worst, times / allowed)
    return most, worst


ARRIVALS = {
    "equal": [40 * KB] * 3000,
    "mixed": [random.Random(1).randrange(4 * KB, 900 * KB) for _ in range(1500)],
    "falling": [max(4 * KB, 20 * MB // (n + 1)) for n in range(1000)],
    "rising": [(n + 1) * 2 * KB for n in range(1000)],
    "one large in ten": [4 * MB if n % 10 == 0 else 8 * KB for n in range(1000)],
}


@pytest.mark.parametrize("name", ARRIVALS)
def test_a_row_is_written_a_few_times_and_files_stay_few(name: str) -> None:
    most, worst = live(ARRIVALS[name], RULE)

    assert worst <= 1.0
    assert most <= 45


def test_a_rule_that_writes_all_rows_again_would_be_seen() -> None:
    _, worst = live([40 * KB] * 100, replace(RULE, growth=1.0, least_files=2))

    assert worst > 5
