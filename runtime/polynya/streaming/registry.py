"""The source of a task, by the key that its file writes."""

from __future__ import annotations

from polynya.lake.spark.api import SparkSession
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.streaming.kafka.source import Kafka
from polynya.streaming.source import Source


def source_of(spark: SparkSession, task: StreamingLanding) -> Source:
    """What a landing reads."""
    assert task.source.kafka is not None, "a landing has exactly one source"
    return Kafka(spark, task, task.source.kafka)
