"""Write groups of data files again in tasks of Spark: executors do, or processes beside this one.

A task writes one group, with the memory that the driver would need for it. The driver gets the
footers of the new files and where their rows were, never a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from polynya.lake.iceberg.files import Slot
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.maintenance.rewrite.job import Job, Written, write
from polynya.lake.maintenance.rewrite.plan import Group
from polynya.lake.maintenance.rewrite.write import GaveWayError, StagedGroup, staged
from polynya.lake.maintenance.rewrite.writer import NewFile
from polynya.lake.spark.api import Py4JJavaError, PySparkException
from polynya.lake.spark.tasks.cancelling import cancelled_when
from polynya.lake.spark.tasks.python import attempt_of_task, rows_of_tasks
from polynya.observe.trace import span

#: How often a task is tried, as `spark.task.maxFailures` has it.
_ATTEMPTS: Final = 4
_NEW_FILES: Final = pa.schema(
    [
        ("job", pa.int32()),
        ("attempt", pa.int32()),
        ("path", pa.string()),
        ("partition", pa.string()),
        ("spec", pa.int32()),
        ("slot_values", pa.string()),
        ("rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("footer", pa.binary()),
        ("packed", pa.binary()),
    ]
)


@span("write rows again", by="tasks")
def stage_by_tasks(
    table: IcebergTable, work: Sequence[tuple[Group, Job]], give_way: Callable[[], bool]
) -> list[StagedGroup]:
    """Write groups at the same time, each in a task.

    Raises GaveWayError when it is to give way, and OSError; what was written is removed then.
    """
    jobs = [job for _, job in work]
    try:
        with cancelled_when(table.spark, give_way) as cancelled:
            rows = rows_of_tasks(table.spark, len(jobs), _writing(jobs), _NEW_FILES).toArrow()
    except BaseException as error:
        table.drop_files(path for job in jobs for path in job.left(_ATTEMPTS))
        if cancelled.is_set():
            raise GaveWayError from error
        if isinstance(error, (PySparkException, Py4JJavaError)):
            raise OSError(_said(error)) from error
        raise
    made: list[list[Written]] = [[] for _ in jobs]
    for row in rows.to_pylist():
        made[row["job"]].append(_written(row))
        if row["attempt"]:
            table.drop_files(jobs[row["job"]].left(row["attempt"]))
    return [staged(table, *one, some) for one, some in zip(work, made, strict=True)]


def _writing(jobs: Sequence[Job]) -> Callable[[int], Iterator[pa.RecordBatch]]:
    """What a task does; it is sent with the jobs."""

    def work(number: int) -> Iterator[pa.RecordBatch]:
        attempt = attempt_of_task()
        for one in write(jobs[number], lambda: None, attempt):
            yield pa.RecordBatch.from_pylist([_row(number, attempt, one)], schema=_NEW_FILES)
        # The process waits for the next task of anybody.
        pa.default_memory_pool().release_unused()

    return work


def _row(number: int, attempt: int, one: Written) -> dict[str, Any]:
    file = one.file
    return {
        "job": number,
        "attempt": attempt,
        "path": file.path,
        "partition": file.slot.partition,
        "spec": file.slot.spec,
        "slot_values": file.slot.values,
        "rows": file.rows,
        "size_bytes": file.size_bytes,
        "footer": file.footer,
        "packed": one.packed,
    }


def _written(row: dict[str, Any]) -> Written:
    slot = Slot(row["partition"], row["spec"], row["slot_values"])
    file = NewFile(row["path"], slot, row["rows"], row["size_bytes"], row["footer"])
    return Written(file, row["packed"])


def _said(error: Exception) -> str:
    """The line that says what was wrong, without the stacks of Java and Python."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error: " in line), lines[0] if lines else "")
