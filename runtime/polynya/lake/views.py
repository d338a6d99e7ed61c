"""Register the live views of a dataset in the catalog, and keep them up to date."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from polynya.lake.dataset import DatasetTable
from polynya.lake.naming import CATALOG
from polynya.lake.shape import Shape
from polynya.lake.view_sql import definitions
from polynya.model.identifiers import quote_path

_DEFINITION = "polynya.definition"


def publish_views(target: DatasetTable, shape: Shape) -> list[str]:
    """Create or replace the views whose definition changed; return their names."""
    dataset = target.dataset
    # A view keeps the types that its columns had when it was made.
    types = [shape.type_of(name) for name in shape.data]
    published = []
    for name, sql in definitions(dataset, shape, target.table.quoted).items():
        quoted = quote_path(CATALOG, dataset.schema, name)
        definition = hashlib.sha256(f"{types}\n{sql}".encode()).hexdigest()[:32]
        if _published(target.spark, quoted) != definition:
            target.spark.sql(
                f"CREATE OR REPLACE VIEW {quoted} "
                f"TBLPROPERTIES ('{_DEFINITION}' = '{definition}') AS {sql}"
            )
            published.append(f"{dataset.schema}.{name}")
    return published


def drop_views(spark: SparkSession, names: Iterable[str]) -> None:
    """Drop views, given as `schema.view`; those that are not there are no error."""
    for name in names:
        spark.sql(f"DROP VIEW IF EXISTS {quote_path(CATALOG, *name.split('.'))}")


def _published(spark: SparkSession, quoted: str) -> str | None:
    try:
        rows = spark.sql(f"SHOW TBLPROPERTIES {quoted}").collect()
    except PySparkException:
        return None
    return next((str(row["value"]) for row in rows if row["key"] == _DEFINITION), None)
