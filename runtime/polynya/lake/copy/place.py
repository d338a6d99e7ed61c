"""Where users' expressions run: the rows of a batch in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from polynya.lake.spark.api import DataFrame, PySparkException, SparkSession
from polynya.lake.spark.kinds import kind_of
from polynya.model.datatypes import DataType
from polynya.transform.functions.base import Place

#: The place of a record: the same on every run.
_ROW = "concat_ws(':', __file, CAST(__offset AS STRING))"


def place_of(landed: DataFrame, *, row: str = _ROW) -> Place:
    """Rows that landed, as the place where expressions run; `row` is SQL that tells one of them."""

    def kinds(fragments: Sequence[str]) -> list[DataType]:
        named = [f"{sql} AS c{index}" for index, sql in enumerate(fragments)]
        return [kind_of(field.dataType) for field in landed.selectExpr(*named).schema.fields]

    spark = landed.sparkSession
    return Place(kinds, lambda sql: _works(spark, sql), row)


@lru_cache(maxsize=1024)
def _works(spark: SparkSession, sql: str) -> bool:
    """Whether Spark computes an expression over nothing; the optimizer does it, without a job."""
    try:
        spark.sql(f"SELECT {sql}").collect()
    except PySparkException:
        return False
    return True
