"""The peer of a first load: `python -m bench.floors.ctas KIND FILES PROJECT`, one table, the end.

The JVM has the jars, the catalog and the memory of the project's own runs, and all its compilers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from polynya.engine import session
from polynya.lake.spark.api import SparkSession
from polynya.model.loader import load_project

#: As ours are written.
PROPERTIES = (
    "'format-version'='2', 'write.parquet.compression-codec'='zstd', "
    "'write.parquet.compression-level'='1'"
)


def create(spark: SparkSession, kind: str, files: str) -> None:
    """Make a table of a folder of files, without `op`, with the types that Spark finds."""
    spark.sql("CREATE NAMESPACE peer")
    spark.read.format(kind).load(files).drop("op").createOrReplaceTempView("landed")
    spark.sql(
        f"CREATE TABLE peer.orders USING iceberg TBLPROPERTIES ({PROPERTIES}) "
        "AS SELECT * FROM landed"
    )


def main(kind: str, files: str, project: str) -> None:
    """Create `peer.orders` in the catalog of a project."""
    create(session.start_spark(load_project(Path(project)), long_lived=True), kind, files)


if __name__ == "__main__":
    main(*sys.argv[1:])
