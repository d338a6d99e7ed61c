"""`compute_statistics`: sketches of the distinct values of each column, by Iceberg's own action.

They are of all rows of the table: the action takes no condition. Data columns have values in
Current and Prior mostly, and those in Prior are older values of the same columns. It changes
metadata only, of a snapshot that exists, so that no step waits for it or is refused because of it.
"""

from __future__ import annotations

import time
from typing import Any, Final

from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.maintenance.base import ActionName, Limits, Outcome
from polynya.lake.spark.api import Py4JJavaError
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract.headers import Partition
from polynya.observe.trace import span

ACTION: Final[ActionName] = "compute_statistics"
#: Columns that a scan looks at, at most: each has a sketch of some kilobytes in every task.
MOST_COLUMNS: Final = 100


@span("compute statistics")
def compute_statistics(target: DatasetTable, limits: Limits) -> Outcome:
    """Write statistics for the newest snapshot, whether it is worth that or not."""
    began = time.monotonic()
    snapshot, names = target.state.snapshot, columns_of(target)
    if snapshot is None or not names:
        return Outcome(ACTION, "the table has no column to count")
    if limits.give_way():
        return Outcome(ACTION, "it gave way", whole=False)
    try:
        written = _computed(target, snapshot, names)
    except Py4JJavaError as error:
        why = str(error.java_exception.getMessage()).split("\n")[0]
        return Outcome(ACTION, f"Iceberg did not compute them: {why}", whole=False)
    files = target.table.files(Partition.CURRENT, snapshot)
    return Outcome(
        ACTION,
        f"distinct values of {len(names)} columns of snapshot {snapshot}",
        commits=1,
        files_added=1,
        read_bytes=sum(file.size_bytes for file in files),
        written_bytes=written,
        seconds=round(time.monotonic() - began, 3),
    )


def columns_of(target: DatasetTable) -> list[str]:
    """Columns whose distinct values are counted: those of the source with plain values."""
    known = target.known_schema()
    columns = {one["name"]: one["type"] for one in target.table.columns()}
    plain = [name for name in known if arrow_type(columns.get(name)) is not None]
    return plain[:MOST_COLUMNS]


def _computed(target: DatasetTable, snapshot: int, names: list[str]) -> int:
    """Let Iceberg compute them; bytes of the file."""
    table = target.table
    beside = table.opened_again()
    gateway: Any = table.spark.sparkContext._gateway
    listed = gateway.new_array(gateway.jvm.java.lang.String, len(names))
    for index, name in enumerate(names):
        listed[index] = name
    actions = table.iceberg.spark.actions.SparkActions.get(table.spark._jsparkSession)
    computed = actions.computeTableStats(beside.java).snapshot(snapshot).columns(listed)
    size = int(computed.execute().statisticsFile().fileSizeInBytes())
    with target.changing:
        table.refresh()
    return size
