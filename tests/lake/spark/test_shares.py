"""Jobs of different threads share the cores, whichever began first."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from polynya.lake.spark.api import SparkSession


def test_a_short_job_does_not_wait_for_a_long_one(spark: SparkSession) -> None:
    def job(tasks: int) -> int:
        sleeping = "java_method('java.lang.Thread', 'sleep', 50L)"
        return len(spark.range(0, tasks, 1, tasks).selectExpr(sleeping).collect())

    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(job, 100)
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.01)
        short = pool.submit(job, 2)

        assert short.result(timeout=60) == 2
        assert not long.done()
        assert long.result(timeout=60) == 100
