"""How often a node asks and tells: all together stay below what a shard gives."""

from __future__ import annotations

import pytest

from polynya.cluster.gossip.reader import (
    BEAT_SECONDS,
    LONGEST_PAUSE_SECONDS,
    READ_SECONDS,
    beat_wait,
    read_wait,
)


@pytest.mark.parametrize("nodes", [1, 2, 5, 10, 100, 500, 1000])
@pytest.mark.parametrize("draw", [0.0, 0.999])
def test_all_nodes_together_stay_below_five_reads_a_second(nodes: int, draw: float) -> None:
    seconds = read_wait(nodes, 0, draw).seconds

    assert nodes / seconds < 5
    # An iterator of Kinesis is dead after five minutes.
    assert READ_SECONDS <= seconds < 290


def test_up_to_five_hundred_nodes_use_half_of_what_a_shard_answers() -> None:
    assert all(nodes / read_wait(nodes, 0, 0.0).seconds <= 2.5 for nodes in range(1, 551))
    assert read_wait(10, 0, 0.0).seconds == 4.0
    assert read_wait(10, 0, 0.0).reason == "10 nodes share 2.5 reads a second"


def test_a_refusal_makes_it_wait_longer_and_longer_up_to_a_minute() -> None:
    waits = [read_wait(10, refusals, 0.0).seconds for refusals in range(8)]

    assert waits == [4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    assert read_wait(10, 3, 0.0).reason == "refused 3 times"
    assert read_wait(10, 10**6, 0.0).seconds == LONGEST_PAUSE_SECONDS


def test_a_refusal_never_makes_it_faster() -> None:
    for nodes in (1, 100, 300, 1000):
        assert read_wait(nodes, 1, 0.0).seconds >= read_wait(nodes, 0, 0.0).seconds


@pytest.mark.parametrize(
    ("nodes", "shards", "seconds"), [(1, 1, 10), (70, 1, 10), (100, 1, 20), (100, 2, 10)]
)
def test_heartbeats_are_fewer_where_many_nodes_read_them(
    nodes: int, shards: int, seconds: float
) -> None:
    wait = beat_wait(nodes, shards, 2000, 0, 0.0).seconds

    assert wait == pytest.approx(seconds)
    assert nodes * nodes * 2000 / wait <= 1_000_000 * shards
    assert wait >= BEAT_SECONDS


def test_heartbeats_wait_after_failures_too() -> None:
    assert [beat_wait(3, 1, 500, times, 0.0).seconds for times in range(4)] == [10, 20, 40, 60]
