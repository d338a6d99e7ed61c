"""The servers of the demo, on loopback: a broker of Kafka and a stand-in for Kinesis."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from examples.servers.kafka import Broker, UnavailableError, broker_with
from examples.servers.kafka_clients import kafka_clients
from tests.aws import REGION
from tests.cluster_demo.agents import Failed
from tests.kinesis import PROGRAM, kinesis_server
from tests.streams_demo.project import STREAM

SHARDS = 2


@dataclass(frozen=True)
class Servers:
    """Both, with a topic and a stream of two parts each."""

    broker: Broker
    endpoint: str
    kinesis: Any

    def split_shard(self) -> str:
        """Split one of the shards; its name."""
        shard = self.kinesis.list_shards(StreamName=STREAM)["Shards"][0]
        first, last = (
            int(shard["HashKeyRange"][f"{end}HashKey"]) for end in ("Starting", "Ending")
        )
        self.kinesis.split_shard(
            StreamName=STREAM,
            ShardToSplit=shard["ShardId"],
            NewStartingHashKey=str((first + last) // 2),
        )
        self._await_stream()
        return str(shard["ShardId"])

    def prepare(self) -> None:
        """Make the topic and the stream."""
        self.broker.create(STREAM, partitions=2)
        self.kinesis.create_stream(StreamName=STREAM, ShardCount=SHARDS)
        self._await_stream()

    def _await_stream(self) -> None:
        for _ in range(600):
            found = self.kinesis.describe_stream_summary(StreamName=STREAM)
            if found["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE":
                return
            time.sleep(0.1)
        raise Failed("the stream of Kinesis did not become active")


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Both; they end with the block. Raises Failed where one cannot be had."""
    if not PROGRAM.is_file() or shutil.which("node") is None:
        raise Failed("there is no Kinesis server; fix: install Node.js 22, then `npm ci`")
    place = folder / "kafka"
    place.mkdir()
    try:
        with (
            kafka_clients() as clients,
            broker_with(place, clients) as broker,
            kinesis_server() as endpoint,
        ):
            # A request that is sent again after it was taken would double its records.
            once = Config(retries={"total_max_attempts": 1}, read_timeout=300)
            kinesis = boto3.client(
                "kinesis", endpoint_url=endpoint, region_name=REGION, config=once
            )
            started = Servers(broker, endpoint, kinesis)
            started.prepare()
            yield started
    except (UnavailableError, TimeoutError) as error:
        raise Failed(str(error)) from error
