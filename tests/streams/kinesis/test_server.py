"""The same on a server that stands in for Kinesis: shards split and merge while they are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.kinesis import KinesisShards
from polynya.store.clock import SystemClock
from tests.aws import REGION
from tests.kinesis import kinesis_server
from tests.streams.kinesis.given import Landing
from tests.streams.kinesis.packed import packed
from tests.streams.test_kinesis import begin as began_by
from tests.streams.test_kinesis import read


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with kinesis_server() as address:
        yield address


@pytest.fixture
def kinesis(endpoint: str) -> Any:
    return boto3.client("kinesis", endpoint_url=endpoint, region_name=REGION)


def landing_of(endpoint: str, start: str = "earliest") -> Landing:
    shards = KinesisShards(AwsAccess(region=REGION, endpoint=endpoint))
    return Landing(start, clock=SystemClock(), shards=shards)


@pytest.fixture
def stream(kinesis: Any) -> Iterator[str]:
    kinesis.create_stream(StreamName="clicks", ShardCount=2)
    wait(lambda: summary(kinesis)["StreamStatus"] == "ACTIVE")
    yield "clicks"
    kinesis.delete_stream(StreamName="clicks")
    wait(lambda: "clicks" not in kinesis.list_streams()["StreamNames"])


def summary(kinesis: Any) -> dict[str, Any]:
    found: dict[str, Any] = kinesis.describe_stream_summary(StreamName="clicks")
    return found["StreamDescriptionSummary"]


def wait(until: Callable[[], bool]) -> None:
    for _ in range(200):
        if until():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def put(kinesis: Any, first: int, count: int) -> None:
    records = [
        {"Data": str(number).encode(), "PartitionKey": f"key {number % 17}"}
        for number in range(first, first + count)
    ]
    for begin in range(0, count, 200):
        answer = kinesis.put_records(StreamName="clicks", Records=records[begin : begin + 200])
        assert not answer["FailedRecordCount"]


def open_shards(kinesis: Any) -> list[dict[str, Any]]:
    shards = kinesis.list_shards(StreamName="clicks")["Shards"]
    return [one for one in shards if "EndingSequenceNumber" not in one["SequenceNumberRange"]]


def split(kinesis: Any) -> None:
    shard = open_shards(kinesis)[0]
    keys = shard["HashKeyRange"]
    middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
    kinesis.split_shard(
        StreamName="clicks", ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle)
    )
    wait(lambda: summary(kinesis)["StreamStatus"] == "ACTIVE")


def merge(kinesis: Any) -> None:
    shards = sorted(
        open_shards(kinesis), key=lambda one: int(one["HashKeyRange"]["StartingHashKey"])
    )
    kinesis.merge_shards(
        StreamName="clicks",
        ShardToMerge=shards[0]["ShardId"],
        AdjacentShardToMerge=shards[1]["ShardId"],
    )
    wait(lambda: summary(kinesis)["StreamStatus"] == "ACTIVE")


def test_all_records_land_once_and_in_order_while_shards_split_and_merge(
    endpoint: str, kinesis: Any, stream: str
) -> None:
    landing = landing_of(endpoint)
    put(kinesis, 0, 600)
    landing.step(records=150)
    split(kinesis)
    put(kinesis, 600, 400)
    landing.again()
    landing.step(records=150, put=False)
    merge(kinesis)
    put(kinesis, 1000, 400)
    split(kinesis)
    put(kinesis, 1400, 100)
    landing.again()

    landing.land(records=300)

    numbers = [int(row["value"]) for row in landing.rows]
    assert sorted(numbers) == list(range(1500))
    for key in range(17):
        mine = [number for number in numbers if number % 17 == key]
        assert mine == sorted(mine), f"records of key {key} in their order"
    assert landing.lost == []
    ended = landing.position["streams"]["clicks"]["shards"] if landing.position else {}
    assert sum(one.get("ended", False) for one in ended.values()) == 4
    print(f"{len(ended)} shards, {landing.batches} batches")


def test_what_had_landed_is_read_again_and_nothing_that_came_later(
    endpoint: str, kinesis: Any, stream: str
) -> None:
    landing = landing_of(endpoint)
    began = began_by(landing)
    put(kinesis, 0, 200)
    landing.step(records=150)
    split(kinesis)
    put(kinesis, 200, 100)
    landing.step(records=60)
    landed = [row["value"].decode() for row in landing.rows]
    put(kinesis, 300, 50)
    split(kinesis)

    values, lost = read(landing.source.again("events", began, landing.position or {}))

    assert sorted(values) == sorted(landed)
    assert 100 < len(landed) < 300
    assert lost == []


def test_it_begins_with_what_is_new(endpoint: str, kinesis: Any, stream: str) -> None:
    put(kinesis, 0, 10)
    time.sleep(1.1)
    landing = landing_of(endpoint, "now")
    assert landing.land() == []
    put(kinesis, 10, 10)
    landing.again()

    assert sorted(landing.land(), key=int) == [str(number) for number in range(10, 20)]


def test_packed_records_land_from_the_shards_of_their_keys_only(
    endpoint: str, kinesis: Any, stream: str
) -> None:
    keys = [f"key {number}" for number in range(17)]
    both = packed(*((key, key.encode()) for key in keys))
    # As by a producer that knows nothing of the second shard, and then does: what it has packed
    # for the wrong one it sends again.
    for shard in open_shards(kinesis):
        begin = shard["HashKeyRange"]["StartingHashKey"]
        kinesis.put_record(
            StreamName="clicks", Data=both, PartitionKey="packed", ExplicitHashKey=begin
        )
    landing = landing_of(endpoint)

    assert sorted(landing.land()) == sorted(keys)
    assert {row["hdr__kinesis_shard"] for row in landing.rows} == {
        shard["ShardId"] for shard in open_shards(kinesis)
    }
