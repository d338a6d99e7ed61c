"""Run Python in Spark tasks, and cancel jobs as soon as other work wants the machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

import pyarrow as pa

from polynya.lake.spark.api import (
    AccumulatorParam,
    DataFrame,
    PythonEvalType,
    SparkSession,
    TaskContext,
    UserDefinedFunction,
)
from polynya.lake.spark.arrow import spark_schema

_POLL_SECONDS: Final = 0.1
#: Longest wait for tasks that were cancelled. Their Python is killed at once (`session.py`).
_CANCEL_TIMEOUT_SECONDS: Final = 20.0


@contextmanager
def cancelled_when(spark: SparkSession, wanted: Callable[[], bool]) -> Iterator[threading.Event]:
    """Cancel the jobs that this thread starts inside once `wanted` is true; what is given is set.

    `wanted` is asked in another thread. A job that is cancelled raises what Spark raises. No task
    is at work any longer when an error leaves the block.
    """
    context, tag = spark.sparkContext, f"polynya-{uuid4()}"
    over, cancelled = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_POLL_SECONDS):
            if cancelled.is_set() or wanted():
                cancelled.set()
                # Again and again: a job may begin only now.
                context.cancelJobsWithTag(tag)

    watcher = threading.Thread(target=watch, name="gives way", daemon=True)
    context.addJobTag(tag)
    watcher.start()
    try:
        yield cancelled
    except BaseException:
        _wait_for_tasks(spark, tag)
        raise
    finally:
        over.set()
        watcher.join()
        context.removeJobTag(tag)


def _wait_for_tasks(spark: SparkSession, tag: str) -> None:
    """Spark says that a job has failed while other tasks of it still work."""
    context: Any = spark.sparkContext
    tracker = context._jsc.sc().statusTracker()
    tick = threading.Event()
    for _ in range(int(_CANCEL_TIMEOUT_SECONDS / _POLL_SECONDS)):
        stages = [
            tracker.getStageInfo(stage)
            for number in tracker.getJobIdsForTag(tag)
            for stage in tracker.getJobInfo(number).get().stageIds()
        ]
        if not any(stage.get().numActiveTasks() for stage in stages if stage.isDefined()):
            return
        tick.wait(_POLL_SECONDS)


T = TypeVar("T")


class _Merged(AccumulatorParam[dict[int, Any]]):
    """Reports of tasks, by number: a task that runs twice reports the same under its number."""

    def zero(self, value: dict[int, Any]) -> dict[int, Any]:
        """Nothing was reported."""
        del value
        return {}

    def addInPlace(  # noqa: N802 (the name is PySpark's)
        self, value1: dict[int, Any], value2: dict[int, Any]
    ) -> dict[int, Any]:
        """Take over what another task reported."""
        value1.update(value2)
        return value1


class TaskReports(Generic[T]):
    """What tasks say, each under a number. It goes to the tasks and collects here."""

    def __init__(self, spark: SparkSession) -> None:
        self._values = spark.sparkContext.accumulator({}, _Merged())

    def report(self, number: int, value: T) -> None:
        """Report a value; called in a task."""
        self._values.add({number: value})

    @property
    def all(self) -> dict[int, T]:
        """All that was reported; only the driver knows it."""
        reports: dict[int, T] = self._values.value
        return reports


def rows_of_tasks(
    spark: SparkSession,
    count: int,
    make: Callable[[int], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Rows that `count` tasks make, each by its number from 0.

    `make` is sent to the tasks: it and all that it holds can be pickled.
    """

    def rows(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from make(number)

    return mapped_rows(spark.range(0, count, 1, count), rows, schema)


def mapped_rows(
    source: DataFrame,
    change: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Rows that each task makes of the pieces of its own part of `source`.

    `change` is sent to the tasks as `make` of `rows_of_tasks` is. Like `mapInArrow` of PySpark,
    which asks for pandas and does not need it.
    """
    function = UserDefinedFunction(
        change, spark_schema(schema), evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    mapped: Any = function(*(source[name] for name in source.columns))
    java: Any = source._jdf
    return DataFrame(java.mapInArrow(mapped._jc, False, None), source.sparkSession)  # noqa: FBT003


def attempt_of_task() -> int:
    """How often the task that this runs in was begun before."""
    here = TaskContext.get()
    return 0 if here is None else here.attemptNumber()
