"""Names of catalogs and tables, which readers outside Spark need too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.identifiers import quote_path

if TYPE_CHECKING:  # start-up time: readers without a JVM need no PySpark
    from polynya.lake.spark.api import SparkSession
    from polynya.lake.warehouse.tables import Tables

#: Name of the catalog in Spark, and the `catalog_name` of its rows in a JDBC catalog: all readers
#: must use the same.
CATALOG = "polynya"

#: Spark's catalog of the views of one session, where the catalog itself can hold no Iceberg views.
SESSION_VIEWS = "live"


def view_catalog(spark: SparkSession) -> str:
    """The catalog in which a session has the views: the one that queries look in first."""
    return str(spark.conf.get("spark.sql.defaultCatalog"))


def internal_path(spark: SparkSession, dataset: ResolvedDataset) -> str:
    """The internal table of a dataset as Spark SQL names it."""
    return quote_path(CATALOG, *_stored(dataset, lower=view_catalog(spark) == SESSION_VIEWS))


def internal_name(catalog: Tables, dataset: ResolvedDataset) -> tuple[str, str]:
    """The internal table of a dataset as PyIceberg names it."""
    return _stored(dataset, lower=catalog.properties.get("type") == "glue")


def _stored(dataset: ResolvedDataset, *, lower: bool) -> tuple[str, str]:
    """Glue has no upper case. No two datasets differ in nothing else (`relations`)."""
    name = (dataset.relations.internal_schema, dataset.relations.internal_table)
    return (name[0].lower(), name[1].lower()) if lower else name
