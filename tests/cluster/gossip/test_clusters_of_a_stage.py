"""Several clusters on one stream: all their nodes together stay below what a shard answers."""

from __future__ import annotations

from itertools import chain

import pytest

from polynya.cluster.gossip.records import Skipped
from polynya.cluster.gossip.stream import FORGET_SECONDS
from polynya.testing.fakes import FakeClock, MemoryRecordStream
from tests.cluster.gossip.given import Node, let_pass, unit

#: Of Kinesis, for all readers of a shard together.
READS_A_SHARD_ANSWERS = 5.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def stage(
    clusters: int, nodes: int, stream: MemoryRecordStream, clock: FakeClock
) -> list[list[Node]]:
    """The nodes of each cluster; names are unique in the stage, as instance ids are."""
    return [
        [Node(f"n{cluster}-{node}", stream, clock, f"c{cluster}") for node in range(nodes)]
        for cluster in range(clusters)
    ]


def reads_a_second(
    seconds: float, stream: MemoryRecordStream, clock: FakeClock, nodes: list[Node]
) -> float:
    """How often each shard is read."""
    before = len(stream.reads)
    let_pass(seconds, clock, *nodes)
    return (len(stream.reads) - before) / seconds / len(stream.shards())


@pytest.mark.parametrize(("clusters", "size", "shards"), [(5, 10, 1), (3, 5, 1), (5, 10, 2)])
def test_all_clusters_together_use_half_of_what_a_shard_answers(
    clock: FakeClock, clusters: int, size: int, shards: int
) -> None:
    stream = MemoryRecordStream(shards)
    nodes = [*chain.from_iterable(stage(clusters, size, stream, clock))]
    let_pass(60, clock, *nodes)

    assert reads_a_second(300, stream, clock, nodes) <= READS_A_SHARD_ANSWERS / 2


def test_a_cluster_that_joins_slows_down_the_ones_that_read_already(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    first, second = stage(2, 10, stream, clock)
    let_pass(60, clock, *first)
    alone = reads_a_second(300, stream, clock, first)

    let_pass(60, clock, *first, *second)
    together = reads_a_second(300, stream, clock, [*first, *second])

    assert alone == pytest.approx(2.2, abs=0.3)
    assert together == pytest.approx(2.2, abs=0.3)


def test_a_node_uses_nothing_else_of_another_cluster(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    (ours,), (theirs,) = stage(2, 1, stream, clock)
    theirs.works(unit("orders"))
    let_pass(30, clock, ours, theirs)
    before = ours.woken

    theirs.gossip.hint("released")
    theirs.gossip.hint("planned", [ours.me.incarnation])
    let_pass(30, clock, ours, theirs)

    picture = ours.gossip.picture()
    assert (picture.nodes, picture.loads(), ours.woken) == ({}, {}, before)
    assert picture.readers == 2
    assert picture.skipped[Skipped.CLUSTER.value] > 2


def test_nodes_of_another_cluster_that_vanish_are_no_longer_counted(clock: FakeClock) -> None:
    stream = MemoryRecordStream()
    ours, theirs = stage(2, 10, stream, clock)
    let_pass(60, clock, *ours, *theirs)
    together = reads_a_second(120, stream, clock, ours)

    let_pass(FORGET_SECONDS + 30, clock, *ours)

    assert together == pytest.approx(1.1, abs=0.3)
    assert reads_a_second(300, stream, clock, ours) == pytest.approx(2.2, abs=0.3)
    assert ours[0].gossip.picture().readers == 10
