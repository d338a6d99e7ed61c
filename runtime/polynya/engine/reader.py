"""A Spark session for readers.

Live views that its catalog cannot hold are made when somebody asks for them.
"""

from __future__ import annotations

from polynya.engine.start import start_spark
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.naming import CATALOG
from polynya.lake.warehouse.check import refuse_unusable
from polynya.model.reading.loader import LoadedProject


def start_reader(project: LoadedProject, statements: str) -> SparkSession:
    """A session in which the views that the statements may name can be read.

    Where the catalog holds views there is nothing to do. On Glue a view is made from the state of
    its table, so that one of a dataset which gets a column later is old until the next session.
    """
    refuse_unusable(project.target, CATALOG)
    spark = start_spark(project)
    if not project.target.on_glue:
        return spark
    # Start-up time: PyIceberg, which finds the tables there.
    from polynya.engine.session_views import make_views

    make_views(spark, project, statements)
    return spark
