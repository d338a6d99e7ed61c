"""Start the one Spark driver of a process, with the settings that small machines and small batches need.

Knows Spark and the catalog settings; knows nothing of tables or tasks. Sources of the numbers: docs/adr/0005-spark-session.md.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from polynya.lake.naming import CATALOG

if TYPE_CHECKING:
    from polynya.lake.java import JavaHome

SMALL_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a Spark session of Polynya is started with.

    `catalog` holds catalog properties without their prefix, `{}` for JDBC on SQLite inside the warehouse.
    `memory` is the heap of the driver in Spark's spelling. `small` trades peak speed for a start in seconds.
    """

    warehouse: str
    jars: Sequence[str]
    catalog: Mapping[str, str] = field(default_factory=dict)
    memory: str = "2g"
    small: bool = True
    jvm_options: Sequence[str] = ()
    cores: int = field(default_factory=lambda: os.cpu_count() or 2)


def start_session(settings: SessionSettings, java: JavaHome | None = None) -> SparkSession:
    """Return the running session of this process, started if there is none."""
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # The hostname of a laptop often resolves to an address of its network: nothing may listen there.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{settings.cores}]").appName("polynya")
    for key, value in spark_conf(settings).items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    # PySpark prints every failed statement to standard error, also those whose failure is an answer.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return spark


def spark_conf(settings: SessionSettings) -> dict[str, str]:
    """All Spark settings of a session, as text."""
    cores = str(settings.cores)
    options = ["-Duser.timezone=UTC", "-Dderby.system.durability=test", "-Xlog:disable"]
    options += [*settings.jvm_options, *(SMALL_JVM if settings.small else ())]
    conf = {
        "spark.jars": ",".join(settings.jars),
        "spark.driver.memory": settings.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.default.parallelism": cores,
        "spark.locality.wait": "0",
        "spark.broadcast.compress": "false",
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.autoBroadcastJoinThreshold": "256m",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "512m",
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.sql.codegen.maxFields": "300",
        "spark.sql.session.timeZone": "UTC",
        # A cast that fails gives NULL, which the copy step sends to quarantine; an error would stop the batch.
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": CATALOG,
        "spark.sql.iceberg.data-planning-mode": "local",
        "spark.sql.iceberg.delete-planning-mode": "local",
        # The session catalog would start a Derby metastore with files in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
    }
    prefix = f"spark.sql.catalog.{CATALOG}"
    conf[prefix] = "org.apache.iceberg.spark.SparkCatalog"
    for key, value in catalog_properties(settings.warehouse, settings.catalog).items():
        conf[f"{prefix}.{key}"] = value
    return conf


def catalog_properties(warehouse: str, catalog: Mapping[str, str]) -> dict[str, str]:
    """Catalog properties in Iceberg's names; an empty `catalog` means JDBC on SQLite in the warehouse."""
    if catalog:
        return {"warehouse": warehouse, **catalog}
    path = Path(warehouse).resolve()
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{path}/catalog.db?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": str(path),
    }
