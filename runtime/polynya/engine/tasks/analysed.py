"""The columns of a query's result by Spark's analyser, over empty views: no row is read."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.derived.schema import DerivedInput
from polynya.derived.tables import ParsedQuery
from polynya.engine.tasks.affected_rows import TemporaryViews
from polynya.engine.tasks.derived import answer_of, refused_by_spark
from polynya.lake.spark.api import Py4JError, PySparkException, SparkSession
from polynya.model.names import quote


def analysed(
    spark: SparkSession, name: str, query: ParsedQuery, inputs: Mapping[str, DerivedInput]
) -> list[tuple[str, str]]:
    """Names and types of the result of the query of the table `name`.

    Raises OperationError for a query that Spark, or the check of its plan, refuses.
    """
    try:
        with TemporaryViews(spark) as views:
            relations = {
                called: views.of(_no_rows(table.columns)) for called, table in inputs.items()
            }
            frame = answer_of(spark, name, query.over(relations), views.plain_names)
            return [(one.name, one.dataType.simpleString()) for one in frame.schema.fields]
    except (PySparkException, Py4JError) as error:
        raise refused_by_spark(name, error) from error


def _no_rows(columns: Mapping[str, str]) -> str:
    nulls = (f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in columns.items())
    return f"SELECT {', '.join(nulls)} WHERE false"
