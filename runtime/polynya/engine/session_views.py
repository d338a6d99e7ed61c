"""Live views in a session whose catalog cannot hold views."""

from __future__ import annotations

from polynya.engine.inventory import inventory
from polynya.lake.iceberg.layout import create_namespaces
from polynya.lake.read.catalog_views import create_views
from polynya.lake.read.inspect import shape
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.spark.session import view_catalog
from polynya.model.loader import LoadedProject
from polynya.model.names import quote_path


def make_views(spark: SparkSession, project: LoadedProject, statements: str) -> None:
    """Make the views that the statements may name, from the states of their tables."""
    text = statements.lower()
    # A statement that lists views or describes schemas names none of them.
    everything = text.lstrip().startswith(("show", "desc"))
    for entry in inventory(project, python_catalog(project.target)):
        named = everything or entry.dataset.relations.view.lower() in text
        if entry.table is None or entry.is_ledger or not named:
            continue
        current = shape(entry.table, entry.dataset)
        if current.data:
            schema = quote_path(view_catalog(spark), entry.dataset.relations.schema)
            create_namespaces(spark, (schema,))
            create_views(spark, entry.dataset, current)
