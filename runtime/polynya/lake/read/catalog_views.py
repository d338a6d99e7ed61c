"""Register the live views of a dataset in the catalog, and keep them up to date."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polynya.lake.fold.live_views import DEFINITION, definition_of, definitions
from polynya.lake.fold.shape import Shape
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.session import internal_path, view_catalog
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.names import quote_path


def publish_views(target: DatasetTable, shape: Shape) -> list[str]:
    """Create or replace the views whose definition changed; return their names.

    The catalog is asked once for each shape: what was found or made then stays, as long as nobody
    else commits to the table.
    """
    if target.views_of == shape:
        return []
    target.views_of = None
    # A process that was killed between a change of columns and the state that knows of it leaves
    # views of types that the table no longer has.
    ahead = target.table.columns() if target.table.is_ahead() else None
    published = create_views(target.spark, target.dataset, shape, stored=ahead)
    if ahead is None:
        target.views_of = shape
    return published


def create_views(
    spark: SparkSession, dataset: ResolvedDataset, shape: Shape, *, stored: object = None
) -> list[str]:
    """The same for a dataset whose table need not be open; its namespace must exist.

    `stored` tells the columns that the table has by now, where the shape does not know them.
    """
    published = []
    for name, sql in definitions(dataset, shape, internal_path(spark, dataset)).items():
        quoted = quote_path(view_catalog(spark), dataset.relations.schema, name)
        definition = definition_of(shape, sql, stored)
        if _published(spark, quoted) != (definition, sql):
            spark.sql(
                f"CREATE OR REPLACE VIEW {quoted} "
                f"TBLPROPERTIES ('{DEFINITION}' = '{definition}') AS {sql}"
            )
            published.append(f"{dataset.relations.schema}.{name}")
    return published


def drop_views(spark: SparkSession, names: Iterable[str]) -> None:
    """Drop views, given as `schema.view`; missing views are ignored."""
    for name in names:
        spark.sql(f"DROP VIEW IF EXISTS {quote_path(view_catalog(spark), *name.split('.'))}")


def _published(spark: SparkSession, quoted: str) -> tuple[str, str] | None:
    """The definition that a view was made with, and its text; None for one that is not there."""
    # Through the catalog itself: a statement would cost a plan for each view of each batch.
    jvm: Any = spark._jvm
    place = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(
        spark._jsparkSession, quoted
    )
    if not place.catalog().viewExists(place.identifier()):
        return None
    view = place.catalog().loadView(place.identifier())
    # Whoever replaces a view keeps its properties.
    return str(view.properties().get(DEFINITION)), str(view.query())
