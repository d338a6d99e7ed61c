"""Read staged files, which are in no snapshot yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.spark.api import DataFrame


@contextmanager
def staged_rows(table: IcebergTable, files: Sequence[DataFile]) -> Iterator[DataFrame]:
    """The rows of staged files, in the columns of the table; to be read inside of the `with`."""
    iceberg, spark = table.iceberg, table.spark
    jvm: Any = spark._jvm
    schema = iceberg.SchemaParser.toJson(table.java.schema())
    everything = iceberg.expressions.ResidualEvaluator.unpartitioned(
        iceberg.expressions.Expressions.alwaysTrue()
    )
    gateway: Any = spark.sparkContext._gateway
    no_deletes = gateway.new_array(iceberg.DeleteFile, 0)
    tasks, java_files = jvm.java.util.ArrayList(), table.java_files()
    specs: dict[int | None, str] = {}
    for file in files:
        if file.spec not in specs:
            specs[file.spec] = iceberg.PartitionSpecParser.toJson(java_files.spec_of(file))
        spec, made = specs[file.spec], java_files.of(file)
        tasks.add(iceberg.BaseFileScanTask(made, no_deletes, schema, spec, everything))
    group = str(uuid4())
    sets, cache = iceberg.spark.ScanTaskSetManager.get(), iceberg.spark.SparkTableCache.get()
    sets.stageTasks(table.java, group, tasks)
    cache.add(group, table.java)
    try:
        yield spark.read.format("iceberg").option("scan-task-set-id", group).load(group)
    finally:
        cache.remove(group)
        sets.removeTasks(table.java, group)
