"""What to do about a statement that Spark refused."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from polynya.lake.spark.api import Py4JError, PySparkException, SparkSession
from polynya.lake.spark.naming import view_catalog
from polynya.model.contract.identifiers import quote_path

#: Views that a hint lists; a project may have hundreds.
_LISTED: Final = 10


def hint(spark: SparkSession, error: PySparkException | Py4JError) -> str:
    """The fix of an error, by Spark's own name of it."""
    if not isinstance(error, PySparkException):
        return "`--debug` shows what Java said"
    condition = error.getCondition() or ""
    return fix_of(condition, error.getMessageParameters() or {}, _views(spark, condition))


def fix_of(condition: str, parameters: Mapping[str, str], views: list[str]) -> str:
    """The fix of an error with these parameters, where these views are to be read."""
    if condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
        wanted = next(iter(parameters.values()), "").replace("`", "")
        close = get_close_matches(wanted.lower(), views, n=1)
        if close:
            return f"did you mean `{close[0]}`?"
        shown = ", ".join(views[:_LISTED]) + (", …" if len(views) > _LISTED else "")
        return f"there are: {shown}" if views else "`polynya run --once` makes the views"
    if condition.startswith("UNRESOLVED_COLUMN"):
        proposal = parameters.get("proposal")
        return f"did you mean {proposal}?" if proposal else "`DESCRIBE <view>` lists the columns"
    if condition.startswith("PARSE"):
        return "the SQL is Spark's; names that are no plain words stand in backquotes"
    return "correct the statement as the message says"


def view_names(spark: SparkSession) -> list[str]:
    """`schema.view` of every view that can be read, in order."""
    catalog = view_catalog(spark)
    schemas = [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {quote_path(catalog)}").collect()]
    return sorted(
        f"{schema}.{row['viewName']}"
        for schema in schemas
        for row in spark.sql(f"SHOW VIEWS IN {quote_path(catalog, schema)}").collect()
    )


def _views(spark: SparkSession, condition: str) -> list[str]:
    if not condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
        return []
    try:
        return view_names(spark)
    except (PySparkException, Py4JError):
        # The first error is the one to tell.
        return []
