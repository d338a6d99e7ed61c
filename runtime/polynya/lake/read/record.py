"""One record in the views: its versions and its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polynya.lake.read.query import run_query
from polynya.lake.spark.api import PySparkException, SparkSession
from polynya.model.contract import headers as h
from polynya.model.contract.identifiers import literal, quote
from polynya.model.errors import ConfigError


def has_view(spark: SparkSession, view: str) -> bool:
    """Whether a view can be read."""
    try:
        spark.sql(f"SELECT 1 FROM {view} LIMIT 0")
    except PySparkException:
        return False
    return True


def conditions(spark: SparkSession, view: str, key: Mapping[str, str]) -> str:
    """SQL condition for the record with the given key, values as text.

    Raises ConfigError for unknown columns.
    """
    types = {
        field.name: field.dataType.simpleString()
        for field in spark.sql(f"SELECT * FROM {view} LIMIT 0").schema
    }
    for name in key:
        if name not in types:
            raise ConfigError(
                "POLYNYA-CLI-001",
                f"{view} has no column `{name}`",
                fix=f"columns: {', '.join(types)}",
            )
    return " AND ".join(
        f"{quote(name)} = CAST({literal(value)} AS {types[name]})" for name, value in key.items()
    )


def versions_and_events(
    spark: SparkSession, view: str, changes: str, where: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the record in the History view (Current, without history) and in the Changes view."""
    columns = spark.sql(f"SELECT * FROM {view} LIMIT 0").columns
    order = (
        f"ORDER BY {h.FROM_TIMESTAMP}, coalesce({h.TO_TIMESTAMP}, TIMESTAMP '9999-12-31')"
        if h.FROM_TIMESTAMP in columns
        else ""
    )
    versions = run_query(spark, f"SELECT * FROM {view} WHERE {where} {order}")
    events = run_query(
        spark, f"SELECT * FROM {changes} WHERE {where} ORDER BY {h.CHANGE_IDENTIFIER}"
    )
    return versions, events
