"""The parts in which long tests are run have each test once."""

from __future__ import annotations

import pytest

from tests.shards import part_of


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_all_parts_together_have_each_test_once(count: int) -> None:
    tests = list(range(17))

    parts = [part_of(tests, f"{number}/{count}") for number in range(1, count + 1)]

    assert sorted(test for part in parts for test in part) == tests
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("shard", ["", "3", "0/8", "9/8", "a/b", "-1/8", "1/0", "1/8/2"])
def test_what_names_no_part_is_refused(shard: str) -> None:
    with pytest.raises(ValueError, match="as in 3/8"):
        part_of([1, 2], shard)
