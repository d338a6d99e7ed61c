"""Iceberg without us: `MERGE INTO` in both modes, and a hand-written SCD2 merge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.floors.ctas import PROPERTIES
from bench.floors.merge_into import MERGE_ON_READ, merge_into
from bench.floors.records import COLUMNS
from bench.peers.tables.session import count, start
from bench.peers.tables.table import Table

_SCHEMA = "peer.bench."
COPY_ON_WRITE = (
    "'write.merge.mode'='copy-on-write', 'write.update.mode'='copy-on-write', "
    "'write.delete.mode'='copy-on-write'"
)


class Merged:
    """A table that `MERGE INTO` keeps up to date."""

    def __init__(self, spark: SparkSession, table: str, modes: str) -> None:
        self._spark = spark
        self._table = table
        self._modes = modes

    def load(self, folder: Path) -> None:
        """See `Table`."""
        self._spark.read.parquet(str(folder)).createOrReplaceTempView("events")
        self._spark.sql(
            f"CREATE TABLE {self._table} USING iceberg TBLPROPERTIES ({PROPERTIES}, {self._modes}) "
            f"AS SELECT {self._loaded()} FROM events"
        )

    def take(self, file: Path) -> None:
        """See `Table`."""
        self._spark.read.parquet(str(file)).createOrReplaceTempView("events")
        self._spark.sql(self._statement())

    def rows(self) -> DataFrame:
        """See `Table`."""
        return self._spark.table(self._table)

    def files(self) -> int:
        """See `Table`."""
        return count(self._spark, f"SELECT count(*) FROM {self._table}.files")

    def _loaded(self) -> str:
        return ", ".join(COLUMNS)

    def _statement(self) -> str:
        return merge_into(self._table, "events")


class Versioned(Merged):
    """SCD2 by hand: `valid_to` is NULL in the newest version of a row.

    The first event of each key in a batch closes the open version if it is newer; every event but a
    delete opens one, which the next event of the batch closes. Late events are not thought of.
    """

    def rows(self) -> DataFrame:
        """See `Table`."""
        return super().rows().where("valid_to IS NULL").drop("valid_to")

    def _loaded(self) -> str:
        return f"{super()._loaded()}, CAST(NULL AS TIMESTAMP) AS valid_to"

    def _statement(self) -> str:
        columns = [*COLUMNS, "valid_to"]
        events = (
            "SELECT *, lead(ts) OVER w AS valid_to, row_number() OVER w AS n FROM events "
            "WINDOW w AS (PARTITION BY id ORDER BY seq)"
        )
        return (
            f"MERGE INTO {self._table} t USING (WITH e AS ({events}) "
            "SELECT id AS closes, e.* FROM e WHERE n = 1 "
            "UNION ALL SELECT NULL AS closes, e.* FROM e WHERE op <> 'D') s "
            "ON t.id = s.closes AND t.valid_to IS NULL "
            "WHEN MATCHED AND s.seq > t.seq THEN UPDATE SET t.valid_to = s.ts "
            f"WHEN NOT MATCHED AND s.closes IS NULL THEN INSERT ({', '.join(columns)}) "
            f"VALUES ({', '.join(f's.{column}' for column in columns)})"
        )


def _session(folder: Path, jars: list[str], memory: str) -> SparkSession:
    settings = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.peer.type": "hadoop",
        "spark.sql.catalog.peer.warehouse": str(folder / "warehouse"),
    }
    return start(folder, jars, memory, settings)


def merge_on_read(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Deletes as files of positions."""
    spark = _session(folder, jars, memory)
    return lambda name: Merged(spark, _SCHEMA + name, MERGE_ON_READ)


def copy_on_write(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """Files with a changed row are written again."""
    spark = _session(folder, jars, memory)
    return lambda name: Merged(spark, _SCHEMA + name, COPY_ON_WRITE)


def scd2(folder: Path, jars: list[str], memory: str) -> Callable[[str], Table]:
    """History by hand, merge-on-read."""
    spark = _session(folder, jars, memory)
    return lambda name: Versioned(spark, _SCHEMA + name, MERGE_ON_READ)
