"""Wide tables of few rows are computed by Spark's interpreter.

Spark makes and compiles code for every projection, join and exchange of a query. With two thousand
columns that takes longer than anything else, and is only made up for by many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from polynya.lake.spark.api import SparkSession

#: Spark itself compiles no whole stages beyond so many columns (`spark.sql.codegen.maxFields`).
_WIDE: Final = 300
#: To compile takes about as long as to interpret so many values.
_MOST_VALUES: Final = 200_000_000
_MODE: Final = "spark.sql.codegen.factoryMode"


@contextmanager
def interpreted_if_wide(
    spark: SparkSession, *, columns: int, rows: Callable[[], int]
) -> Iterator[None]:
    """Let the queries of this thread be interpreted, if that is faster for so many values.

    The mode is a local property, which Spark hands to the tasks of this thread's jobs: queries of
    other tables stay as they are. `rows` is asked of wide tables only: it costs calls of Java.
    """
    if columns <= _WIDE or columns * rows() > _MOST_VALUES:
        yield
        return
    context = spark.sparkContext
    context.setLocalProperty(_MODE, "NO_CODEGEN")
    try:
        yield
    finally:
        context.setLocalProperty(_MODE, None)  # type: ignore[arg-type]  # it is removed
