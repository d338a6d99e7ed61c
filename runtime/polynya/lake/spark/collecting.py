"""Rows of a query as Arrow, without a job where Spark has computed them while it planned.

A query over a few rows that were given to Spark is computed by the optimizer. `toArrow` starts a
job all the same, which waits for a core while tasks of other datasets hold all of them.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from polynya.lake.spark.api import DataFrame
from polynya.observe.trace import span

_ALL: Final = (1 << 63) - 1


@span("collect")
def collected_rows(rows: DataFrame) -> pa.Table:
    """All rows of a query whose columns have different names."""
    plan: Any = rows._jdf.queryExecution().executedPlan()
    if plan.nodeName() != "LocalTableScan":
        return rows.toArrow()
    computed = plan.rows().iterator()
    if not computed.hasNext():
        return rows.toArrow()
    content = _converters(rows).toBatchWithSchemaIterator(
        computed, plan.schema(), _ALL, _ALL, "UTC", True, False  # noqa: FBT003 - a method of Java's
    )  # fmt: skip
    with pa.ipc.open_stream(content.next()) as stream:
        return stream.read_all()


def _converters(rows: DataFrame) -> Any:
    jvm: Any = rows.sparkSession._jvm
    return getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
