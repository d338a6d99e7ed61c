"""Hudi: upserts into a merge-on-read table, found by a join of keys or by the record index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from bench.peers.tables.session import CORES, start
from bench.peers.tables.table import Table

_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
_WRITE = {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "seq",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": (
        "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    ),
    "hoodie.bulkinsert.shuffle.parallelism": str(CORES),
    "hoodie.upsert.shuffle.parallelism": str(CORES),
    "hoodie.embed.timeline.server": "false",
}
_SIMPLE = {"hoodie.index.type": "SIMPLE", "hoodie.metadata.enable": "false"}
_RECORD_INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
_OWN = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key",
        "_hoodie_partition_path", "_hoodie_file_name", "_hoodie_is_deleted")  # fmt: skip


class Hudi:
    """A table that upserts keep up to date; `_hoodie_is_deleted` makes an event a delete."""

    def __init__(self, spark: SparkSession, path: Path, index: Mapping[str, str]) -> None:
        self._spark = spark
        self._path = path
        self._options = {**_WRITE, **index, "hoodie.table.name": path.name}

    def load(self, folder: Path) -> None:
        """See `Table`."""
        self._write(folder, "bulk_insert", "overwrite")

    def take(self, file: Path) -> None:
        """See `Table`."""
        self._write(file, "upsert", "append")

    def rows(self) -> DataFrame:
        """See `Table`. A snapshot query: the logs are merged while it reads."""
        return self._spark.read.format("hudi").load(str(self._path)).drop(*_OWN)

    def files(self) -> int:
        """See `Table`. Files of the newest slice of each group: one base file, and its logs."""
        newest: dict[str, str] = {}
        logs: dict[str, list[str]] = {}
        for file in self._path.iterdir():
            if file.suffix == ".parquet":
                group, _, instant = file.stem.split("_")
                newest[group] = max(newest.get(group, ""), instant)
            elif ".log." in file.name and not file.name.endswith(".crc"):
                group, instant = file.name.lstrip(".").split(".log.")[0].rsplit("_", 1)
                logs.setdefault(group, []).append(instant)
        live = sum(instant >= newest.get(group, "") for group in logs for instant in logs[group])
        return len(newest) + live

    def _write(self, source: Path, operation: str, mode: str) -> None:
        events = self._spark.read.parquet(str(source))
        rows = events.withColumn("_hoodie_is_deleted", expr("op = 'D'")).drop("op")
        writer = rows.write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(
            str(self._path)
        )


def simple_index(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Keys are found by a join with those of the table."""
    spark = start(folder, jars, memory, _SETTINGS)
    return lambda name: Hudi(spark, folder / "warehouse" / name, _SIMPLE)


def record_index(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Keys are found in the record index, a table of its own."""
    spark = start(folder, jars, memory, _SETTINGS)
    return lambda name: Hudi(spark, folder / "warehouse" / name, _RECORD_INDEX)
