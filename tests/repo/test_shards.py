"""Shards of the long tests: each file is in one of them, and they take equally long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shards import files_of_shard, measured

SECONDS = {"a.py": 100.0, "b.py": 60.0, "c.py": 50.0, "d.py": 40.0, "e.py": 30.0}


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_each_file_is_in_exactly_one_shard(count: int) -> None:
    shards = [files_of_shard(SECONDS, f"{k}/{count}", SECONDS) for k in range(1, count + 1)]

    assert sorted(file for shard in shards for file in shard) == sorted(SECONDS)


def test_shards_take_equally_long_by_the_measured_seconds() -> None:
    shards = [files_of_shard(SECONDS, f"{k}/2", SECONDS) for k in (1, 2)]

    assert [sum(SECONDS[file] for file in shard) for shard in shards] == [140.0, 140.0]


def test_a_file_that_was_never_measured_is_in_a_shard() -> None:
    shards = [files_of_shard([*SECONDS, "new.py"], f"{k}/2", SECONDS) for k in (1, 2)]

    assert sum("new.py" in shard for shard in shards) == 1


def test_every_measured_file_exists() -> None:
    assert [file for file in measured() if not Path(file).exists()] == []


@pytest.mark.parametrize("shard", ["", "3", "0/8", "9/8", "a/b", "-1/8", "1/0", "1/8/2"])
def test_what_names_no_shard_is_refused(shard: str) -> None:
    with pytest.raises(ValueError, match="as in 3/8"):
        files_of_shard(SECONDS, shard, SECONDS)
