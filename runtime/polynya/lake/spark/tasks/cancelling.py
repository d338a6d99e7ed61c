"""Jobs of Spark that end as soon as somebody wants the machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from polynya.lake.spark.api import SparkSession

_LOOK_SECONDS: Final = 0.1
#: Longest wait for tasks that were cancelled. Their Python is killed at once (`session.py`).
_END_SECONDS: Final = 20.0


@contextmanager
def cancelled_when(spark: SparkSession, wanted: Callable[[], bool]) -> Iterator[threading.Event]:
    """Cancel the jobs that this thread starts inside once `wanted` is true; what is given is set.

    `wanted` is asked in another thread. A job that is cancelled raises what Spark raises. No task
    is at work any longer when an error leaves the block.
    """
    context, tag = spark.sparkContext, f"polynya-{uuid4()}"
    over, cancelled = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
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
    for _ in range(int(_END_SECONDS / _LOOK_SECONDS)):
        stages = [
            tracker.getStageInfo(stage)
            for number in tracker.getJobIdsForTag(tag)
            for stage in tracker.getJobInfo(number).get().stageIds()
        ]
        if not any(one.get().numActiveTasks() for one in stages if one.isDefined()):
            return
        tick.wait(_LOOK_SECONDS)
