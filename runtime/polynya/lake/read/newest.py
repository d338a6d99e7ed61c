"""Let a session that goes on see the newest commits."""

from __future__ import annotations

from typing import Any

from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.naming import CATALOG
from polynya.model.contract.identifiers import quote_path


def see_newest(spark: SparkSession) -> None:
    """Forget the commits of all tables that the session has read.

    Iceberg's catalog keeps tables as they were when they were first read. That gives the parts of
    one statement one commit, and would give later statements the same one.
    """
    jvm: Any = spark._jvm
    for (schema,) in spark.sql(f"SHOW NAMESPACES IN {CATALOG}").collect():
        for row in spark.sql(f"SHOW TABLES IN {quote_path(CATALOG, schema)}").collect():
            place = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(
                spark._jsparkSession, quote_path(CATALOG, schema, row["tableName"])
            )
            place.catalog().invalidateTable(place.identifier())
