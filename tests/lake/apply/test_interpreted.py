"""Queries of wide tables with few rows are interpreted, and all others are compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from polynya.lake.apply.apply import interpreted_if_wide

pytestmark = pytest.mark.spark
_WIDE = 310
_MODE = "spark.sql.codegen.factoryMode"


@pytest.fixture
def compiling(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the tests, which compiles nothing, as users have it."""
    spark.conf.unset(_MODE)
    yield spark
    spark.conf.set(_MODE, "NO_CODEGEN")


def compiled(spark: SparkSession) -> int:
    """How often this Java has compiled code for a query."""
    metrics: Any = spark.sparkContext._jvm
    return int(
        metrics.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount()
    )


def compiles(spark: SparkSession, number: int) -> int:
    """How often a query of a wide table compiles code that no query had before."""
    columns = ", ".join(f"id + {n} * {number} AS c{n}" for n in range(_WIDE))
    before = compiled(spark)
    found = spark.sql(f"SELECT {columns} FROM range(3)").repartition(2).collect()
    assert sorted(row["c2"] for row in found) == [2 * number, 2 * number + 1, 2 * number + 2]
    return compiled(spark) - before


def test_only_wide_tables_of_few_rows_are_computed_without_compiling(
    compiling: SparkSession,
) -> None:
    spark = compiling
    with interpreted_if_wide(spark, columns=_WIDE, rows=lambda: 3):
        interpreted = compiles(spark, 7)
    with interpreted_if_wide(spark, columns=300, rows=lambda: 3):
        narrow = compiles(spark, 8)
    with interpreted_if_wide(spark, columns=_WIDE, rows=lambda: 1_000_000):
        long = compiles(spark, 9)

    # What has few columns is compiled with its stage, as always.
    assert interpreted < narrow
    assert interpreted < long
    assert spark.sparkContext.getLocalProperty(_MODE) is None
