"""The session of a project with a landing from Kafka, with Spark's connector, and a broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.floors.tasks import write_project
from bench.peers.environment import LOCK
from bench.peers.tree import processor_seconds
from bench.streams.ours import landing
from examples.servers.kafka import Broker, kafka_broker
from polynya.engine.session import start_spark
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.jars import KAFKA, jar_paths
from polynya.model.loader import LoadedProject, load_project


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark runs."""

    spark: SparkSession
    broker: Broker
    folder: Path
    project: LoadedProject

    def processor_seconds(self) -> float:
        """Processor time so far of Python, the JVM and its workers, without the broker."""
        return processor_seconds(os.getpid()) - processor_seconds(self.broker.pid)


@contextmanager
def place_in(folder: Path) -> Iterator[Place]:
    """A session as `polynya run` starts it, with Spark's connector for the peer, and a broker."""
    any_landing = landing("unused", "127.0.0.1:9092", "unused").model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    project = load_project(write_project(folder / "project", any_landing))
    spark = start_spark(project, long_lived=True)
    for jar in jar_paths(groups=(KAFKA,), lock_file=LOCK):
        spark.sql(f"ADD JAR {jar}")
    (folder / "kafka").mkdir()
    with kafka_broker(folder / "kafka", spark) as broker:
        yield Place(spark, broker, folder, project)
