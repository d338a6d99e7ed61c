"""`compute_statistics`: sketches of the distinct values of each column, by Iceberg's own action.

The sketches cover all rows of the table, because the action takes no condition. Data columns have
values mostly in Current and Prior, and the values in Prior are older values of the same columns.
The action changes only metadata, of a snapshot that exists, so no step waits for it or is refused
because of it.

It is one scan by Spark, whose jobs are cancelled when other work wants the machine. Nothing is kept
then: a sketch of a part of the rows is useless.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.fenced import commit_fenced
from polynya.lake.spark.api import Py4JJavaError, PySparkException
from polynya.lake.spark.tasks import cancelled_when
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.maintenance import ActionName
from polynya.model.errors import ConflictError
from polynya.model.headers import Partition
from polynya.observe.trace import span

ACTION: Final[ActionName] = "compute_statistics"
#: Columns that a scan looks at, at most: each has a sketch of some kilobytes in every task.
MOST_COLUMNS: Final = 100


@span("compute statistics")
def compute_statistics(target: DatasetTable, limits: ActionLimits) -> ActionOutcome:
    """Write statistics for the newest snapshot, whether it is worth that or not."""
    began = time.monotonic()
    snapshot, names = target.state.snapshot, columns_of(target)
    if snapshot is None or not names:
        return ActionOutcome(ACTION, "the table has no column to count")
    if limits.give_way():
        return ActionOutcome(ACTION, "it gave way", whole=False)
    beside = target.table.opened_again()
    try:
        with cancelled_when(beside.spark, limits.give_way) as cancelled:
            computed = _computed(beside, snapshot, names)
    except (Py4JJavaError, PySparkException) as error:
        why = (
            "it gave way"
            if cancelled.is_set()
            else f"Iceberg did not compute them: {_first_line(error)}"
        )
        return ActionOutcome(ACTION, why, whole=False, seconds=_since(began))
    _set(target, beside, computed)
    files = target.table.files(Partition.CURRENT, snapshot)
    return ActionOutcome(
        ACTION,
        f"distinct values of {len(names)} columns of snapshot {snapshot}",
        commits=1,
        files_added=1,
        read_bytes=sum(file.size_bytes for file in files),
        written_bytes=int(computed.fileSizeInBytes()),
        seconds=_since(began),
    )


def columns_of(target: DatasetTable) -> list[str]:
    """Columns whose distinct values are counted: those of the source with plain values."""
    schema = target.known_schema()
    columns = {column["name"]: column["type"] for column in target.table.columns()}
    plain = [name for name in schema if arrow_type(columns.get(name)) is not None]
    return plain[:MOST_COLUMNS]


def _computed(table: IcebergTable, snapshot: int, names: Sequence[str]) -> Any:
    """Let Iceberg compute them and write the file; the Java `StatisticsFile`."""
    gateway: Any = table.spark.sparkContext._gateway
    listed = gateway.new_array(gateway.jvm.java.lang.String, len(names))
    for index, name in enumerate(names):
        listed[index] = name
    actions = table.iceberg.spark.actions.SparkActions.get(table.spark._jsparkSession)
    # Its own commit would know of no owner: it is made in a transaction that nobody ever commits.
    inside = table.java.newTransaction().table().operations()
    apart = table.iceberg.BaseTable(inside, table.name)
    return (
        actions.computeTableStats(apart).snapshot(snapshot).columns(listed).execute()
    ).statisticsFile()


def _set(target: DatasetTable, table: IcebergTable, computed: Any) -> None:
    """Commit them. Raises ConflictError when another owner has taken the table over."""

    def change(transaction: Any) -> None:
        transaction.updateStatistics().setStatistics(computed).commit()

    with target.changing:
        try:
            commit_fenced(target, table, change)
        except ConflictError:
            table.drop_files([str(computed.path())])
            raise
        target.table.refresh()


def _first_line(error: Py4JJavaError | PySparkException) -> str:
    message = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
    return str(message).split("\n", maxsplit=1)[0]


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)
