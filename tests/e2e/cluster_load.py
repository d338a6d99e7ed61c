"""A first load by two executors: `python -m tests.e2e.cluster_load PROJECT`.

A process of its own, since a process has one Spark session. The executors are processes beside the
driver, each with Python workers of its own, as those of a standalone cluster are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark

from polynya.engine.runner import run_once, units
from polynya.engine.work.context import EngineContext
from polynya.formats.loads import LoadLimits
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import spark_properties
from polynya.lake.spark.jars import jars_of
from polynya.lake.spark.java import find_java
from polynya.lake.spark.session import SessionSettings, spark_conf
from polynya.model.config.target import ResolvedTarget
from polynya.model.reading.loader import load_project
from polynya.store.object_store import LocalObjectStore


def session(target: ResolvedTarget) -> SparkSession:
    """A session whose tasks run in two other processes."""
    os.environ |= {
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_DRIVER_PYTHON": "no-python-in-spark",
        "PYSPARK_PYTHON": sys.executable,
    }
    jars = jars_of(target)
    settings = SessionSettings(
        jars=jars, catalog=spark_properties(target), memory="1g", session_views=target.on_glue
    )
    builder = SparkSession.builder.master("local-cluster[2,1,900]").appName("two executors")
    executors = {
        "spark.executor.extraClassPath": os.pathsep.join(jars),
        "spark.executor.memory": "700m",
    }
    for key, value in {**spark_conf(settings), **executors}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(folder: str) -> None:
    """Load all that has landed, and say each event."""
    project = load_project(Path(folder))
    if isinstance(project.target.warehouse, Path):
        project.target.warehouse.mkdir(parents=True, exist_ok=True)
    spark = session(project.target)
    context = EngineContext(
        spark=spark,
        landing=LocalObjectStore(Path(folder) / "landing"),
        sink=lambda event: print(event.type, event.text(), flush=True),
        loads=LoadLimits(least_bytes=1),
    )
    failures = run_once(context, units(context, list(project.tasks))).failures
    spark.stop()
    for failure in failures.values():
        raise failure


if __name__ == "__main__":
    main(sys.argv[1])
