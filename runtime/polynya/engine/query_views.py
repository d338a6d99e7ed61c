"""The text of a query that no table keeps, over the live views of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from polynya.derived.flow import compile_flow, tables_read
from polynya.derived.inputs import QueryInput, dataset_named, reads_history
from polynya.derived.schema import DerivedInput
from polynya.derived.tables import parsed_query
from polynya.engine.ledger import datasets_of
from polynya.lake.read.catalog_views import publish_query_view
from polynya.lake.read.plans import why_refused
from polynya.lake.spark import api
from polynya.lake.spark.session import view_catalog
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.documents.yaml import dotted
from polynya.model.error_catalogue.derived import QUERY_INPUT_UNKNOWN, QUERY_REFUSED
from polynya.model.names import quote_path, shown

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

#: What Spark calls a view or a schema that is not there.
_NOT_FOUND: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


class InputMissingError(Exception):
    """A table that a query reads has no view yet; the message is its name."""


def owner_of(task: DerivedTask) -> str:
    """What published views of queries say of their task."""
    return f"query-of:{task.name}"


def view_sql(
    task: DerivedTask,
    name: str,
    datasets: Sequence[QueryInput],
    columns: Callable[[str], Mapping[str, str] | None],
    *,
    catalog: str | None,
    may_grow: bool = False,
) -> str:
    """The query of a view in Spark's SQL, each input by the quoted path of its live view.

    `catalog` is the first part of these paths.

    `datasets` are those that it may read; `columns` gives the columns of `schema.view` with their
    types, None where it is not there yet. `may_grow` says that a first run may find more datasets.

    Raises OperationError for a query that reads something else, ConfigErrors for a flow that does
    not fit its inputs, and InputMissingError.
    """
    query, where = task.query_views[name], task.view_of(name)
    text = query.text
    if query.flow:
        text = _compiled(query, where, datasets, columns)
    parsed = parsed_query(text, where)
    relations = {}
    for one in parsed.names:
        dataset = dataset_named(one, datasets, where=where, may_grow=may_grow)
        if dataset is None:
            raise InputMissingError(one)
        if isinstance(dataset, RegisteredDataset):
            raise QUERY_INPUT_UNKNOWN(
                f"the view reads {shown(one)}, a registered table, which has no live view",
                where=where,
                fix="write `materialize: table`",
            )
        relation = dataset.relations
        view = relation.history_view if reads_history(one, dataset) else relation.view
        if columns(f"{relation.schema}.{view}") is None:
            raise InputMissingError(f"{relation.schema}.{view}")
        path = (relation.schema, view)
        relations[one] = quote_path(*path) if catalog is None else quote_path(catalog, *path)
    return parsed.over(relations)


def publish_view(spark: SparkSession, task: DerivedTask, name: str) -> bool:
    """Create or replace a view in the catalog of the session; whether it was changed.

    Raises as `view_sql`, OperationError for a query that does not only read its inputs, and what
    Spark has against it.
    """
    datasets: list[QueryInput] = [one for other in task.registered for one in other.datasets()]
    may_grow = False
    for read in task.reads:
        found, grows = datasets_of(spark, read)
        datasets += found
        may_grow = may_grow or grows
    catalog = view_catalog(spark)

    def columns(view: str) -> Mapping[str, str] | None:
        path = quote_path(catalog, *view.split("."))
        try:
            fields = spark.table(path).schema.fields
        except api.PySparkException as error:
            # `tableExists` knows of no views of a catalog.
            if (error.getCondition() or "").startswith(_NOT_FOUND):
                return None
            raise
        return {one.name: one.dataType.simpleString() for one in fields}

    sql = view_sql(task, name, datasets, columns, catalog=catalog, may_grow=may_grow)
    refused = why_refused(spark, sql)
    if refused is not None:
        raise QUERY_REFUSED(
            where=task.view_of(name),
            reason=refused,
            fix="a query only computes from the tables of its transform",
        )
    return publish_query_view(spark, task.schema_, f"{task.prefix}{name}", sql, owner_of(task))


def _compiled(
    query: DerivedQuery,
    where: str,
    datasets: Sequence[QueryInput],
    columns: Callable[[str], Mapping[str, str] | None],
) -> str:
    named = tables_read(query.flow)
    names = list(named or [one.relations.current for one in datasets[:1]])
    inputs = {}
    for one in names:
        dataset = dataset_named(one, datasets, where=where, may_grow=True, in_flow=True)
        known = None if dataset is None else columns(dataset.relations.current)
        if known is None:
            raise InputMissingError(one)
        inputs[one] = DerivedInput(one, dict(known), ())
    return compile_flow(
        query.flow, inputs, lambda path: f"{where}: {dotted((*query.path, *path))}"
    ).sql
