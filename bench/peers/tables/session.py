"""The Spark session of a peer: the general settings are those of Polynya's own session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

#: As `polynya.lake.spark.session` has them: room for compiled code, and large methods compiled.
_JVM = "-Duser.timezone=UTC -XX:ReservedCodeCacheSize=256m -XX:-DontCompileHugeMethods"
CORES = os.cpu_count() or 2


def start(
    folder: Path, jars: list[str], memory: str, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a session with the jars and settings of a format."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = {
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": _JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": str(CORES),
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.autoBroadcastJoinThreshold": "256m",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "512m",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(settings or {}),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("peer")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def count(spark: SparkSession, query: str) -> int:
    """The one number that a query returns."""
    return int(spark.sql(query).collect()[0][0])
