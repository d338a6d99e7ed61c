"""Delta Lake: `MERGE` with deletion vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.floors.merge_into import merge_into
from bench.floors.records import COLUMNS
from bench.peers.tables.session import CORES, start
from bench.peers.tables.table import Table

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # 50 unless told: for a table of some files the tasks alone would take seconds.
    "spark.databricks.delta.snapshotPartitions": str(CORES),
}


class Delta:
    """A table that `MERGE` keeps up to date."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._spark = spark
        self._name = name

    def load(self, folder: Path) -> None:
        """See `Table`."""
        self._spark.read.parquet(str(folder)).createOrReplaceTempView("events")
        self._spark.sql(
            f"CREATE TABLE {self._name} USING delta "
            "TBLPROPERTIES ('delta.enableDeletionVectors'='true') "
            f"AS SELECT {', '.join(COLUMNS)} FROM events"
        )

    def take(self, file: Path) -> None:
        """See `Table`."""
        self._spark.read.parquet(str(file)).createOrReplaceTempView("events")
        self._spark.sql(merge_into(self._name, "events"))

    def rows(self) -> DataFrame:
        """See `Table`."""
        return self._spark.table(self._name)

    def files(self) -> int:
        """See `Table`. Deletion vectors of one commit share a file; each counts as one."""
        detail = self._spark.sql(f"DESCRIBE DETAIL {self._name}").collect()[0].asDict()
        vectors = (detail.get("statistics") or {}).get("numDeletionVectors", 0)
        return int(detail["numFiles"]) + int(vectors)


def deletion_vectors(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Deletes as deletion vectors."""
    spark = start(folder, jars, memory, _SETTINGS)
    return lambda name: Delta(spark, name)
