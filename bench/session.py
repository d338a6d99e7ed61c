"""The Spark session of a benchmark, over a catalog in a folder of its own."""

from __future__ import annotations

from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.class_archive import cds_options
from polynya.lake.spark.jars import jar_paths
from polynya.lake.spark.java import find_java
from polynya.lake.spark.session import SessionSettings, start_session


def session_in(folder: str, *, memory: str = "2g", small: bool = False) -> SparkSession:
    """Start a session; `small` is the JVM of `run --once`."""
    java, jars = find_java(), jar_paths()
    catalog = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/catalog.db",
               "jdbc.schema-version": "V1", "warehouse": f"{folder}/warehouse"}  # fmt: skip
    settings = SessionSettings(
        jars=jars,
        catalog=catalog,
        memory=memory,
        small=small,
        jvm_options=cds_options(java, jars),
    )
    return start_session(settings, java)
