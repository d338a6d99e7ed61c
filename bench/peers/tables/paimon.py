"""Paimon: a primary-key table, to which an insert is an upsert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.peers.tables.session import CORES, count, start
from bench.peers.tables.table import Table

_EXTENSIONS = "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions"


class Paimon:
    """A table of which `kind` says whether an event deletes."""

    def __init__(self, spark: SparkSession, name: str, *, vectors: bool) -> None:
        self._spark = spark
        self._table = f"peer.bench.{name}"
        self._vectors = vectors

    def load(self, folder: Path) -> None:
        """See `Table`. A bucket for each core."""
        events = self._spark.read.parquet(str(folder))
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}"
            for field in events.drop("op").schema.fields
        )
        self._spark.sql("CREATE DATABASE IF NOT EXISTS peer.bench")
        self._spark.sql(
            f"CREATE TABLE {self._table} ({columns}, kind STRING) TBLPROPERTIES ("
            f"'primary-key'='id', 'bucket'='{CORES}', 'sequence.field'='seq', "
            f"'rowkind.field'='kind', 'deletion-vectors.enabled'='{str(self._vectors).lower()}')"
        )
        self._insert(events)

    def take(self, file: Path) -> None:
        """See `Table`."""
        self._insert(self._spark.read.parquet(str(file)))

    def rows(self) -> DataFrame:
        """See `Table`."""
        return self._spark.table(self._table).drop("kind")

    def files(self) -> int:
        """See `Table`. Files of deletion vectors are not in Paimon's list of files."""
        return count(self._spark, f"SELECT count(*) FROM peer.bench.`{self._name}$files`")

    @property
    def _name(self) -> str:
        return self._table.rsplit(".", 1)[1]

    def _insert(self, events: DataFrame) -> None:
        events.createOrReplaceTempView("events")
        columns = ", ".join(name for name in events.columns if name != "op")
        self._spark.sql(
            f"INSERT INTO {self._table} "
            f"SELECT {columns}, IF(op = 'D', '-D', '+I') AS kind FROM events"
        )


def _session(folder: Path, jars: list[str], memory: str) -> SparkSession:
    settings = {
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.catalog.peer": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.peer.warehouse": str(folder / "warehouse"),
    }
    return start(folder, jars, memory, settings)


def deletion_vectors(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Writing looks keys up and marks the rows that are gone; reading merges nothing."""
    spark = _session(folder, jars, memory)
    return lambda name: Paimon(spark, name, vectors=True)


def merge_on_read(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """The default: sorted runs, merged by each read."""
    spark = _session(folder, jars, memory)
    return lambda name: Paimon(spark, name, vectors=False)
