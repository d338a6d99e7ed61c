"""Gossip through a server that stands in for Kinesis: shards change, and the stream goes away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.store.aws.kinesis import KinesisStream
from polynya.store.clock import Retry
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, client
from tests.cluster.gossip.given import Node, let_pass, names, unit
from tests.kinesis import kinesis_server

pytestmark = pytest.mark.slow
STREAM = "workload"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with kinesis_server() as address:
        yield address


@pytest.fixture
def kinesis(endpoint: str) -> Iterator[Any]:
    asked = client("kinesis", endpoint)
    asked.create_stream(StreamName=STREAM, ShardCount=1)
    _await_active(asked)
    yield asked
    asked.delete_stream(StreamName=STREAM)
    _await(lambda: STREAM not in asked.list_streams()["StreamNames"])


@pytest.fixture
def stream(endpoint: str, kinesis: Any) -> KinesisStream:
    access = AwsAccess(region=REGION, endpoint=endpoint)
    return KinesisStream(STREAM, access, retry=Retry(deadline=2.0))


def _await(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _await_active(asked: Any) -> None:
    _await(lambda: _summary(asked)["StreamStatus"] == "ACTIVE")


def _summary(asked: Any) -> Any:
    return asked.describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"]


def _reshard(asked: Any, shards: int) -> None:
    asked.update_shard_count(
        StreamName=STREAM, TargetShardCount=shards, ScalingType="UNIFORM_SCALING"
    )
    _await_active(asked)
    assert _summary(asked)["OpenShardCount"] == shards


def test_nodes_hear_each_other_while_shards_split_and_merge(
    stream: KinesisStream, kinesis: Any
) -> None:
    clock = FakeClock()
    nodes = [Node(f"n{number}", stream, clock) for number in range(4)]
    for number, shards in enumerate((1, 2, 4, 2)):
        if number:
            _reshard(kinesis, shards)
        # What is told before the new shards are known is lost; the next heartbeat is not.
        let_pass(25, clock, *nodes)
        for node in nodes:
            node.works(unit(f"t{number}"))
        let_pass(25, clock, *nodes)

        for node in nodes:
            heard = node.hears()
            assert len(heard) == 3
            assert {name for one in heard.values() for name in names(one.heartbeat.units)} == {
                f"t{number}"
            }
            assert max(one.age_seconds for one in heard.values()) < 20
            assert node.gossip.trouble is None

    before = [node.woken for node in nodes]
    nodes[0].gossip.hint("released")
    let_pass(4, clock, *nodes)
    woken = [node.woken - was for node, was in zip(nodes, before, strict=True)]
    assert woken == [0, 1, 1, 1]


def test_a_stream_that_is_deleted_and_made_again_is_used_again(
    stream: KinesisStream, kinesis: Any
) -> None:
    clock = FakeClock()
    one, two = Node("n0", stream, clock), Node("n1", stream, clock)
    let_pass(30, clock, one, two)
    assert two.hears()["n0"].age_seconds < 15

    kinesis.delete_stream(StreamName=STREAM)
    _await(lambda: STREAM not in kinesis.list_streams()["StreamNames"])
    let_pass(700, clock, one, two)
    assert str(two.gossip.trouble).startswith("POLYNYA-AGT-042: ")
    assert two.hears() == {}

    kinesis.create_stream(StreamName=STREAM, ShardCount=2)
    _await_active(kinesis)
    let_pass(200, clock, one, two)
    assert two.gossip.trouble is None
    assert two.hears()["n0"].age_seconds < 15


def test_an_iterator_that_is_none_fails_as_an_error_of_the_port(stream: KinesisStream) -> None:
    with pytest.raises(DependencyError):
        stream.read("not an iterator")


def test_records_of_anybody_are_passed_over(stream: KinesisStream) -> None:
    clock = FakeClock()
    one, two = Node("n0", stream, clock), Node("n1", stream, clock)
    let_pass(15, clock, one, two)

    for junk in (b"\x00\xff", b"{}", b"[" * 5000, b"x" * 500_000):
        stream.put("anybody", junk)
    let_pass(15, clock, one, two)

    assert sum(two.gossip.picture().skipped.values()) == 4
    assert two.hears()["n0"].age_seconds < 15
