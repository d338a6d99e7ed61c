"""The same by Spark alone: read the topic, parse, append."""

from __future__ import annotations

from bench.streams.records import DDL
from polynya.lake.spark.api import SparkSession


def create(spark: SparkSession, table: str) -> None:
    """An empty table for it."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    where = "_topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP"
    spark.sql(f"CREATE TABLE {table} ({DDL}, {where}) USING iceberg")


def append(spark: SparkSession, address: str, topic: str, table: str) -> None:
    """Append all that the topic holds, in one job, with a task for each partition."""
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
    }
    messages = spark.read.format("kafka").options(**options).load()
    parsed = messages.selectExpr(
        f"from_json(CAST(value AS STRING), '{DDL}') AS data",
        "topic AS _topic",
        "partition AS _partition",
        "offset AS _offset",
        "timestamp AS _timestamp",
    )
    parsed.selectExpr("data.*", "_topic", "_partition", "_offset", "_timestamp").writeTo(
        table
    ).append()
